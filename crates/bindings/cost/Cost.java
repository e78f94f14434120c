import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.shingle.Cursor;
import org.shingle.Options;
import org.shingle.ReadOptions;
import org.shingle.Shingle;
import org.shingle.WriteBatch;

/**
 * What calls cost through the Java interface: the same work as cost.c does through C.
 *
 * <p>Arguments: DIRECTORY ENTRIES [WORK]. Without WORK: times every work, after a warm-up with 10 % of
 * the entries, at least 100,000. With WORK: repeats it as a warm-up, then does it once between two marks
 * that instructions.c sees, and ends the process.
 */
final class Cost {
    private static final int BATCH = 100;
    private static final int WARM_UP_PASSES = 5;

    private final Path folder;
    private final byte[][] keys;
    private final byte[] value = new byte[100];

    private Cost(Path folder, int entries) {
        this.folder = folder;
        keys = new byte[entries / BATCH * BATCH][];
        for (int n = 0; n < keys.length; n++) {
            long number = n * 2654435761L % 10000000019L;
            keys[n] = String.format("%016d", number).getBytes(StandardCharsets.US_ASCII);
        }
    }

    public static void main(String[] arguments) {
        Path folder = Path.of(arguments[0]);
        int entries = Integer.parseInt(arguments[1]);
        if (arguments.length > 2) {
            new Cost(folder, entries).mark(arguments[2]);
            Runtime.getRuntime().halt(0);
        }
        new Cost(folder, Math.max(entries / 10, 100_000)).timeAll("warm-up", false);
        new Cost(folder, entries).timeAll("measured", true);
    }

    private void mark(String work) {
        Object store = filled(work, "warm-up");
        for (int pass = 0; pass < WARM_UP_PASSES; pass++) {
            work(work, store);
        }
        store = filled(work, "measured");
        folder.toFile().getTotalSpace();
        work(work, store);
        folder.toFile().getTotalSpace();
    }

    private void timeAll(String name, boolean isPrinted) {
        for (String work : new String[] {"batch", "put", "get", "scan", "alone"}) {
            Object store = filled(work, name);
            long began = System.nanoTime();
            work(work, store);
            long nanos = System.nanoTime() - began;
            if (isPrinted) {
                System.out.println(work + " " + Math.round((double) nanos / keys.length));
            }
            if (store instanceof Shingle database) {
                database.close();
            }
        }
    }

    /** What the work needs: a database, or a map. */
    private Object filled(String work, String name) {
        if (work.equals("alone")) {
            Map<String, byte[]> map = new HashMap<>();
            for (byte[] key : keys) {
                map.put(new String(key, StandardCharsets.ISO_8859_1), value.clone());
            }
            return map;
        }
        Options options = new Options().set("memory_bytes", "640M")
                .set("write_buffer_bytes", "64M").compression("none");
        Shingle database = Shingle.open(folder.resolve("java-" + name + "-" + work), options);
        if (work.equals("get") || work.equals("scan")) {
            batches(database);
            database.compact();
        }
        return database;
    }

    @SuppressWarnings("unchecked")
    private void work(String work, Object store) {
        switch (work) {
            case "put" -> puts((Shingle) store);
            case "batch" -> batches((Shingle) store);
            case "get" -> gets((Shingle) store);
            case "scan" -> scan((Shingle) store);
            case "alone" -> alone((Map<String, byte[]>) store);
            default -> throw new IllegalArgumentException(work);
        }
    }

    private void puts(Shingle database) {
        for (byte[] key : keys) {
            System.arraycopy(key, 0, value, 0, key.length);
            database.put(key, value);
        }
    }

    private void batches(Shingle database) {
        WriteBatch batch = new WriteBatch();
        for (int begin = 0; begin < keys.length; begin += BATCH) {
            batch.clear();
            for (byte[] key : Arrays.asList(keys).subList(begin, begin + BATCH)) {
                System.arraycopy(key, 0, value, 0, key.length);
                batch.put(key, value);
            }
            database.write(batch);
        }
    }

    private void gets(Shingle database) {
        for (int n = keys.length - 1; n >= 0; n--) {
            if (database.get(keys[n]).length != value.length) {
                throw new AssertionError("a value of another length");
            }
        }
    }

    private void scan(Shingle database) {
        long bytes = 0;
        try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
            for (cursor.seekToFirst(); cursor.isValid(); cursor.next()) {
                bytes += cursor.key().length + cursor.value().length;
            }
        }
        if (bytes != keys.length * 116L) {
            throw new AssertionError("the scan is not whole");
        }
    }

    /** What the machine alone needs to ask a map. */
    private void alone(Map<String, byte[]> map) {
        for (int n = keys.length - 1; n >= 0; n--) {
            String key = new String(keys[n], StandardCharsets.ISO_8859_1);
            if (map.get(key).length != value.length) {
                throw new AssertionError("a value of another length");
            }
        }
    }
}
