package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.value;

import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.shingle.Keyspace;
import org.shingle.KeyspaceOptions;
import org.shingle.Options;
import org.shingle.Shingle;

/** A store that an application changes does not take what it had before for what it has now. */
class ShapeTest {
    private static final TaskId ID = new TaskId(0, 3);
    private static final TaskId GLOBAL = new TaskId(-1, -1);
    private static final Duration HOUR = Duration.ofHours(1);
    private static final Duration DAY = Duration.ofHours(24);

    /** In a segment of its own, whatever the length of segments. */
    private static final long TIME = Duration.ofDays(100).toMillis() + 1;

    @TempDir Path folder;

    /** Stores of one name, each of another shape; most differ from the next one in one thing. */
    private static Map<String, Supplier<StateStore>> stores() {
        Map<String, Supplier<StateStore>> stores = new LinkedHashMap<>();
        stores.put("key-value", () -> ShingleStoreSuppliers.keyValueStore("s").get());
        stores.put("key-value, timestamps",
                () -> ShingleStoreSuppliers.timestampedKeyValueStore("s").get());
        stores.put("key-value, headers",
                () -> ShingleStoreSuppliers.timestampedKeyValueStoreWithHeaders("s").get());
        stores.put("versioned, day",
                () -> ShingleStoreSuppliers.versionedKeyValueStore("s", DAY).get());
        stores.put("versioned, hour",
                () -> ShingleStoreSuppliers.versionedKeyValueStore("s", HOUR).get());
        stores.put("windows, headers",
                () -> ShingleStoreSuppliers
                        .timestampedWindowStoreWithHeaders("s", DAY, HOUR, false).get());
        stores.put("windows, timestamps",
                () -> ShingleStoreSuppliers.timestampedWindowStore("s", DAY, HOUR, false).get());
        stores.put("windows, two days", () -> windows(DAY.multipliedBy(2)));
        stores.put("windows", () -> windows(DAY));
        stores.put("windows of half a day, at close", () -> windowsAtClose(HOUR.multipliedBy(12)));
        stores.put("windows, at close", () -> windowsAtClose(HOUR));
        stores.put("sessions, headers",
                () -> ShingleStoreSuppliers.sessionStoreWithHeaders("s", DAY).get());
        stores.put("sessions", () -> ShingleStoreSuppliers.sessionStore("s", DAY).get());
        stores.put("sessions, at close", ShapeTest::sessionsAtClose);
        return stores;
    }

    private static WindowStore<Bytes, byte[]> windows(Duration retention) {
        return ShingleStoreSuppliers.windowStore("s", retention, HOUR, false).get();
    }

    private static WindowStore<Bytes, byte[]> windowsAtClose(Duration size) {
        return Suppliers.window("s", DAY, size, false, Suppliers.Format.PLAIN, true).get();
    }

    private static SessionStore<Bytes, byte[]> sessionsAtClose() {
        return Suppliers.session("s", DAY, Suppliers.Format.PLAIN, true).get();
    }

    /** From each store to the next one, and back. */
    static Stream<Arguments> changes() {
        Map<String, Supplier<StateStore>> stores = stores();
        List<String> names = List.copyOf(stores.keySet());
        return IntStream.range(1, names.size()).boxed().flatMap(at -> {
            String one = names.get(at - 1);
            String next = names.get(at);
            return Stream.of(
                    Arguments.of(one, next, stores.get(one), stores.get(next)),
                    Arguments.of(next, one, stores.get(next), stores.get(one)));
        });
    }

    private static Windowed<Bytes> session(String key) {
        return new Windowed<>(bytes(key), new SessionWindow(TIME, TIME));
    }

    private static void put(StateStore store, String key) {
        if (store instanceof VersionedBytesStore versions) {
            versions.put(bytes(key), value("value"), TIME);
        } else if (store instanceof WindowStore<?, ?>) {
            windowsOf(store).put(bytes(key), value("value"), TIME);
        } else if (store instanceof SessionStore<?, ?>) {
            sessionsOf(store).put(session(key), value("value"));
        } else {
            valuesOf(store).put(bytes(key), value("value"));
        }
    }

    private static boolean has(StateStore store, String key) {
        if (store instanceof WindowStore<?, ?>) {
            return windowsOf(store).fetch(bytes(key), TIME) != null;
        }
        if (store instanceof SessionStore<?, ?>) {
            return sessionsOf(store).fetchSession(bytes(key), TIME, TIME) != null;
        }
        return valuesOf(store).get(bytes(key)) != null;
    }

    @SuppressWarnings("unchecked")
    private static KeyValueStore<Bytes, byte[]> valuesOf(StateStore store) {
        return (KeyValueStore<Bytes, byte[]>) store;
    }

    @SuppressWarnings("unchecked")
    private static WindowStore<Bytes, byte[]> windowsOf(StateStore store) {
        return (WindowStore<Bytes, byte[]>) store;
    }

    @SuppressWarnings("unchecked")
    private static SessionStore<Bytes, byte[]> sessionsOf(StateStore store) {
        return (SessionStore<Bytes, byte[]>) store;
    }

    /** Opens a store, and gives what it has of its changelog. */
    private static Long offset(Task task, StateStore store) {
        task.open(store);
        return store.committedOffset(Task.CHANGELOG);
    }

    @ParameterizedTest(name = "{0} -> {1}")
    @MethodSource("changes")
    void aStoreOfAnotherShapeIsBuiltAnewAndOneOfTheSameGoesOn(
            String from, String to, Supplier<StateStore> before, Supplier<StateStore> after) {
        Task task = new Task(folder);
        StateStore store = task.open(before.get());
        put(store, "a");
        task.commit(store, 7L);
        store.close();
        StateStore same = before.get();
        assertEquals(7, offset(task, same));
        assertTrue(has(same, "a"));
        same.close();
        StateStore changed = after.get();
        assertNull(offset(task, changed));
        assertEquals(Position.emptyPosition(), changed.getPosition());
        assertFalse(has(changed, "a"));
        put(changed, "b");
        task.commit(changed, 8L);
        changed.close();
        StateStore again = after.get();
        assertEquals(8, offset(task, again));
        assertTrue(has(again, "b") && !has(again, "a"));
        again.close();
    }

    @Test
    void valuesWithTimestampsAreNotReadAsThoseWithHeaders() {
        Task task = new Task(folder);
        var store = task.open(Stores.timestampedKeyValueStoreBuilder(
                ShingleStoreSuppliers.timestampedKeyValueStore("s"),
                Serdes.String(), Serdes.String()).withLoggingDisabled().build());
        store.put("a", ValueAndTimestamp.make("A", 7));
        task.commit(store, 1L);
        store.close();
        var changed = task.open(Stores.timestampedKeyValueStoreWithHeadersBuilder(
                ShingleStoreSuppliers.timestampedKeyValueStoreWithHeaders("s"),
                Serdes.String(), Serdes.String()).withLoggingDisabled().build());
        assertNull(changed.get("a"));
        assertNull(changed.committedOffset(Task.CHANGELOG));
        changed.close();
    }

    @Test
    void windowsOfAnotherRetentionAreShownOnce() {
        Task task = new Task(folder);
        Duration retention = DAY;
        for (int round = 0; round < 4; round++) {
            WindowStore<Bytes, byte[]> store = task.open(windows(retention));
            assertNull(store.committedOffset(Task.CHANGELOG), "round " + round);
            assertEquals(List.of(), Task.all(store.all()));
            for (long hour = 40; hour < 60; hour++) { // restored from the changelog
                store.put(bytes("a"), value("value"), hour * HOUR.toMillis());
            }
            assertEquals(20, Task.all(store.fetch(bytes("a"), 0, Long.MAX_VALUE)).size());
            task.commit(store, 1L);
            store.close();
            retention = retention.equals(DAY) ? DAY.multipliedBy(2) : DAY;
        }
    }

    @Test
    void aStoreThatNothingCanRebuildIsRefusedAndKeepsItsEntries() {
        List<Supplier<StateStore>> changes = List.of(
                () -> windows(DAY),
                () -> windows(DAY.multipliedBy(2)),
                () -> windowsAtClose(HOUR.multipliedBy(12)),
                () -> ShingleStoreSuppliers.timestampedWindowStore("s", DAY, HOUR, false).get());
        for (TaskId id : List.of(ID, GLOBAL)) {
            Task task = new Task(id, folder.resolve(id.toString()));
            task.hasChangelog = id == GLOBAL;
            StateStore store = task.open(changes.get(0).get());
            put(store, "a");
            task.commitWithoutOffsets(store);
            store.close();
            for (Supplier<StateStore> change : changes.subList(1, changes.size())) {
                StateStore changed = change.get();
                ProcessorStateException error =
                        assertThrows(ProcessorStateException.class, () -> task.open(changed));
                String now = ((ShingleStore) changed).shape().toString();
                for (String part : List.of(
                        folder.toString(),
                        "a window store of plain values, with segments of 43200000 ms, and",
                        now,
                        "go back to the earlier settings, or delete the directory")) {
                    assertTrue(error.getMessage().contains(part), error.getMessage());
                }
            }
            StateStore again = task.open(changes.get(0).get());
            assertTrue(has(again, "a"));
            again.close();
        }
    }

    /** Other words would be another shape, so that every store would be built anew. */
    @Test
    void theWordsThatAreStoredStayAsTheyAre() {
        Map<String, String> words = Map.of(
                "key-value", "a key-value store of plain values",
                "key-value, timestamps", "a key-value store of values with timestamps",
                "key-value, headers", "a key-value store of values with headers",
                "versioned, hour", "a versioned store of plain values, with segments of 450000 ms",
                "windows, timestamps",
                "a window store of values with timestamps, with segments of 43200000 ms",
                "sessions, at close",
                "a session store of plain values, with segments of 43200000 ms, emitted on window "
                        + "close");
        words.forEach((store, shape) -> {
            Task task = new Task(folder.resolve(store));
            task.open(stores().get(store).get()).close();
            assertEquals(shape, storedShape(folder.resolve(store)));
        });
    }

    private static String storedShape(Path directory) {
        try (Shingle database = Shingle.open(directory.resolve("shingle/s"), new Options());
                Keyspace meta = meta(database)) {
            return Task.text(meta.get(value("s")));
        }
    }

    private static Keyspace meta(Shingle database) {
        return database.openKeyspace("meta", KeyspaceOptions.DEFAULT.withoutWal(true));
    }

    @Test
    void aStoreWithoutEntriesAndOffsetsTakesAnyShape() {
        Task task = new Task(folder);
        task.hasChangelog = false;
        task.open(windows(DAY)).close();
        StateStore store = task.open(windowsAtClose(HOUR));
        put(store, "a");
        task.commitWithoutOffsets(store);
        store.close();
        assertThrows(ProcessorStateException.class, () -> task.open(windows(DAY)));
    }

    @Test
    void entriesOfAnEarlierVersionGetTheShapeOfTheirStore() {
        Task task = new Task(folder);
        StateStore store = task.open(windows(DAY));
        put(store, "a");
        task.commit(store, 7L);
        store.close();
        try (Shingle database = Shingle.open(folder.resolve("shingle/s"), new Options());
                Keyspace meta = meta(database)) {
            assertNotNull(meta.get(value("s")));
            meta.delete(value("s")); // that version had none
        }
        StateStore again = windows(DAY);
        assertEquals(7, offset(task, again));
        assertTrue(has(again, "a"));
        again.close();
        StateStore changed = windowsAtClose(HOUR);
        assertNull(offset(task, changed));
        changed.close();
    }
}
