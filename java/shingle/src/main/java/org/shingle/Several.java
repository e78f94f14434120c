package org.shingle;

import java.util.Arrays;

/** Keys that are looked up together, packed for the native library, and its packed values. */
final class Several {
    private static final byte[] NOTHING = {};
    private static final int MISSING = -1;

    private Several() {}

    static byte[] packed(byte[][] keys) {
        Packer packer = new Packer(256);
        for (byte[] key : keys) {
            packer.addPair(key, NOTHING);
        }
        return packer.toArray();
    }

    /** The values, with null for missing keys. */
    static byte[][] values(byte[] packed, int count) {
        byte[][] values = new byte[count][];
        int at = 0;
        for (int index = 0; index < count; index++) {
            int size = Packer.getInt(packed, at);
            at += 4;
            if (size != MISSING) {
                values[index] = Arrays.copyOfRange(packed, at, at + size);
                at += size;
            }
        }
        return values;
    }
}
