package org.shingle;

import java.util.Arrays;

/**
 * A key with its value. Two entries are equal where their bytes are.
 *
 * @param key the key
 * @param value the value
 */
public record Entry(byte[] key, byte[] value) {
    @Override
    public boolean equals(Object other) {
        return other instanceof Entry entry
                && Arrays.equals(key, entry.key)
                && Arrays.equals(value, entry.value);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(key) + Arrays.hashCode(value);
    }
}
