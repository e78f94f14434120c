package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.value;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A store opens and closes: what goes wrong there leaves nothing behind. */
class LifeTest {
    @TempDir Path folder;

    private static KeyValueStore<Bytes, byte[]> store(String name) {
        return ShingleStoreSuppliers.keyValueStore(name).get();
    }

    private static WindowStore<Bytes, byte[]> windows() {
        Duration minute = Duration.ofMinutes(1);
        return ShingleStoreSuppliers.windowStore("windows", minute, minute, false).get();
    }

    private static long metrics(Task task) {
        return task.metrics().keySet().stream()
                .filter(name -> name.tags().containsKey("shingle-state-id"))
                .count();
    }

    @Test
    void anInitThatFailsLeavesNothingOpen() {
        Task task = new Task(folder);
        task.refusal = new IllegalStateException("no more stores");
        KeyValueStore<Bytes, byte[]> store = store("store");
        assertSame(
                task.refusal, assertThrows(RuntimeException.class, () -> task.open(store)));
        assertFalse(store.isOpen());
        assertEquals(0, metrics(task));
        task.refusal = null;
        task.open(store);
        assertTrue(metrics(task) > 0);
        store.close();
    }

    @Test
    void aStoreThatIsOpenedElsewhereHasThePositionOfItsPlace() {
        Task task = new Task(folder.resolve("application/0_1"));
        KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
        task.record("input", 5);
        store.put(bytes("a"), value("b"));
        store.close();
        Task other = new Task(folder.resolve("application/0_2"));
        other.refusal = new IllegalStateException("no more stores");
        assertThrows(IllegalStateException.class, () -> other.open(store));
        assertEquals(Position.emptyPosition(), store.getPosition());
    }

    @Test
    void namesThatLeaveTheDirectoryOfTheTaskAreRefused() throws Exception {
        Path outside = folder.resolve("outside");
        List<String> names =
                List.of(outside.toString(), "a/../../x", "../x", "..", ".", "", "a/b", "a/../b");
        for (String name : names) {
            Task task = new Task(folder.resolve("application/0_1"));
            IllegalArgumentException error = assertThrows(
                    IllegalArgumentException.class, () -> task.open(store(name)), name);
            assertTrue(error.getMessage().contains("\"" + name + "\""), error.getMessage());
        }
        try (Stream<Path> files = Files.walk(folder)) {
            assertTrue(files.noneMatch(path -> path.endsWith("OPTIONS")));
        }
        Task task = new Task(folder.resolve("application/0_1"));
        for (String name : List.of("a.b", "KSTREAM-0001", "..a", "ä")) {
            task.open(store(name)).close();
        }
    }

    @Test
    void anIteratorOfWindowsHasNothingAfterItsClose() {
        Task task = new Task(folder);
        WindowStore<Bytes, byte[]> store = task.open(windows());
        store.put(bytes("a"), value("b"), 1000);
        KeyValueIterator<Windowed<Bytes>, byte[]> begun = store.all();
        assertTrue(begun.hasNext());
        begun.close();
        assertFalse(begun.hasNext());
        KeyValueIterator<Windowed<Bytes>, byte[]> fresh = store.all();
        fresh.close();
        assertFalse(fresh.hasNext());
        store.close();
    }

    @Test
    void readersOfAStoreThatClosesAreToldThatItIsClosed() throws Exception {
        Task task = new Task(folder);
        KeyValueStore<Bytes, byte[]> store = store("store");
        WindowStore<Bytes, byte[]> windows = windows();
        Map<String, Throwable> unexpected = new ConcurrentHashMap<>();
        AtomicBoolean isOver = new AtomicBoolean();
        List<Thread> readers = Stream.<Runnable>of(
                () -> store.all().forEachRemaining(entry -> {}),
                () -> store.range(bytes("key1"), bytes("key5")).hasNext(),
                () -> windows.fetchAll(0, Long.MAX_VALUE).forEachRemaining(entry -> {}))
                .map(read -> new Thread(() -> {
                    while (!isOver.get()) {
                        try {
                            read.run();
                        } catch (InvalidStateStoreException closed) {
                            Thread.onSpinWait();
                        } catch (RuntimeException error) {
                            unexpected.putIfAbsent(error.toString(), error);
                        }
                    }
                }))
                .toList();
        readers.forEach(Thread::start);
        for (int round = 0; round < 60; round++) {
            task.open(store);
            task.open(windows);
            for (int number = 0; number < 50; number++) {
                store.put(bytes("key" + number), new byte[100]);
                windows.put(bytes("key" + number), new byte[100], number * 1000L);
            }
            windows.close();
            store.close();
        }
        isOver.set(true);
        for (Thread reader : readers) {
            reader.join();
        }
        assertEquals(Map.of(), unexpected);
    }

    @Test
    void theEstimateOfEntriesIsOfEntriesAlone() {
        Task task = new Task(folder);
        KeyValueStore<Bytes, byte[]> store = task.open(store("store"));
        assertEquals(0, store.approximateNumEntries());
        for (int number = 0; number < 20; number++) {
            task.commit(store, (long) number);
        }
        assertEquals(0, store.approximateNumEntries());
        store.put(bytes("a"), value("b"));
        task.commit(store, 20L);
        assertEquals(1, store.approximateNumEntries());
        Object metric = task.metrics().entrySet().stream()
                .filter(entry -> entry.getKey().name().equals("estimate-num-keys"))
                .filter(entry -> entry.getKey().tags().containsKey("shingle-state-id"))
                .findFirst().orElseThrow().getValue().metricValue();
        assertEquals(1.0, metric);
        store.close();
    }

    @Test
    void anUnknownFormatIsThatOfTheDsl() {
        assertEquals(Suppliers.Format.TIMESTAMPED, Suppliers.Format.of(null));
    }
}
