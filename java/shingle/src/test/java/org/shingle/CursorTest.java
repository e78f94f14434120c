package org.shingle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.key;
import static org.shingle.Support.keys;
import static org.shingle.Support.text;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CursorTest {
    @TempDir Path folder;
    private Shingle database;

    @BeforeEach
    void open() {
        database = Shingle.open(folder.resolve("db"));
    }

    @AfterEach
    void close() {
        database.close();
    }

    @Test
    void keysAreOrderedByBytesWithoutSign() {
        byte[][] unordered = {{(byte) 0x80}, {0x7f}, {0}, {(byte) 0xff, 0}, {(byte) 0xff}, {}, {1, 0}};
        byte[][] ordered = unordered.clone();
        Arrays.sort(ordered, Arrays::compareUnsigned);
        for (byte[] key : unordered) {
            database.put(key, key);
        }
        try (EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
            for (byte[] key : ordered) {
                assertArrayEquals(key, entries.peekKey());
                assertEquals(new Entry(key, key), entries.next());
            }
            assertFalse(entries.hasNext());
            assertThrows(NoSuchElementException.class, entries::next);
            assertThrows(NoSuchElementException.class, entries::peekKey);
        }
        try (EntryIterator entries = database.reverseIterator(ReadOptions.DEFAULT)) {
            for (int at = ordered.length - 1; at >= 0; at--) {
                assertArrayEquals(ordered[at], entries.next().key());
            }
            assertFalse(entries.hasNext());
        }
    }

    @Test
    void rangesAndPrefixesShowTheirKeysBothWays() {
        for (String key : List.of("a", "b", "ba", "bb", "c", "d")) {
            database.put(bytes(key), bytes(key));
        }
        assertEquals("[b, ba, bb, c]", shown(ReadOptions.range(bytes("b"), bytes("d"))));
        assertEquals("[b, ba, bb, c, d]", shown(ReadOptions.range(bytes("b"), null)));
        assertEquals("[a, b]", shown(ReadOptions.range(null, bytes("ba"))));
        assertEquals("[b, ba, bb]", shown(ReadOptions.prefix(bytes("b"))));
        assertEquals("[]", shown(ReadOptions.prefix(bytes("x"))));
        assertEquals("[ba, bb, c]", shown(ReadOptions.DEFAULT.from(bytes("ba")).toInclusive(bytes("c"))));
        ReadOptions quiet = ReadOptions.prefix(bytes("b")).fillCache(false).background(true);
        assertEquals("[b, ba, bb]", shown(quiet));
    }

    private String shown(ReadOptions options) {
        try (EntryIterator forward = database.iterator(options);
                EntryIterator reverse = database.reverseIterator(options)) {
            List<String> keys = keys(forward);
            List<String> others = keys(reverse);
            java.util.Collections.reverse(others);
            assertEquals(keys, others);
            return keys.toString();
        }
    }

    /** Values around the bounds of chunks, so that entries end exactly at them, before and behind. */
    @Test
    void chunksEndAnywhere() {
        for (int bound : new int[] {2 << 10, 3 << 10, 8 << 10, 64 << 10, 65 << 10, 1 << 20}) {
            for (int delta = -20; delta <= 20; delta += 1) {
                database.deleteRange(bytes("k"), bytes("l"));
                database.put(bytes("k1"), new byte[bound + delta]);
                database.put(bytes("k2"), bytes("small"));
                database.put(bytes("k3"), new byte[bound - delta]);
                try (Cursor cursor = database.cursor(ReadOptions.prefix(bytes("k")))) {
                    cursor.seekToFirst();
                    assertEquals(bound + delta, cursor.value().length);
                    cursor.next();
                    assertEquals("small", text(cursor.value()));
                    cursor.next();
                    assertEquals(bound - delta, cursor.value().length);
                    cursor.prev();
                    assertEquals("k2", text(cursor.key()));
                    cursor.prev();
                    assertEquals(bound + delta, cursor.value().length);
                    cursor.prev();
                    assertFalse(cursor.isValid());
                }
            }
        }
    }

    @Test
    void walksAgreeWithAMap() {
        Random random = new Random(7);
        TreeMap<String, String> model = new TreeMap<>();
        for (int n = 0; n < 3000; n++) {
            String key = key(random.nextInt(100_000));
            String value = "v".repeat(random.nextInt(200));
            model.put(key, value);
            database.put(bytes(key), bytes(value));
            if (n == 1500) {
                database.flush();
            }
        }
        try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
            Map.Entry<String, String> at = null;
            for (int step = 0; step < 20_000; step++) {
                int choice = random.nextInt(100);
                String target = key(random.nextInt(100_000));
                if (at == null || choice < 4) {
                    at = sought(cursor, model, random.nextInt(4), target);
                } else if (choice < 70) {
                    cursor.next();
                    at = model.higherEntry(at.getKey());
                } else {
                    cursor.prev();
                    at = model.lowerEntry(at.getKey());
                }
                assertEquals(at != null, cursor.isValid());
                if (at != null) {
                    assertEquals(at.getKey(), text(cursor.key()));
                    assertEquals(at.getValue(), text(cursor.value()));
                }
            }
        }
    }

    private static Map.Entry<String, String> sought(
            Cursor cursor, TreeMap<String, String> model, int how, String target) {
        switch (how) {
            case 0 -> cursor.seekToFirst();
            case 1 -> cursor.seekToLast();
            case 2 -> cursor.seek(bytes(target));
            default -> cursor.seekForPrev(bytes(target));
        }
        return switch (how) {
            case 0 -> model.firstEntry();
            case 1 -> model.lastEntry();
            case 2 -> model.ceilingEntry(target);
            default -> model.floorEntry(target);
        };
    }

    @Test
    void aCursorShowsTheKeysOfItsBeginning() {
        for (int n = 0; n < 10_000; n++) {
            database.put(bytes(key(n)), bytes("old"));
        }
        try (EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
            entries.next();
            database.deleteRange(bytes("key"), bytes("kez"));
            database.put(bytes("key-new"), bytes("new"));
            int count = 1;
            while (entries.hasNext()) {
                assertEquals("old", text(entries.next().value()));
                count++;
            }
            assertEquals(10_000, count);
        }
    }

    @Test
    void aCursorWithoutPositionSaysSo() {
        database.put(bytes("a"), bytes("b"));
        try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
            assertFalse(cursor.isValid());
            assertThrows(IllegalStateException.class, cursor::key);
            assertThrows(IllegalStateException.class, cursor::value);
            assertThrows(IllegalStateException.class, cursor::next);
            assertThrows(IllegalStateException.class, cursor::prev);
            cursor.seek(bytes("b"));
            assertFalse(cursor.isValid());
            cursor.seekForPrev(bytes("b"));
            assertTrue(cursor.isValid());
            cursor.next();
            assertFalse(cursor.isValid());
            cursor.close();
            fails(ErrorKind.CLOSED, cursor::key);
            fails(ErrorKind.CLOSED, cursor::seekToFirst);
            fails(ErrorKind.CLOSED, cursor::isValid);
            fails(ErrorKind.CLOSED, cursor::next);
        }
    }
}
