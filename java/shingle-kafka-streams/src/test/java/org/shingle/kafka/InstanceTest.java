package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.value;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stores of one application share what they need, and give everything back. */
class InstanceTest {
    private static final int STORES = 200;

    @TempDir Path folder;

    private static KeyValueStore<Bytes, byte[]> store(String name) {
        return ShingleStoreSuppliers.keyValueStore(name).get();
    }

    /** Checks that nothing below the folder is open, and that the library has no threads. */
    private void assertNothingIsUsed(String when) throws Exception {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            List<String> open = files.map(InstanceTest::points)
                    .filter(file -> file.startsWith(folder.toString())).toList();
            assertEquals(List.of(), open, when);
        }
        // Linux lists a thread for a moment after another thread has waited for its end.
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        while (threads() > 0 && System.nanoTime() < end) {
            Thread.sleep(1);
        }
        assertEquals(0, threads(), when);
    }

    private static long threads() throws Exception {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task"))) {
            return tasks.filter(task -> name(task).startsWith("shingle")).count();
        }
    }

    private static String points(Path link) {
        try {
            return Files.readSymbolicLink(link).toString();
        } catch (java.io.IOException error) {
            return ""; // closed meanwhile
        }
    }

    private static String name(Path task) {
        try {
            return Files.readString(task.resolve("comm"));
        } catch (java.io.IOException error) {
            return ""; // ended meanwhile
        }
    }

    @Test
    void twoHundredStoresShareTwoThreadsAndOneBudget() throws Exception {
        List<Task> tasks = new ArrayList<>();
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        long[] nanos = new long[STORES];
        for (int index = 0; index < STORES; index++) {
            Path directory = Files.createDirectories(folder.resolve("application/0_" + index));
            tasks.add(new Task(directory));
            long begin = System.nanoTime();
            stores.add(tasks.get(index).open(store("store")));
            nanos[index] = System.nanoTime() - begin;
        }
        java.util.Arrays.sort(nanos);
        System.out.printf("opening an empty store: median %.1f ms, maximum %.1f ms%n",
                nanos[STORES / 2] / 1e6, nanos[STORES - 1] / 1e6);
        assertEquals(2, threads());
        for (int round = 0; round < 100; round++) {
            for (int index = 0; index < STORES; index++) {
                byte[] key = ByteBuffer.allocate(4).putInt(round).array();
                stores.get(index).put(Bytes.wrap(key), new byte[2000]);
            }
        }
        // The test wrote 40 MB. The budget limits memtables to 40 % of 16 MiB.
        double memory = 0;
        for (Task task : tasks) {
            memory += metric(task, "cur-size-all-mem-tables");
        }
        assertTrue(memory < (16 << 20), "memtables have " + memory);
        for (int index = 0; index < STORES; index++) {
            assertEquals(100, Task.all(stores.get(index).all()).size());
            tasks.get(index).commit(stores.get(index), 1L);
            stores.get(index).close();
        }
        assertNothingIsUsed("after the last store");
    }

    @Test
    void storesThatOpenAndCloseLeaveNothing() throws Exception {
        Task task = new Task(Files.createDirectories(folder.resolve("application/0_1")));
        for (int round = 0; round < 50; round++) {
            KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
            store.put(bytes("key" + round), value("value"));
            store.all().next();
            store.close();
            assertNothingIsUsed("round " + round);
        }
        KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
        assertEquals(50, Task.all(store.all()).size());
        store.close();
    }

    @Test
    void storesOfAnotherShapeLeaveNothing() throws Exception {
        Task task = new Task(Files.createDirectories(folder.resolve("application/0_1")));
        KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
        store.put(bytes("key"), value("value"));
        store.close();
        KeyValueStore<Bytes, byte[]> other =
                ShingleStoreSuppliers.timestampedKeyValueStore("store").get();
        task.hasChangelog = false;
        assertThrows(ProcessorStateException.class, () -> task.open(other));
        assertNothingIsUsed("refused");
        task.hasChangelog = true;
        task.open(other).close();
        assertNothingIsUsed("built anew");
    }

    private static double metric(Task task, String name) {
        return task.metrics().entrySet().stream()
                .filter(metric -> metric.getKey().name().equals(name))
                .filter(metric -> metric.getKey().tags().containsKey("shingle-state-id"))
                .map(Map.Entry::getValue)
                .map(Metric::metricValue)
                .mapToDouble(Double.class::cast)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aStoreHasMetricsUntilItIsClosed() {
        Task task = new Task(folder, "shingle.commit.interval.ms", 0); // it waits
        KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
        for (int number = 0; number < 1000; number++) {
            store.put(bytes("key" + number), new byte[1000]);
        }
        task.commit(store, 1L);
        assertTrue(metric(task, "bytes-written-total") > 1_000_000);
        assertTrue(metric(task, "memtable-bytes-flushed-total") > 0);
        assertTrue(metric(task, "memtable-flush-time-avg") > 0);
        assertTrue(metric(task, "shingle-write-amplification") > 0);
        assertTrue(metric(task, "shingle-space-bytes") > 0);
        assertTrue(metric(task, "total-sst-files-size") > 0);
        assertEquals(1000, metric(task, "estimate-num-keys"), 10);
        assertEquals(0, metric(task, "write-stall-duration-total"));
        assertEquals(0, metric(task, "background-errors"));
        store.close();
        assertThrows(java.util.NoSuchElementException.class,
                () -> metric(task, "bytes-written-total"));
    }

    @Test
    void compactionOfAllStoresWaitsForTheirLimit() throws Exception {
        List<Task> tasks = new ArrayList<>();
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        for (String id : List.of("0_0", "0_1")) {
            Task task = new Task(
                    folder.resolve("application/" + id), "shingle.commit.interval.ms", 0,
                    "shingle.background.bytes.per.second", 1);
            tasks.add(task);
            stores.add(task.open(store("store")));
        }
        for (int round = 0; round < 30; round++) {
            for (int index = 0; index < tasks.size(); index++) {
                for (int number = 0; number < 100; number++) {
                    stores.get(index).put(bytes("key" + number), new byte[1000]);
                }
                tasks.get(index).commit(stores.get(index), (long) round);
            }
        }
        double waited = 0;
        for (Task task : tasks) {
            waited += metric(task, "shingle-background-limit-wait-total");
        }
        assertTrue(waited > 0, "nothing waited");
        stores.forEach(KeyValueStore::close);
    }

    @Test
    void propertiesReachTheDatabase() throws Exception {
        Task task = new Task(
                folder, "shingle.scheme", "leveled", "shingle.values", "inline",
                "shingle.store.store.values", "log", "shingle.store.other.scheme", "tiered",
                "shingle.background.threads", 1, "shingle.background.bytes.per.second", "1G");
        KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
        Path file;
        try (Stream<Path> files = Files.walk(folder)) {
            file = files.filter(path -> path.endsWith("OPTIONS")).findFirst().orElseThrow();
        }
        String options = Files.readString(file).replace(" ", "");
        assertTrue(options.contains("scheme=leveled\n"), options);
        assertTrue(options.contains("values=log\n"), options);
        store.close();
    }

    @Test
    void wrongPropertiesAreRefusedByName() {
        List<String[]> wrong = List.of(
                new String[] {"shingle.sheme", "leveled", "sheme"},
                new String[] {"shingle.scheme", "unheard", "shingle.scheme"},
                new String[] {"shingle.memory.bytes", "much", "shingle.memory.bytes"},
                new String[] {"shingle.cache.bytes", "1M", "shingle.memory.bytes"},
                new String[] {"shingle.store.store.memory.bytes", "1M", "for all stores"},
                new String[] {"shingle.commit.interval.ms", "soon", "commit.interval.ms"});
        for (String[] property : wrong) {
            Task task = new Task(folder.resolve(property[0]), property[0], property[1]);
            ConfigException error =
                    assertThrows(ConfigException.class, () -> task.open(store("store")));
            assertTrue(error.getMessage().contains(property[2]), error.getMessage());
        }
    }
}
