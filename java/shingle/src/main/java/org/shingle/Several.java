package org.shingle;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Keys that are looked up together, packed for the native library, and what it packs. */
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

    /** Texts, each of which is an entry without a value. */
    static List<String> texts(byte[] packed) {
        List<String> texts = new ArrayList<>();
        int at = 0;
        while (at < packed.length) {
            int size = Packer.getInt(packed, at);
            int start = at + Packer.SIZES;
            texts.add(Native.text(Arrays.copyOfRange(packed, start, start + size)));
            at = start + size;
        }
        return texts;
    }
}
