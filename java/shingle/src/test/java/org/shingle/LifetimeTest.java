package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.holds;
import static org.shingle.Support.key;
import static org.shingle.Support.keys;
import static org.shingle.Support.text;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What happens to things that are closed, early, twice, late or never. */
class LifetimeTest {
    private static final int THREADS = 4;

    /** About 4 KiB for each life that is measured: an engine that a life leaves takes more. */
    private static final long LIVES_KILOBYTES = 1500;

    @TempDir Path folder;

    private Shingle open() {
        return Shingle.open(folder.resolve("db"), new Options().memoryBytes(4 << 20));
    }

    @Test
    void whatWasClosedIsRefusedAndASecondCloseDoesNothing() {
        Shingle database = open();
        Keyspace keyspace = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
        Snapshot snapshot = database.snapshot();
        Cursor cursor = database.cursor(ReadOptions.DEFAULT);
        EntryIterator entries = database.iterator(ReadOptions.DEFAULT);
        Transaction transaction = database.begin();
        for (AutoCloseable thing : List.of(keyspace, snapshot, cursor, entries, transaction)) {
            closeTwice(thing);
        }
        fails(ErrorKind.CLOSED, () -> keyspace.get(bytes("a")));
        fails(ErrorKind.CLOSED, keyspace::name);
        fails(ErrorKind.CLOSED, () -> snapshot.get(bytes("a")));
        fails(ErrorKind.CLOSED, () -> snapshot.cursor(ReadOptions.DEFAULT));
        fails(ErrorKind.CLOSED, cursor::seekToFirst);
        fails(ErrorKind.CLOSED, () -> transaction.get(bytes("a")));
        fails(ErrorKind.CLOSED, transaction::commit);
        fails(ErrorKind.CLOSED, entries::hasNext);
        fails(ErrorKind.CLOSED, entries::next);
        fails(ErrorKind.CLOSED, entries::peekKey);
        closeTwice(database);
        fails(ErrorKind.CLOSED, () -> database.get(bytes("a")));
        fails(ErrorKind.CLOSED, () -> database.put(bytes("a"), bytes("b")));
        fails(ErrorKind.CLOSED, () -> database.write(new WriteBatch()));
        fails(ErrorKind.CLOSED, database::flush);
        fails(ErrorKind.CLOSED, database::snapshot);
        fails(ErrorKind.CLOSED, database::statisticsJson);
        fails(ErrorKind.CLOSED, () -> database.cursor(ReadOptions.DEFAULT));
    }

    private static void closeTwice(AutoCloseable thing) {
        try {
            thing.close();
            thing.close();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    @Test
    void theHandleOfAnotherThingIsRefused() {
        try (Shingle database = open();
                Snapshot snapshot = database.snapshot()) {
            fails(
                    ErrorKind.INVALID_ARGUMENT,
                    () -> Native.get(this, snapshot.handle(), bytes("a")));
            for (long handle : new long[] {0, -1, 7, Long.MAX_VALUE}) {
                fails(ErrorKind.INVALID_ARGUMENT, () -> Native.get(this, handle, bytes("a")));
            }
        }
    }

    @Test
    void snapshotsAndCursorsOutliveTheirDatabase() {
        Shingle database = open();
        for (int n = 0; n < 5000; n++) {
            database.put(bytes(key(n)), bytes("value" + n));
        }
        Keyspace fruit = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
        WriteBatch batch = new WriteBatch().put(fruit, bytes("a"), bytes("b"));
        try (Snapshot snapshot = database.snapshot();
                EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
            entries.next();
            database.close();
            assertEquals("value77", text(snapshot.get(bytes(key(77)))));
            assertEquals(4999, keys(entries).size());
            fails(ErrorKind.CLOSED, () -> fruit.put(bytes("a"), bytes("b")));
            fails(ErrorKind.CLOSED, () -> database.write(batch));
        }
        fruit.close();
        try (Shingle again = open()) {
            holds(again, key(4999), "value4999");
        }
    }

    @Test
    void aCloseWhileThreadsReadIsAnErrorForEach() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        for (int round = 0; round < 20; round++) {
            Shingle database = open();
            for (int n = 0; n < 1000; n++) {
                database.put(bytes(key(n)), bytes("value" + n));
            }
            Snapshot snapshot = database.snapshot();
            List<Callable<Object>> reads = List.of(
                    () -> database.get(bytes(key(7))),
                    () -> database.multiGet(bytes(key(1)), bytes(key(2))),
                    () -> scanned(database),
                    () -> snapshot.get(bytes(key(9))));
            CountDownLatch started = new CountDownLatch(THREADS);
            List<Future<ErrorKind>> ends = new ArrayList<>();
            for (Callable<Object> read : reads) {
                ends.add(threads.submit(() -> endOf(read, started)));
            }
            started.await();
            database.close();
            snapshot.close();
            for (Future<ErrorKind> end : ends) {
                assertEquals(ErrorKind.CLOSED, end.get());
            }
        }
        threads.shutdown();
    }

    private static ErrorKind endOf(Callable<Object> read, CountDownLatch started) throws Exception {
        try {
            read.call();
        } finally {
            started.countDown();
        }
        while (true) {
            try {
                read.call();
            } catch (ShingleException error) {
                return error.kind();
            }
        }
    }

    private static int scanned(Shingle database) {
        try (EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
            return keys(entries).size();
        }
    }

    @Test
    void threadsCloseTheSameThingAndReadIt() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try (Shingle database = open()) {
            for (int n = 0; n < 2000; n++) {
                database.put(bytes(key(n)), new byte[100]);
            }
            for (int round = 0; round < 500; round++) {
                Cursor cursor = database.cursor(ReadOptions.DEFAULT);
                List<Future<?>> ends = new ArrayList<>();
                for (int n = 0; n < THREADS; n++) {
                    boolean closes = n == THREADS - 1;
                    ends.add(threads.submit(() -> misuse(cursor, closes)));
                }
                for (Future<?> end : ends) {
                    end.get();
                }
                cursor.close();
                fails(ErrorKind.CLOSED, cursor::seekToFirst);
            }
        }
        threads.shutdown();
    }

    /** A cursor is for one thread; with several, exceptions are allowed and crashes are not. */
    private static void misuse(Cursor cursor, boolean closes) {
        try {
            cursor.seekToFirst();
            if (closes) {
                cursor.close();
            }
            for (int n = 0; n < 100 && cursor.isValid(); n++) {
                cursor.value();
                cursor.next();
            }
        } catch (RuntimeException expected) {
            assertTrue(!(expected instanceof NullPointerException), expected.toString());
        }
    }

    /** Counts how often its handle is freed. */
    private static final class Thing extends Owner {
        Thing(LongConsumer free) {
            super(7, free);
        }
    }

    @Test
    void aHandleIsFreedOnceOrGivenAway() {
        List<Long> freed = new ArrayList<>();
        Thing closed = new Thing(freed::add);
        closed.close();
        closed.close();
        assertEquals(List.of(7L), freed);
        ShingleException error = fails(ErrorKind.CLOSED, closed::handle);
        assertEquals("the thing was closed", error.getMessage());
        fails(ErrorKind.CLOSED, closed::release);

        Thing given = new Thing(freed::add);
        assertEquals(7, given.release());
        fails(ErrorKind.CLOSED, given::handle);
        fails(ErrorKind.CLOSED, given::release);
        given.close();
        assertEquals(List.of(7L), freed, "what was given away is not freed");
    }

    @Test
    void theCloseOfACommittedTransactionEndsNoOther() {
        try (Shingle database = open()) {
            for (int n = 0; n < 300; n++) {
                Transaction first = database.begin();
                first.commit();
                try (Transaction second = database.begin()) {
                    first.close();
                    second.put(bytes("a"), bytes("second" + n));
                    second.commit();
                }
                holds(database, "a", "second" + n);
            }
        }
    }

    /** The first close goes on until the second one waits for it, or has wrongly returned. */
    @Test
    void aSecondCloseReturnsWhenTheFirstIsDone() throws Exception {
        List<Thread.State> seen = new ArrayList<>();
        Thread[] second = new Thread[1];
        Thing thing = new Thing(handle -> {
            second[0].start();
            while (seen.isEmpty()) {
                Thread.State state = second[0].getState();
                if (state == Thread.State.BLOCKED || state == Thread.State.TERMINATED) {
                    seen.add(state);
                }
                Thread.onSpinWait();
            }
        });
        second[0] = new Thread(thing::close);
        thing.close();
        second[0].join();
        assertEquals(List.of(Thread.State.BLOCKED), seen);
    }

    @Test
    void aDatabaseThatSeveralThreadsCloseOpensAgainAfterEach() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        for (int round = 0; round < 20; round++) {
            Shingle database = open();
            database.put(bytes("a"), bytes("round" + round));
            List<Future<?>> ends = new ArrayList<>();
            for (int n = 0; n < THREADS; n++) {
                ends.add(threads.submit(() -> {
                    database.close();
                    fails(ErrorKind.CLOSED, database::flush);
                    assertEquals(List.of(), checkedClosed());
                }));
            }
            for (Future<?> end : ends) {
                end.get();
            }
        }
        threads.shutdown();
    }

    /** Reading only takes the lock too: it fails where the database is not closed yet. */
    private synchronized List<String> checkedClosed() {
        Options options = new Options().readOnly(true);
        try (Shingle database = Shingle.open(folder.resolve("db"), options)) {
            return database.check();
        }
    }

    @Test
    void aDefaultKeyspaceThatIsClosedLeavesTheDatabase() {
        try (Shingle database = open()) {
            Keyspace other = database.defaultKeyspace();
            try (Keyspace keyspace = database.defaultKeyspace()) {
                keyspace.put(bytes("a"), bytes("1"));
            }
            holds(database, "a", "1");
            database.put(bytes("a"), bytes("2"));
            assertEquals("2", text(other.get(bytes("a"))));
            other.close();
            fails(ErrorKind.CLOSED, () -> other.get(bytes("a")));
            try (Transaction transaction = database.begin()) {
                assertEquals("2", text(transaction.get(bytes("a"))));
            }
        }
    }

    @Test
    void aBatchWithAClosedKeyspaceIsRefused() {
        try (Shingle database = open()) {
            Keyspace fruit = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
            WriteBatch batch = new WriteBatch().put(bytes("a"), bytes("1"));
            batch.put(fruit, bytes("b"), bytes("2"));
            fruit.close();
            fails(ErrorKind.CLOSED, () -> batch.put(fruit, bytes("b"), bytes("2")));
            fails(ErrorKind.CLOSED, () -> database.write(batch));
            holds(database, "a", null);
            batch.clear();
            database.write(batch.put(bytes("a"), bytes("3")));
            holds(database, "a", "3");
        }
    }

    @Test
    void aHandleDoesNotComeAgain() {
        try (Shingle database = open()) {
            long first = Native.snapshot(database, database.handle());
            Native.closeSnapshot(first);
            for (int life = 0; life < 200_000; life++) {
                long later = Native.snapshot(database, database.handle());
                assertTrue(later != first, "after " + life + " lives");
                Native.closeSnapshot(later);
            }
            fails(ErrorKind.CLOSED, () -> Native.snapshotGet(this, first, bytes("a")));
        }
    }

    @Test
    void keyspacesOfAnotherDatabaseAreRefused() {
        try (Shingle database = open();
                Shingle other = Shingle.open(folder.resolve("other"));
                Keyspace foreign = other.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
                Keyspace foreignDefault = other.defaultKeyspace()) {
            for (Keyspace keyspace : List.of(foreign, foreignDefault)) {
                WriteBatch batch = new WriteBatch()
                        .put(bytes("a"), bytes("1"))
                        .put(keyspace, bytes("b"), bytes("2"));
                fails(ErrorKind.INVALID_ARGUMENT, () -> database.write(batch));
                holds(database, "a", null);
                holds(database, "b", null);
                try (Snapshot snapshot = database.snapshot();
                        Transaction transaction = database.begin()) {
                    fails(ErrorKind.INVALID_ARGUMENT, () -> snapshot.of(keyspace));
                    fails(ErrorKind.INVALID_ARGUMENT, () -> transaction.get(keyspace, bytes("a")));
                }
            }
        }
    }

    @Test
    void keyspacesOfAClosedDatabaseReadNothing() {
        Shingle database = open();
        Keyspace fruit = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
        fruit.put(bytes("a"), bytes("1"));
        Transaction transaction = database.begin();
        transaction.put(bytes("a"), bytes("2"));
        database.close();
        try (fruit; transaction) {
            fails(ErrorKind.CLOSED, () -> fruit.get(bytes("a")));
            fails(ErrorKind.CLOSED, () -> fruit.multiGet(bytes("a")));
            fails(ErrorKind.CLOSED, () -> fruit.getWithExpiry(bytes("a")));
            fails(ErrorKind.CLOSED, () -> fruit.iterator(ReadOptions.DEFAULT));
            fails(ErrorKind.CLOSED, () -> fruit.put(bytes("a"), bytes("2")));
            fails(ErrorKind.CLOSED, () -> transaction.put(bytes("b"), bytes("2")));
            fails(ErrorKind.CLOSED, transaction::commit);
        }
    }

    @Test
    void manyLivesKeepMemoryAndOpenFilesAsTheyAre() throws Exception {
        String[] lines = printed("org.shingle.LivesProgram", folder.resolve("lives"));
        assertEquals("[]", lines[lines.length - 1], "open files");
        long growth = Long.parseLong(lines[lines.length - 2]);
        assertTrue(growth < LIVES_KILOBYTES, "350 lives take " + growth + " KiB");
    }

    @Test
    void aScanThatLacksMemoryDoesNotLookFinished() throws Exception {
        String[] lines = printed("org.shingle.LargeValueProgram", folder.resolve("large"));
        assertEquals("a, error, error, true", lines[lines.length - 1]);
    }

    /** The lines that a program of its own prints, whose machine has little memory. */
    private static String[] printed(String program, Path path) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xms32m", "-Xmx32m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1", "-XX:MaxDirectMemorySize=64m",
                "-cp", System.getProperty("java.class.path"), program, path.toString());
        // With one arena, what threads have freed is used again by others.
        builder.environment().put("MALLOC_ARENA_MAX", "1");
        Process process = builder.redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), output);
        return output.strip().split("\n");
    }
}
