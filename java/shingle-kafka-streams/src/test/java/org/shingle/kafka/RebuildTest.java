package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.value;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.StateDirectory;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.internals.LegacyCheckpointingStateStore;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** When a store has to be built anew from its changelog, that happens, and from its beginning. */
class RebuildTest {
    private static final TaskId ID = new TaskId(0, 3);
    private static final TaskId GLOBAL = new TaskId(-1, -1);
    private static final int KEYS = 1000;

    @TempDir Path folder;

    private final Random random = new Random(7);

    private static KeyValueStore<Bytes, byte[]> store() {
        return ShingleStoreSuppliers.keyValueStore("store").get();
    }

    /** Lets Kafka give a store the offset that an old checkpoint file of the task has. */
    private void migrate(Task task, KeyValueStore<Bytes, byte[]> store, TaskId id, long offset)
            throws IOException {
        task.properties.put("state.dir", folder.toString());
        StateDirectory directory =
                new StateDirectory(new StreamsConfig(task.properties), Time.SYSTEM, true, false);
        Path tasks = id == null
                ? directory.globalStateDir().toPath()
                : directory.getOrCreateDirectoryForTask(id).toPath();
        OffsetCheckpoint file = new OffsetCheckpoint(tasks.resolve(".checkpoint").toFile());
        file.write(Map.of(Task.CHANGELOG, offset));
        LegacyCheckpointingStateStore.migrateLegacyOffsets(
                "", directory, id, Map.of(Task.CHANGELOG, store));
    }

    @Test
    void anOldCheckpointFileGivesAnEmptyStoreNoOffset() throws IOException {
        Task task = new Task(ID, folder.resolve("application/0_3"));
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        migrate(task, store, ID, 500);
        assertEquals(OffsetCheckpoint.OFFSET_UNKNOWN, store.committedOffset(Task.CHANGELOG));
        store.close();
        // Nothing was restored: it stays as it is.
        task.open(store);
        migrate(task, store, ID, 500);
        assertEquals(OffsetCheckpoint.OFFSET_UNKNOWN, store.committedOffset(Task.CHANGELOG));
        store.put(bytes("key"), value("value"));
        task.commit(store, 7L);
        assertEquals(7, store.committedOffset(Task.CHANGELOG));
        store.close();
        // One that Kafka wrote for an earlier release is that of the store.
        task.open(store);
        migrate(task, store, ID, 7);
        assertEquals(7, store.committedOffset(Task.CHANGELOG));
        store.put(bytes("key"), null);
        task.commit(store, 8L);
        store.close();
        // It has no entries, and its offset is known.
        task.open(store);
        migrate(task, store, ID, 9);
        assertEquals(9, store.committedOffset(Task.CHANGELOG));
        store.close();
    }

    @Test
    void anOldCheckpointFileGivesAnEmptyGlobalStoreNoOffset() throws IOException {
        Task task = new Task(GLOBAL, folder.resolve("application/global"));
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        migrate(task, store, null, 500);
        assertNull(store.committedOffset(Task.CHANGELOG));
        task.restore(List.of(Task.changelog(value("key"), value("value"), 0, null)));
        task.commit(store, 7L);
        assertEquals(7, store.committedOffset(Task.CHANGELOG));
        store.close();
    }

    private byte[] incompressible() {
        byte[] bytes = new byte[500];
        random.nextBytes(bytes);
        return bytes;
    }

    /** Writes a store whose files then have what was written. */
    private void write(Task task) {
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        for (int number = 0; number < KEYS; number++) {
            store.put(bytes("key" + number), incompressible());
        }
        task.commit(store, 1L);
        store.close();
    }

    private List<Path> files(String name) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(path -> path.getFileName().toString().contains(name)).toList();
        }
    }

    /** Overwrites a part of a file. */
    private static void damage(Path file, double from, double to) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        Arrays.fill(bytes, (int) (bytes.length * from), (int) (bytes.length * to), (byte) 7);
        Files.write(file, bytes);
    }

    /** After this the store cannot be opened. */
    private void damageManifest() throws IOException {
        assertFalse(files("MANIFEST").isEmpty());
        for (Path file : files("MANIFEST")) {
            damage(file, 0, 1);
        }
    }

    /** After this some entries cannot be read. */
    private void damageEntries() throws IOException {
        Comparator<Path> bySize = Comparator.comparingLong(path -> path.toFile().length());
        damage(files(".table").stream().max(bySize).orElseThrow(), 0.4, 0.6);
    }

    private static void isEmpty(KeyValueStore<Bytes, byte[]> store) {
        assertTrue(store.isOpen());
        assertNull(store.committedOffset(Task.CHANGELOG));
        assertEquals(Position.emptyPosition(), store.getPosition());
        assertEquals(List.of(), Task.all(store.all()));
        store.put(bytes("key1"), value("anew"));
        assertArrayEquals(value("anew"), store.get(bytes("key1")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"at_least_once", "exactly_once_v2"})
    void aStoreThatCannotBeOpenedIsEmpty(String guarantee) throws Exception {
        Task task = new Task(folder, "processing.guarantee", guarantee);
        write(task);
        damageManifest();
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        isEmpty(store); // under exactly-once Kafka then removes the whole task
        task.commit(store, 2L);
        store.close();
        task.open(store);
        assertEquals(2, store.committedOffset(Task.CHANGELOG));
        store.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"at_least_once", "exactly_once_v2"})
    void aStoreThatIsDamagedIsEmptyWhenItIsOpenedAgain(String guarantee) throws Exception {
        Task task = new Task(folder, "processing.guarantee", guarantee);
        write(task);
        damageEntries();
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        assertThrows(TaskCorruptedException.class, () -> {
            for (int number = 0; number < KEYS; number++) {
                store.get(bytes("key" + number));
            }
        });
        Task.giveUp(store);
        store.close();
        task.open(store);
        isEmpty(store);
        store.close();
    }

    /** Here its last flush fails, because the directory was replaced. */
    @Test
    void aDamagedStoreWhoseCloseFailsIsEmptyWhenItIsOpenedAgain() throws Exception {
        Task task = new Task(folder);
        write(task);
        damageEntries();
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        assertThrows(TaskCorruptedException.class, () -> Task.all(store.all()));
        store.put(bytes("key"), value("value"));
        Path directory = folder.resolve("shingle/store");
        for (Path file : files("")) {
            if (file.startsWith(directory) && !file.equals(directory)) {
                Files.delete(file);
            }
        }
        Files.delete(directory);
        Files.createDirectory(directory);
        store.close();
        assertFalse(Files.exists(directory));
        task.open(store);
        isEmpty(store);
        store.close();
    }

    @Test
    void damageThatAnIteratorMeetsIsToldAsSuch() throws Exception {
        Task task = new Task(folder);
        write(task);
        damageEntries();
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        assertThrows(TaskCorruptedException.class, () -> {
            try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
                all.forEachRemaining(entry -> assertNotNull(entry.value));
            }
        });
        store.close();
        task.open(store);
        isEmpty(store);
        store.close();
    }

    @Test
    void damagedStoresWithoutAChangelogAndGlobalOnesAreLeftToTheUser() throws Exception {
        for (TaskId id : List.of(ID, GLOBAL)) {
            Task task = new Task(id, folder.resolve(id.toString()));
            task.hasChangelog = false;
            write(task);
            damageManifest();
            ProcessorStateException error =
                    assertThrows(ProcessorStateException.class, () -> task.open(store()));
            assertTrue(error.getMessage().contains("store"), error.getMessage());
            try (Stream<Path> files = Files.walk(folder.resolve(id.toString()))) {
                assertTrue(files.anyMatch(path -> path.toString().endsWith(".table")));
            }
            try (Stream<Path> files = Files.walk(folder.resolve(id.toString()))) {
                files.filter(Files::isRegularFile).forEach(path -> path.toFile().delete());
            }
        }
    }

    @Test
    void damageDuringARestoreIsToldByTheNextCommit() throws Exception {
        Task task = new Task(folder);
        VersionedBytesStore store = versioned();
        task.open(store);
        for (int number = 0; number < KEYS; number++) {
            store.put(bytes("key" + number), incompressible(), 10_000);
        }
        task.commit(store, 1L);
        store.close();
        damageEntries();
        VersionedBytesStore again = task.open(versioned());
        // Kafka would take what a restore throws for an error that ends the thread.
        for (int number = 0; number < KEYS; number++) {
            byte[] key = bytes("key" + number).get();
            task.restore(List.of(Task.changelog(key, value("value"), 10_001, null)));
        }
        assertThrows(TaskCorruptedException.class, () -> task.commit(again, 2L));
        Task.giveUp(again);
        again.close();
        task.open(again);
        assertNull(again.committedOffset(Task.CHANGELOG));
        again.close();
    }

    private static VersionedBytesStore versioned() {
        return (VersionedBytesStore) ShingleStoreSuppliers
                .versionedKeyValueStore("versioned", Duration.ofMinutes(1)).get();
    }

    @Test
    void aStoreThatIsGivenUpHasNoPosition() {
        Task task = new Task(folder);
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        task.record("input", 5);
        store.put(bytes("a"), value("b"));
        task.commit(store, 1L);
        task.record("input", 6);
        store.put(bytes("a"), value("c"));
        Task.giveUp(store);
        store.close();
        task.open(store);
        assertNull(store.committedOffset(Task.CHANGELOG));
        assertEquals(Position.emptyPosition(), store.getPosition());
        store.close();
    }

    @Test
    void aStoreWithoutAChangelogKeepsItsPosition() {
        Task task = new Task(folder);
        task.hasChangelog = false;
        KeyValueStore<Bytes, byte[]> store = task.open(store());
        for (long offset = 5; offset < 8; offset++) {
            task.record("input", offset);
            store.put(bytes("a"), value("b"));
            task.commitWithoutOffsets(store);
        }
        store.close();
        task.open(store);
        assertEquals(
                Position.emptyPosition().withComponent("input", 3, 7), store.getPosition());
        store.close();
    }
}
