package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
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
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What happens to things that are closed, early, twice, late or never. */
class LifetimeTest {
    private static final int THREADS = 4;

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
                    () -> Native.get(this, snapshot.handle, bytes("a")));
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

    @Test
    void aThousandLivesKeepMemoryAndOpenFilesAsTheyAre() throws IOException {
        long memory = 0;
        long files = 0;
        for (int life = 0; life < 1000; life++) {
            try (Shingle database = open();
                    Snapshot snapshot = database.snapshot();
                    EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
                database.put(bytes(key(life % 10)), new byte[1000]);
                while (entries.hasNext()) {
                    entries.next();
                }
                assertTrue(snapshot.get(bytes("none")) == null);
            }
            if (life == 300) {
                memory = residentKilobytes();
                files = openFiles();
            }
        }
        long growth = residentKilobytes() - memory;
        assertEquals(files, openFiles());
        assertTrue(growth < 32 << 10, "700 lives take " + growth + " KiB");
    }

    private static long residentKilobytes() throws IOException {
        System.gc();
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new AssertionError("no VmRSS");
    }

    private static long openFiles() throws IOException {
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }

    @Test
    void whatIsForgottenIsClosedByTheCollector() throws Exception {
        forget();
        for (int attempt = 0; ; attempt++) {
            System.gc();
            try (Shingle database = open()) {
                holds(database, "a", "b");
                assertEquals("0", database.property("rocksdb.num-snapshots"));
                return;
            } catch (ShingleException error) {
                assertEquals(ErrorKind.LOCKED, error.kind());
                assertTrue(attempt < 1000, "the forgotten database is still open");
                Thread.sleep(20);
            }
        }
    }

    private void forget() {
        Shingle database = open();
        database.put(bytes("a"), bytes("b"));
        database.snapshot();
        database.cursor(ReadOptions.DEFAULT).seekToFirst();
        database.begin();
        database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
    }

    /** The last use of a thing is safe from the collector. */
    @Test
    void theLastCallOfAForgottenThingIsDone() {
        try (Shingle database = open()) {
            database.put(bytes("a"), bytes("b"));
            for (int n = 0; n < 20_000; n++) {
                assertEquals("b", text(database.snapshot().get(bytes("a"))));
                database.cursor(ReadOptions.DEFAULT).seekToFirst();
                if (n % 1000 == 0) {
                    System.gc();
                }
            }
        }
    }
}
