package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.holds;
import static org.shingle.Support.key;
import static org.shingle.Support.text;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.function.Executable;

/** What the program forgets is closed by the garbage collector, and only then. */
class ForgottenTest {
    private static final Logger LOGGER = Logger.getLogger("org.shingle");

    @TempDir Path folder;
    private final BlockingQueue<LogRecord> records = new LinkedBlockingQueue<>();
    private final Handler handler =
            new Handler() {
                @Override
                public void publish(LogRecord entry) {
                    records.add(entry);
                }

                @Override
                public void flush() {}

                @Override
                public void close() {}
            };

    @BeforeEach
    void listen() {
        LOGGER.setUseParentHandlers(false);
        LOGGER.addHandler(handler);
    }

    @AfterEach
    void stopListening() {
        LOGGER.removeHandler(handler);
        LOGGER.setUseParentHandlers(true);
    }

    private Shingle open() {
        return Shingle.open(folder.resolve("db"), new Options().memoryBytes(4 << 20));
    }

    private static void collectUntil(BooleanSupplier isDone, String message) throws Exception {
        for (int attempt = 0; !isDone.getAsBoolean(); attempt++) {
            assertTrue(attempt < 1000, message);
            System.gc();
            Thread.sleep(10);
        }
    }

    private static boolean isRefused(Executable call) {
        try {
            call.execute();
            return false;
        } catch (Throwable error) {
            assertEquals(ErrorKind.CLOSED, ((ShingleException) error).kind());
            return true;
        }
    }

    @Test
    void thingsOfAnOpenDatabaseAreClosed() throws Exception {
        try (Shingle database = open()) {
            database.put(bytes("a"), bytes("b"));
            List<Executable> uses = forget(database);
            for (Executable use : uses) {
                collectUntil(() -> isRefused(use), "a forgotten thing is still open");
            }
            assertEquals(0, database.numericProperty("rocksdb.num-snapshots").getAsLong());
            holds(database, "a", "b");
        }
        assertEquals(List.of(), List.copyOf(records));
    }

    /** Uses of handles whose owners are forgotten. */
    private List<Executable> forget(Shingle database) {
        byte[] key = bytes("a");
        long keyspace = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT).handle();
        long snapshot = database.snapshot().handle();
        long transaction = database.begin().handle();
        long resources = Resources.ofCache(1 << 20).handle();
        Cursor cursor = database.cursor(ReadOptions.DEFAULT);
        cursor.seekToFirst();
        long position = cursor.handle();
        assertTrue(database.numericProperty("rocksdb.num-snapshots").getAsLong() > 0);
        return List.of(
                () -> Native.keyspaceName(this, keyspace),
                () -> Native.snapshotGet(this, snapshot, key),
                () -> Native.setSavepoint(this, transaction),
                () -> Native.cacheUsedBytes(this, resources),
                () -> Native.fill(this, position, 2, null, 1, new byte[1000]));
    }

    @Test
    void aForgottenDatabaseIsClosedAndNamed() throws Exception {
        forgetDatabase();
        collectUntil(() -> isUnlocked(), "the forgotten database is still open");
        LogRecord found = records.take();
        assertEquals(Level.WARNING, found.getLevel());
        String path = folder.resolve("db").toString();
        assertTrue(found.getMessage().contains(path), found.getMessage());
        try (Shingle database = open()) {
            holds(database, "a", "b");
            assertEquals("0", database.property("rocksdb.num-snapshots"));
        }
        assertEquals(List.of(), List.copyOf(records), "a close is not logged");
    }

    private boolean isUnlocked() {
        try (Shingle database = open()) {
            return true;
        } catch (ShingleException error) {
            assertEquals(ErrorKind.LOCKED, error.kind());
            return false;
        }
    }

    private void forgetDatabase() {
        Shingle database = open();
        database.put(bytes("a"), bytes("b"));
        database.snapshot();
        database.cursor(ReadOptions.DEFAULT).seekToFirst();
        database.begin();
        database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
    }

    @Test
    void aForgottenDatabaseHasAThreadOfItsOwn() throws Exception {
        BlockingQueue<Thread> threads = new LinkedBlockingQueue<>();
        Owner.Free free =
                new Shingle.FreeDatabase(7, handle -> threads.add(Thread.currentThread()), folder);
        free.forgotten();
        Thread closing = threads.take();
        assertNotSame(Thread.currentThread(), closing);
        closing.join();
        free.forgotten();
        assertEquals(1, records.size(), "it is forgotten once");
    }

    @Test
    void anErrorWithoutACallerIsLogged() {
        ShingleException error = new ShingleException(ErrorKind.IO, "the medium is gone");
        Owner.Free free = new Owner.Free(7, handle -> {
            throw error;
        });
        free.forgotten();
        LogRecord found = records.remove();
        assertEquals(Level.SEVERE, found.getLevel());
        assertEquals(error, found.getThrown());
    }

    /** The collector runs all the time, and each thing is forgotten during its last call. */
    @Test
    void theLastCallOfAForgottenThingIsDone() throws Exception {
        byte[][] many = new byte[3000][];
        try (Shingle database = open();
                Collecting collecting = new Collecting()) {
            for (int n = 0; n < many.length; n++) {
                many[n] = bytes(key(n));
                database.put(many[n], bytes("value" + n));
            }
            for (int round = 0; round < 40; round++) {
                byte[][] found = database.snapshot().multiGet(many);
                assertEquals("value2999", text(found[2999]));
                found = database.begin().multiGet(database.defaultKeyspace(), many);
                assertEquals("value2999", text(found[2999]));
                assertEquals(3000, counted(database.snapshot().iterator(ReadOptions.DEFAULT)));
                database.begin().commit();
            }
            assertTrue(collecting.count() > 10, "times that it ran: " + collecting.count());
        }
    }

    /** What is used keeps its database open, though the program has forgotten that. */
    @Test
    void aThingInUseKeepsItsDatabaseOpen() throws Exception {
        useKeyspace();
        collectUntil(() -> isUnlocked(), "the forgotten database is still open");
    }

    private void useKeyspace() throws Exception {
        try (Collecting collecting = new Collecting();
                Keyspace fruit = open().createKeyspace("fruit", KeyspaceOptions.DEFAULT)) {
            for (long before = collecting.count(); collecting.count() < before + 20; ) {
                fruit.put(bytes("a"), bytes("b"));
                assertEquals("b", text(fruit.get(bytes("a"))));
            }
            fails(ErrorKind.LOCKED, this::open);
        }
    }

    private static int counted(EntryIterator entries) {
        int count = 0;
        while (entries.hasNext()) {
            entries.next();
            count++;
        }
        return count;
    }

    /** A thread in which the garbage collector runs again and again. */
    private static final class Collecting implements AutoCloseable {
        private volatile boolean isOver;
        private final AtomicLong count = new AtomicLong();
        private final Thread thread = new Thread(this::collect);

        Collecting() {
            thread.start();
        }

        private void collect() {
            List<byte[]> garbage = new ArrayList<>();
            while (!isOver) {
                garbage.add(new byte[1000]);
                System.gc();
                garbage.clear();
                count.incrementAndGet();
            }
        }

        long count() {
            return count.get();
        }

        @Override
        public void close() throws InterruptedException {
            isOver = true;
            thread.join();
        }
    }
}
