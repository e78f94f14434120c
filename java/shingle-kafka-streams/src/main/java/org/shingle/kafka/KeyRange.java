package org.shingle.kafka;

import java.util.Arrays;
import org.shingle.ReadOptions;

/**
 * Keys of a database.
 *
 * @param start the first key; null for no bound
 * @param end the first key behind the range; null for no bound
 */
record KeyRange(byte[] start, byte[] end) {
    static final KeyRange ALL = new KeyRange(null, null);

    /** The keys from one to another, both included; null for no bound. */
    static KeyRange inclusive(byte[] first, byte[] last) {
        return new KeyRange(first, last == null ? null : Arrays.copyOf(last, last.length + 1));
    }

    /** The keys that begin with some bytes. */
    static KeyRange prefix(byte[] prefix) {
        for (int bytes = prefix.length; bytes > 0; bytes--) {
            if (prefix[bytes - 1] != (byte) 0xFF) {
                byte[] end = Arrays.copyOf(prefix, bytes);
                end[bytes - 1]++;
                return new KeyRange(prefix, end);
            }
        }
        return new KeyRange(prefix, null);
    }

    boolean contains(byte[] key) {
        return (start == null || Arrays.compareUnsigned(key, start) >= 0)
                && (end == null || Arrays.compareUnsigned(key, end) < 0);
    }

    ReadOptions options() {
        return ReadOptions.range(start, end);
    }
}
