import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.shingle.Cursor;
import org.shingle.Entry;
import org.shingle.EntryIterator;
import org.shingle.ErrorKind;
import org.shingle.Keyspace;
import org.shingle.KeyspaceOptions;
import org.shingle.Options;
import org.shingle.ReadOptions;
import org.shingle.Shingle;
import org.shingle.ShingleException;
import org.shingle.Snapshot;
import org.shingle.Transaction;
import org.shingle.WriteBatch;

/**
 * Threads put, get, scan and take snapshots through the same objects while another closes them.
 *
 * <p>Every thread does its work a few times before the close begins, and goes on until the close
 * ends it. A wrong answer ends the program with an error; accesses to freed memory are what
 * AddressSanitizer looks for. It prints "done" at its end.
 */
public final class Threads {
    private static final int ROUNDS = 6;
    private static final int WORKERS = 4;
    /** Work that each thread has done before the close begins. */
    private static final int TIMES_MIN = 40;

    private static final int KEYS = 100;
    private static final int VALUE = 300;

    /** A larger value than the library copies to its stack. */
    private static final int LARGE = 3000;

    /** How the keys of the first thread begin. */
    private static final byte[] FIRST = "key0-".getBytes(StandardCharsets.US_ASCII);

    private final Shingle database;
    private final Keyspace fruit;
    private volatile Cursor cursor;
    private volatile Snapshot snapshot;

    /** A database that is open until {@link #run} has closed it, and what its threads share. */
    private Threads(Path path) {
        database = open(path);
        fruit = database.openKeyspace("fruit", KeyspaceOptions.DEFAULT);
        cursor = database.cursor(ReadOptions.DEFAULT);
        snapshot = database.snapshot();
    }

    /** With the smallest memtable, so that there are flushes and compactions. */
    private static Shingle open(Path path) {
        return Shingle.open(path, new Options().memoryBytes(4 << 20).writeBufferBytes(16 << 10));
    }

    private static byte[] key(int seed, int n) {
        return String.format("key%d-%04d", seed, n % KEYS).getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] value(byte[] key) {
        int number = (key[7] - '0') * 10 + key[8] - '0';
        byte[] value = new byte[number % 10 == 0 ? LARGE : VALUE];
        Arrays.fill(value, key[8]);
        return value;
    }

    private static ByteBuffer direct(byte[] bytes) {
        return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
    }

    private static void check(boolean isSo, String what) {
        if (!isSo) {
            throw new AssertionError(what);
        }
    }

    private static void checkEntry(Entry entry) {
        check(Arrays.equals(value(entry.key()), entry.value()), "a value of another key");
    }

    /** Keys of this thread alone: what it wrote is what it reads. */
    private void write(int seed, int n) {
        byte[] key = key(seed, n);
        byte[] value = value(key);
        database.put(key, value);
        check(Arrays.equals(value, database.get(key)), "what was put");
        WriteBatch batch = new WriteBatch();
        for (int more = 0; more < 4; more++) {
            byte[] other = key(seed, n + more);
            batch.put(other, value(other)).put(fruit, other, value(other));
        }
        database.write(batch.delete(fruit, key));
        check(fruit.get(key) == null, "what was deleted");
        database.put(direct(key), direct(value));
        ByteBuffer place = ByteBuffer.allocateDirect(VALUE / 2);
        check(database.get(direct(key), place) == value.length, "a size");
        check(place.get(place.limit() - 1) == key[8], "a value in a buffer");
        if (n % 5 == 0) {
            database.flush();
        }
    }

    /** Scans in both directions, to their end and not, and gets of many keys. */
    private void read(int seed, int n) {
        try (EntryIterator entries = database.iterator(ReadOptions.prefix(FIRST))) {
            entries.forEachRemaining(Threads::checkEntry);
        }
        try (EntryIterator entries = database.reverseIterator(ReadOptions.DEFAULT)) {
            for (int count = 0; count < 20 && entries.hasNext(); count++) {
                entries.peekKey();
                entries.next();
            }
        }
        byte[][] keys = {key(0, n), key(0, n + 1), key(0, n + 2), key(0, n + 3)};
        byte[][] values = database.multiGet(keys);
        for (int found = 0; found < keys.length; found++) {
            byte[] value = values[found];
            check(value == null || Arrays.equals(value, value(keys[found])), "one of many");
        }
        if (n % 10 == 0) {
            database.compact();
        }
    }

    /** A snapshot and its cursor, which are read again after a write; a transaction. */
    private void hold(int seed, int n) {
        byte[] key = key(0, n);
        try (Snapshot held = database.snapshot();
                Cursor entries = held.cursor(ReadOptions.DEFAULT)) {
            byte[] before = held.get(key);
            fruit.put(key(seed, n), value(key(seed, n)));
            check(Arrays.equals(before, held.get(key)), "what a snapshot held");
            entries.seek(key);
            boolean isThere = entries.isValid() && Arrays.equals(entries.key(), key);
            check(isThere == (before != null), "a key of a snapshot");
            check(!isThere || Arrays.equals(entries.value(), before), "a value of a snapshot");
        }
        try (Transaction transaction = database.begin()) {
            byte[] shared = transaction.get(key(9, 9));
            transaction.put(key(9, 9), shared == null ? value(key(9, 9)) : shared);
            transaction.commit();
        } catch (ShingleException error) {
            if (error.kind() != ErrorKind.CONFLICT) {
                throw error;
            }
        }
    }

    /** A cursor and a snapshot that all threads read; this thread replaces them by others. */
    private void misuse(int seed, int n) {
        Cursor moved = cursor;
        Snapshot held = snapshot;
        try {
            moved.seekToFirst();
            for (int count = 0; count < 30 && moved.isValid(); count++) {
                moved.next();
            }
        } catch (RuntimeException expected) {
            check(!(expected instanceof NullPointerException), expected.toString());
        }
        held.get(key(seed, n));
        if (n % 4 == 0) {
            cursor = database.cursor(ReadOptions.DEFAULT);
            snapshot = database.snapshot();
            moved.close();
            held.close();
        }
    }

    /** Reads what {@link #misuse} moves and closes: exceptions are allowed, and crashes are not. */
    private void share() {
        try {
            Cursor moved = cursor;
            moved.seek(key(0, 7));
            if (moved.isValid()) {
                moved.value();
                moved.prev();
            }
            snapshot.get(key(9, 9));
        } catch (RuntimeException expected) {
            check(!(expected instanceof NullPointerException), expected.toString());
        }
    }

    private void workOnce(int seed, int n) {
        switch (seed) {
            case 0 -> write(seed, n);
            case 1 -> read(seed, n);
            case 2 -> hold(seed, n);
            default -> misuse(seed, n);
        }
    }

    /** Works until the database is closed; how often it did. */
    private int work(int seed, CountDownLatch ready) {
        int n = 0;
        try {
            while (true) {
                workOnce(seed, n);
                share();
                n++;
                if (n == TIMES_MIN) {
                    ready.countDown();
                }
            }
        } catch (ShingleException error) {
            check(error.kind() == ErrorKind.CLOSED, error.toString());
            return n;
        } finally {
            ready.countDown();
        }
    }

    private void run(ExecutorService threads) throws Exception {
        List<Future<Integer>> ends = new ArrayList<>();
        List<CountDownLatch> ready = new ArrayList<>();
        for (int seed = 0; seed < WORKERS; seed++) {
            int worker = seed;
            CountDownLatch own = new CountDownLatch(1);
            Callable<Integer> work = () -> work(worker, own);
            ready.add(own);
            ends.add(threads.submit(work));
        }
        for (CountDownLatch own : ready) {
            own.await();
        }
        database.close();
        for (Future<Integer> end : ends) {
            check(end.get() >= TIMES_MIN, "a thread was closed too early");
        }
        // What outlives its database is readable.
        byte[] held = snapshot.get(key(0, 0));
        check(held == null || Arrays.equals(held, value(key(0, 0))), "what a snapshot held");
        snapshot.close();
        cursor.close();
        fruit.close();
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(WORKERS);
        for (int round = 0; round < ROUNDS; round++) {
            Path path = Path.of(arguments[0], "db" + round % 2);
            new Threads(path).run(threads);
            try (Shingle again = open(path)) {
                check(again.check().isEmpty(), "a sound database");
                check(Arrays.equals(again.get(key(0, 0)), value(key(0, 0))), "what was put");
            }
        }
        threads.shutdown();
        System.out.println("done");
    }
}
