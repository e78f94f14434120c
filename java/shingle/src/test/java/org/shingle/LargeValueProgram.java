package org.shingle;

import static org.shingle.Support.bytes;
import static org.shingle.Support.text;

import java.nio.ByteBuffer;
import java.nio.file.Path;

/**
 * A program of its own that scans two entries, of which the second one is larger than the memory of
 * its machine, and asks twice for that.
 */
public final class LargeValueProgram {
    private static final int VALUE_BYTES = 50_000_000;

    private LargeValueProgram() {}

    /** Prints the first key, what comes of asking for the second one, and whether it is there. */
    public static void main(String[] arguments) {
        try (Shingle database = Shingle.open(Path.of(arguments[0]))) {
            database.put(bytes("a"), new byte[100_000]); // ends the first chunk
            ByteBuffer key = ByteBuffer.allocateDirect(1).put(0, (byte) 'b');
            ByteBuffer value = ByteBuffer.allocateDirect(VALUE_BYTES);
            database.put(key, value);
            try (EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
                String first = text(entries.next().key());
                String second = asked(entries);
                String again = asked(entries);
                boolean isThere = database.get(key, value) == VALUE_BYTES;
                System.out.println(first + ", " + second + ", " + again + ", " + isThere);
            }
        }
    }

    private static String asked(EntryIterator entries) {
        try {
            return entries.hasNext() ? "an entry" : "the end";
        } catch (OutOfMemoryError error) {
            return "error";
        }
    }
}
