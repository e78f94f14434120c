package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.key;
import static org.shingle.Support.text;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Scans that meet damage in the middle of a table. */
class ScanErrorTest {
    private static final int KEYS = 20_000;

    @TempDir Path folder;
    private Shingle database;

    /** The first and the last key whose block is damaged. */
    private int first;

    private int last;

    @BeforeEach
    void damage() throws Exception {
        Path path = folder.resolve("db");
        Random random = new Random(3);
        try (Shingle written = Shingle.open(path)) {
            for (int n = 0; n < KEYS; n++) {
                byte[] value = new byte[100];
                random.nextBytes(value);
                written.put(bytes(key(n)), value);
            }
            written.flush();
        }
        List<Path> tables;
        try (var files = Files.list(path)) {
            tables = files.filter(file -> file.toString().endsWith(".table")).toList();
        }
        assertEquals(1, tables.size(), "one table has all keys");
        byte[] content = Files.readAllBytes(tables.get(0));
        content[content.length / 3] ^= 1;
        Files.write(tables.get(0), content);
        database = Shingle.open(path);
        List<Integer> damaged = new ArrayList<>();
        for (int n = 0; n < KEYS; n++) {
            byte[] key = bytes(key(n));
            if (failure(() -> database.get(key)) != null) {
                damaged.add(n);
            }
        }
        first = damaged.get(0);
        last = damaged.get(damaged.size() - 1);
        assertTrue(first > 1000 && last < KEYS - 1000, first + " to " + last);
    }

    @AfterEach
    void close() {
        database.close();
    }

    private static ShingleException failure(Callable<?> call) {
        try {
            call.call();
            return null;
        } catch (ShingleException error) {
            assertEquals(ErrorKind.CORRUPTION, error.kind());
            return error;
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    /** Goes on until the error, checks that it stays, and gives the number of entries before it. */
    private static int countedToFailure(EntryIterator entries) {
        int count = 0;
        ShingleException error;
        while ((error = failure(entries::next)) == null) {
            count++;
        }
        for (int n = 0; n < 3; n++) {
            assertSame(error, failure(entries::hasNext));
            assertSame(error, failure(entries::next));
            assertSame(error, failure(entries::peekKey));
        }
        entries.close();
        fails(ErrorKind.CLOSED, entries::hasNext);
        fails(ErrorKind.CLOSED, entries::next);
        fails(ErrorKind.CLOSED, entries::peekKey);
        return count;
    }

    @Test
    void aScanThatFailsNeverLooksFinished() {
        assertTrue(countedToFailure(database.iterator(ReadOptions.DEFAULT)) <= first);
        assertTrue(countedToFailure(database.reverseIterator(ReadOptions.DEFAULT)) < KEYS - last);
    }

    @Test
    void entriesBeforeAnErrorAreGiven() {
        assertEquals(first, countedToFailure(database.iterator(ReadOptions.DEFAULT)));
        checkReverse(database.reverseIterator(ReadOptions.DEFAULT));
    }

    /** In reverse, the versions of a key end where the next block begins, which is damaged. */
    private void checkReverse(EntryIterator entries) {
        int missing = KEYS - 1 - last - countedToFailure(entries);
        assertTrue(missing == 0 || missing == 1, "missing: " + missing);
    }

    @Test
    void entriesOfATransactionBeforeAnErrorAreGiven() {
        try (Keyspace keyspace = database.defaultKeyspace();
                Transaction transaction = database.begin()) {
            transaction.put(bytes("a"), bytes("before all others"));
            ReadOptions all = ReadOptions.DEFAULT;
            assertEquals(first + 1, countedToFailure(transaction.iterator(keyspace, all)));
            checkReverse(transaction.reverseIterator(keyspace, all));
        }
    }

    @Test
    void aCursorKeepsItsErrorAndAnotherGoesOn() {
        try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
            cursor.seek(bytes(key(first - 500)));
            ShingleException error = null;
            while (error == null) {
                error = failure(() -> {
                    cursor.next();
                    return null;
                });
            }
            assertSame(error, failure(cursor::isValid));
            assertSame(error, failure(cursor::key));
            assertSame(error, failure(cursor::value));
            fails(ErrorKind.CORRUPTION, () -> cursor.seek(bytes(key(first))));
            fails(ErrorKind.CORRUPTION, cursor::isValid);
        }
        try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
            cursor.seek(bytes(key(KEYS - 2)));
            assertTrue(cursor.isValid());
            cursor.next();
            assertEquals(key(KEYS - 1), text(cursor.key()));
            cursor.next();
            assertTrue(!cursor.isValid());
        }
    }

    /** A key whose operands do not fit its value is an error of its own: seeks go on behind it. */
    @Test
    void aSeekGoesOnBehindAKeyThatIsNotMerged() {
        KeyspaceOptions merging = KeyspaceOptions.DEFAULT.mergeOperator("add-u64");
        try (Keyspace counts = database.createKeyspace("counts", merging)) {
            counts.put(bytes("a"), new byte[8]);
            counts.put(bytes("b"), bytes("no number"));
            counts.merge(bytes("b"), new byte[8]);
            counts.put(bytes("c"), new byte[8]);
            try (Cursor cursor = counts.cursor(ReadOptions.DEFAULT)) {
                ShingleException error =
                        assertThrows(ShingleException.class, () -> cursor.seek(bytes("b")));
                assertSame(error, assertThrows(ShingleException.class, cursor::isValid));
                cursor.seek(bytes("c"));
                assertEquals("c", text(cursor.key()));
                cursor.next();
                assertTrue(!cursor.isValid());
            }
        }
    }
}
