package org.shingle.bench;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * Compares Shingle with RocksDB: each phase of each run with one and then the other, in alternating
 * order, and the median of the runs.
 *
 * <p>Arguments: a folder for the databases, the number of runs, the number of entries.
 */
public final class Main {
    private static final int KEY_BYTES = 16;
    private static final int VALUE_BYTES = 100;
    private static final int BATCH = 100;
    private static final int RANGE = 10;

    /** The same for each number of entries, so that the code is compiled before most of them. */
    private static final int SEEKS = 200_000;

    private static final List<String> STORES = List.of("shingle", "rocksdb");

    private final int entries;
    private final byte[] value = new byte[VALUE_BYTES];
    private final Map<String, Map<String, List<Double>>> rates = new LinkedHashMap<>();

    private Main(int entries) {
        this.entries = entries;
        new SplittableRandom(5).nextBytes(value);
    }

    /** Runs all, and prints a table. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments.length > 0 ? arguments[0] : "target/databases");
        int runs = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 5;
        int entries = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1_000_000;
        Files.createDirectories(folder);
        new Main(entries / 10).run(folder, "warm-up");
        Main main = new Main(entries);
        for (int run = 0; run < runs; run++) {
            for (int turn = 0; turn < 2; turn++) {
                main.run(folder, STORES.get((run + turn) % 2));
            }
            System.err.println("run " + (run + 1) + " of " + runs);
        }
        main.print();
    }

    private void run(Path folder, String name) throws Exception {
        if (name.equals("warm-up")) {
            for (String store : STORES) {
                run(folder, store);
            }
            return;
        }
        Path path = folder.resolve(name);
        delete(path);
        try (Store store = Store.open(name, path)) {
            SplittableRandom random = new SplittableRandom(1);
            byte[] key = new byte[KEY_BYTES];
            long start = System.nanoTime();
            for (int n = 0; n < entries; n++) {
                store.put(fill(key, random.nextLong()), value);
            }
            done("put, random", name, start, entries);
            store.settle();

            int[] order = new int[entries];
            long[] keys = new long[entries];
            SplittableRandom again = new SplittableRandom(1);
            SplittableRandom choice = new SplittableRandom(2);
            for (int n = 0; n < entries; n++) {
                keys[n] = again.nextLong();
                order[n] = choice.nextInt(entries);
            }
            start = System.nanoTime();
            for (int n = 0; n < entries; n++) {
                if (store.get(fill(key, keys[order[n]])) == null) {
                    throw new AssertionError("a key is missing");
                }
            }
            done("get, random", name, start, entries);
            start = System.nanoTime();
            for (int n = 0; n < entries; n++) {
                if (store.get(fill(key, choice.nextLong())) != null) {
                    throw new AssertionError("a key that was never written");
                }
            }
            done("get, missing", name, start, entries);
            start = System.nanoTime();
            if (store.scan() != (long) entries * (KEY_BYTES + VALUE_BYTES)) {
                throw new AssertionError("the scan is not whole");
            }
            done("scan, all", name, start, entries);
            start = System.nanoTime();
            for (int n = 0; n < SEEKS; n++) {
                store.range(fill(key, keys[order[n % entries]]), RANGE);
            }
            done("seek and 10 entries", name, start, SEEKS);
            batches(store, name);
        }
        delete(path);
    }

    private void batches(Store store, String name) throws Exception {
        byte[][] keys = new byte[BATCH][KEY_BYTES];
        SplittableRandom random = new SplittableRandom(3);
        long start = System.nanoTime();
        for (int n = 0; n < entries; n += BATCH) {
            for (byte[] key : keys) {
                fill(key, random.nextLong());
            }
            store.write(keys, value);
        }
        done("put, batches of 100", name, start, entries);
    }

    private static byte[] fill(byte[] key, long number) {
        ByteBuffer.wrap(key).putLong(number).putLong(number ^ 0x5555);
        return key;
    }

    private void done(String phase, String name, long start, int count) {
        double rate = count / ((System.nanoTime() - start) / 1e9);
        rates.computeIfAbsent(phase, any -> new LinkedHashMap<>())
                .computeIfAbsent(name, any -> new ArrayList<>())
                .add(rate);
    }

    private void print() {
        System.out.printf("%-22s %12s %12s %8s%n", "operations per second", "shingle", "rocksdb", "ratio");
        rates.forEach((phase, of) -> {
            double ours = median(of.get("shingle"));
            double theirs = median(of.get("rocksdb"));
            System.out.printf("%-22s %,12.0f %,12.0f %8.2f%n", phase, ours, theirs, ours / theirs);
        });
    }

    private static double median(List<Double> rates) {
        double[] sorted = rates.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return Arrays.stream(sorted).skip(sorted.length / 2).findFirst().orElseThrow();
    }

    private static void delete(Path path) throws Exception {
        if (!Files.exists(path)) {
            return;
        }
        try (var files = Files.walk(path)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
