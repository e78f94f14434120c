package org.shingle.compare;

import java.nio.ByteBuffer;
import java.util.SplittableRandom;

/**
 * Keys and values of a comparison. Key n is a hash of n, so that n = 0, 1, ... gives keys in random
 * order. Values are random bytes, with a time in front as Kafka Streams stores them.
 */
final class Work {
    static final int KEY_BYTES = 16;

    private static final int POOL_BYTES = 1 << 20;
    private static final int TIME_BYTES = 8;

    private final byte[] pool = new byte[2 * POOL_BYTES];
    private final int valueBytes;

    Work(int valueBytes) {
        this.valueBytes = valueBytes;
        new SplittableRandom(7).nextBytes(pool);
    }

    static byte[] key(long number) {
        long hash = mix(number);
        return ByteBuffer.allocate(KEY_BYTES).putLong(hash).putLong(number).array();
    }

    /** A value of a key, another one for each version. */
    byte[] value(long number, long version) {
        int from = (int) (mix(number * 31 + version) & (POOL_BYTES - 1));
        byte[] value = new byte[TIME_BYTES + valueBytes];
        ByteBuffer.wrap(value).putLong(version).put(pool, from, valueBytes);
        return value;
    }

    /** Whether these are the bytes of some version of the value. */
    boolean isValue(long number, byte[] value) {
        if (value == null || value.length != TIME_BYTES + valueBytes) {
            return false;
        }
        return java.util.Arrays.equals(value, value(number, version(value)));
    }

    /** The version that a value says that it is. */
    static long version(byte[] value) {
        return ByteBuffer.wrap(value).getLong();
    }

    /** The bytes of an entry as the store gets them. */
    static long entryBytes(int valueBytes) {
        return KEY_BYTES + TIME_BYTES + valueBytes;
    }

    /** A bijection of 64 bits: no two keys are equal. */
    private static long mix(long number) {
        long bits = number * 0x9E3779B97F4A7C15L;
        bits = (bits ^ (bits >>> 32)) * 0xD6E8FEB86659FD93L;
        return bits ^ (bits >>> 29);
    }
}
