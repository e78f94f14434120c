package org.shingle;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Keys, values and numbers in one array that grows, in the form that the native library reads:
 * numbers are little-endian, and two texts are their sizes, four bytes each, and then the texts.
 */
final class Packer {
    private static final VarHandle INT =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /** Bytes of the two sizes. */
    static final int SIZES = 8;

    /** The largest array that every Java machine has. */
    static final int BYTES_MAX = Integer.MAX_VALUE - 8;

    byte[] bytes;
    int used;

    Packer(int capacity) {
        bytes = new byte[capacity];
    }

    static int getInt(byte[] bytes, int at) {
        return (int) INT.get(bytes, at);
    }

    static long getLong(byte[] bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    /** Adds a byte. */
    void add(int number) {
        reserve(1);
        bytes[used++] = (byte) number;
    }

    /** Adds a number of eight bytes. */
    void addLong(long number) {
        reserve(8);
        LONG.set(bytes, used, number);
        used += 8;
    }

    /** Adds two texts. */
    void addPair(byte[] key, byte[] value) {
        reserve((long) SIZES + key.length + value.length);
        INT.set(bytes, used, key.length);
        INT.set(bytes, used + 4, value.length);
        System.arraycopy(key, 0, bytes, used + SIZES, key.length);
        System.arraycopy(value, 0, bytes, used + SIZES + key.length, value.length);
        used += SIZES + key.length + value.length;
    }

    /** What was added. */
    byte[] toArray() {
        return Arrays.copyOf(bytes, used);
    }

    private void reserve(long more) {
        long needed = used + more;
        if (needed <= bytes.length) {
            return;
        }
        if (needed > BYTES_MAX) {
            throw new ShingleException(
                    ErrorKind.INVALID_ARGUMENT,
                    "together these are " + needed + " bytes, and at most " + BYTES_MAX
                            + " fit into one call: use several");
        }
        bytes = Arrays.copyOf(bytes, capacity(bytes.length, needed));
    }

    /** The size of the array that takes the place of one that is too small. */
    static int capacity(int before, long needed) {
        long larger = Math.max(needed, before + (long) before / 2);
        return (int) Math.min(larger, BYTES_MAX);
    }
}
