package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.holds;
import static org.shingle.Support.key;
import static org.shingle.Support.keys;
import static org.shingle.Support.text;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What transactions do besides gets and puts: scans, savepoints, and several threads. */
class TransactionTest {
    @TempDir Path folder;
    private Shingle database;
    private Keyspace fruit;

    @BeforeEach
    void open() {
        database = Shingle.open(folder.resolve("db"));
        fruit = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
    }

    @AfterEach
    void close() {
        fruit.close();
        database.close();
    }

    private List<String> shown(Transaction transaction, ReadOptions options) {
        try (EntryIterator forward = transaction.iterator(fruit, options);
                EntryIterator reverse = transaction.reverseIterator(fruit, options)) {
            List<String> keys = keys(forward);
            List<String> others = new ArrayList<>(keys(reverse));
            Collections.reverse(others);
            assertEquals(keys, others);
            assertFalse(forward.hasNext());
            return keys;
        }
    }

    @Test
    void aCommitWithoutOptionsLeavesTheTransactionAsItWas() {
        try (Transaction transaction = database.begin()) {
            transaction.put(bytes("a"), bytes("1"));
            assertThrows(NullPointerException.class, () -> transaction.commit(null));
            transaction.commit();
        }
        assertEquals("1", text(database.get(bytes("a"))));
    }

    @Test
    void aCloseEndsTheWaitForALock() throws Exception {
        TransactionOptions locking = TransactionOptions.DEFAULT.lockTimeout(Duration.ofHours(1));
        Transaction first = database.begin(locking);
        first.put(bytes("a"), bytes("1"));
        Transaction second = database.begin(locking);
        BlockingQueue<Object> ended = new LinkedBlockingQueue<>();
        Thread waiting = new Thread(() -> {
            try {
                second.put(bytes("a"), bytes("2"));
                ended.add("it was put");
            } catch (ShingleException error) {
                ended.add(error.kind());
            }
        });
        waiting.start();
        while (waiting.getState() == Thread.State.NEW) {
            Thread.onSpinWait();
        }
        Thread.sleep(100); // now it waits, most probably; the close ends the call in any case
        database.close();
        assertEquals(ErrorKind.CLOSED, ended.take());
        first.close();
        second.close();
    }

    @Test
    void scansShowWhatTheTransactionSees() {
        for (String key : List.of("a", "b", "c", "d")) {
            fruit.put(bytes(key), bytes("old"));
        }
        try (Transaction transaction = database.begin()) {
            transaction.delete(fruit, bytes("a"));
            transaction.put(fruit, bytes("b"), bytes("new"));
            transaction.put(fruit, bytes("bb"), bytes("new"));
            transaction.deleteRange(fruit, bytes("d"), bytes("e"));
            fruit.put(bytes("x"), bytes("of another"));
            assertEquals(List.of("b", "bb", "c"), shown(transaction, ReadOptions.DEFAULT));
            assertEquals(List.of("b", "bb"), shown(transaction, ReadOptions.prefix(bytes("b"))));
            ReadOptions range = ReadOptions.range(bytes("bb"), bytes("c"));
            assertEquals(List.of("bb"), shown(transaction, range));
            assertEquals(List.of(), shown(transaction, ReadOptions.range(bytes("m"), bytes("n"))));
            byte[][] found = transaction.multiGet(fruit, bytes("a"), bytes("b"), bytes("c"));
            assertNull(found[0]);
            assertEquals("new", text(found[1]));
            assertEquals("old", text(found[2]));
            EntryIterator entries = transaction.iterator(fruit, ReadOptions.DEFAULT);
            assertEquals("new", text(entries.next().value()));
            entries.close();
            fails(ErrorKind.CLOSED, entries::next);
            fails(ErrorKind.CONFLICT, transaction::commit);
        }
    }

    /** More than one chunk, and values that are larger than one. */
    @Test
    void scansOfManyEntriesShowEachOnce() {
        List<String> all = new ArrayList<>();
        for (int n = 0; n < 5000; n++) {
            byte[] value = new byte[n == 2500 ? 300_000 : n % 100];
            fruit.put(bytes(key(n)), value);
            all.add(key(n));
        }
        try (Transaction transaction = database.begin()) {
            transaction.put(fruit, bytes("z"), new byte[200_000]);
            all.add("z");
            assertEquals(all, shown(transaction, ReadOptions.DEFAULT));
            transaction.commit();
        }
        assertEquals(200_000, fruit.get(bytes("z")).length);
    }

    @Test
    void anIteratorOutlivesItsTransaction() {
        fruit.put(bytes("a"), bytes("1"));
        Transaction transaction = database.begin();
        transaction.put(fruit, bytes("b"), bytes("2"));
        try (EntryIterator entries = transaction.iterator(fruit, ReadOptions.DEFAULT)) {
            transaction.close();
            assertEquals(List.of("a", "b"), keys(entries));
        }
        assertNull(fruit.get(bytes("b")));
        fails(ErrorKind.CLOSED, () -> transaction.iterator(fruit, ReadOptions.DEFAULT));
        fails(ErrorKind.CLOSED, transaction::setSavepoint);
        fails(ErrorKind.CLOSED, transaction::rollBack);
    }

    @Test
    void whatFollowsASavepointIsDiscarded() {
        try (Transaction transaction = database.begin()) {
            assertFalse(transaction.rollBack());
            transaction.put(fruit, bytes("a"), bytes("1"));
            transaction.setSavepoint();
            transaction.put(fruit, bytes("a"), bytes("2"));
            transaction.setSavepoint();
            transaction.put(fruit, bytes("b"), bytes("3"));
            assertTrue(transaction.rollBack());
            assertNull(transaction.get(fruit, bytes("b")));
            assertEquals("2", text(transaction.get(fruit, bytes("a"))));
            assertTrue(transaction.rollBack());
            assertFalse(transaction.rollBack());
            transaction.commit();
        }
        assertEquals("1", text(fruit.get(bytes("a"))));
    }

    @Test
    void valuesOfATransactionEnd() {
        Instant far = Instant.ofEpochMilli(4_102_444_800_000L);
        try (Transaction transaction = database.begin()) {
            transaction.putExpiring(fruit, bytes("melon"), bytes("ripe"), far);
            transaction.putExpiring(fruit, bytes("old"), bytes("x"), Instant.ofEpochMilli(1));
            assertNull(transaction.get(fruit, bytes("old")));
            transaction.commit();
        }
        assertEquals(Optional.of(far), fruit.getWithExpiry(bytes("melon")).expiry());
        assertNull(fruit.get(bytes("old")));
    }

    /** A commit that waits for another thread's call sleeps, and then ends the transaction. */
    @Test
    void aCommitWaitsAsleepForACallOfAnotherThread() throws Exception {
        TransactionOptions locking = TransactionOptions.DEFAULT.lockTimeout(Duration.ofMinutes(5));
        BlockingQueue<String> ends = new LinkedBlockingQueue<>();
        Transaction second = database.begin(locking);
        try (Transaction first = database.begin(locking)) {
            first.put(bytes("a"), bytes("first"));
            Sleeper put = new Sleeper(() -> second.put(bytes("a"), bytes("second")), ends);
            put.awaitSleep();
            Sleeper commit = new Sleeper(second::commit, ends);
            commit.awaitSleep();
            assertEquals(List.of(), List.copyOf(ends));
            first.commit();
        }
        for (int n = 0; n < 2; n++) {
            String end = ends.take();
            assertTrue(List.of("done", "CONFLICT").contains(end), end);
        }
        fails(ErrorKind.CLOSED, () -> second.get(bytes("a")));
        second.close();
        database.put(bytes("a"), bytes("third"));
        holds(database, "a", "third");
    }

    @Test
    void aCloseEndsTheTransactionWithTheLastCall() throws Exception {
        TransactionOptions locking = TransactionOptions.DEFAULT.lockTimeout(Duration.ofMinutes(5));
        BlockingQueue<String> ends = new LinkedBlockingQueue<>();
        Transaction second = database.begin(locking);
        try (Transaction first = database.begin(locking)) {
            first.put(bytes("a"), bytes("first"));
            Sleeper put = new Sleeper(() -> second.put(bytes("a"), bytes("second")), ends);
            put.awaitSleep();
            second.close();
            fails(ErrorKind.CLOSED, second::commit);
            first.commit();
        }
        ends.take();
        holds(database, "a", "first");
    }

    /** A thread of Linux that does something, and may sleep meanwhile. */
    private static final class Sleeper {
        private final BlockingQueue<Path> system = new LinkedBlockingQueue<>();

        Sleeper(Runnable work, BlockingQueue<String> ends) {
            new Thread(() -> {
                system.add(ofThisThread());
                try {
                    work.run();
                    ends.add("done");
                } catch (ShingleException error) {
                    ends.add(error.kind().toString());
                }
            }).start();
        }

        private static Path ofThisThread() {
            try {
                Path thread = Files.readSymbolicLink(Path.of("/proc/thread-self"));
                return Path.of("/proc").resolve(thread);
            } catch (IOException error) {
                throw new AssertionError(error);
            }
        }

        /** Waits until the system has found the thread asleep 20 times one after the other. */
        void awaitSleep() throws Exception {
            Path stat = system.take().resolve("stat");
            int asleep = 0;
            for (int attempt = 0; asleep < 20; attempt++) {
                assertTrue(attempt < 2000, "the thread does not sleep");
                String text = Files.readString(stat);
                boolean sleeps = text.substring(text.lastIndexOf(')') + 2).startsWith("S");
                asleep = sleeps ? asleep + 1 : 0;
                Thread.sleep(5);
            }
        }
    }
}
