package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.value;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A write that the database cannot have is refused at once, also where writes are held. */
class LimitTest {
    private static final Duration AGE = Duration.ofMinutes(3);

    /** The maximum size of a key in the database. */
    private static final int KEY_BYTES_MAX = 65_535;

    @TempDir Path folder;

    private static Bytes key(int bytes) {
        return Bytes.wrap(new byte[bytes]);
    }

    private static void refused(Executable put) {
        ProcessorStateException error = assertThrows(ProcessorStateException.class, put);
        String why = "the key has 65536 bytes; 65535 are allowed";
        assertTrue(error.getMessage().contains(why), error.getMessage());
    }

    /** What was refused is no part of the commit. */
    private static void commit(Task task, StateStore store) {
        task.commit(store, 1L);
        store.close();
        task.open(store);
        assertEquals(1, store.committedOffset(Task.CHANGELOG));
    }

    @ParameterizedTest
    @EnumSource(names = {"SHINGLE", "SHINGLE_HELD", "SHINGLE_HELD_LITTLE"})
    void aKeyThatIsTooLongIsRefused(Backend backend) {
        Task task = backend.task(folder);
        KeyValueStore<Bytes, byte[]> store = task.open(backend.keyValue("store"));
        refused(() -> store.put(key(KEY_BYTES_MAX + 1), value("v")));
        refused(() -> store.put(key(KEY_BYTES_MAX + 1), null));
        refused(() -> store.putAll(List.of(
                KeyValue.pair(bytes("b"), value("v")),
                KeyValue.pair(key(KEY_BYTES_MAX + 1), value("v")))));
        store.put(bytes("a"), value("v"));
        store.put(key(KEY_BYTES_MAX), value("v"));
        commit(task, store);
        assertArrayEquals(value("v"), store.get(bytes("a")));
        assertArrayEquals(value("v"), store.get(key(KEY_BYTES_MAX)));
        assertEquals(2, Task.all(store.all()).size());
        store.close();
    }

    /** A window's key has its segment in front and its time behind: 20 bytes. */
    @ParameterizedTest
    @EnumSource(names = {"SHINGLE", "SHINGLE_HELD", "SHINGLE_HELD_LITTLE"})
    void theKeyOfAWindowCountsWithSegmentAndTime(Backend backend) {
        Task task = backend.task(folder);
        int most = KEY_BYTES_MAX - 20;
        for (WindowStore<Bytes, byte[]> store :
                List.of(backend.window(AGE, false), backend.windowAtClose(AGE))) {
            task.open(store);
            refused(() -> store.put(key(most + 1), value("v"), 10_000));
            store.put(bytes("a"), value("v"), 10_000);
            store.put(key(most), value("v"), 10_000);
            // It also ends the segment of the others.
            refused(() -> store.put(key(most + 1), value("v"), 10_000_000));
            commit(task, store);
            assertArrayEquals(value("v"), store.fetch(bytes("a"), 10_000));
            assertArrayEquals(value("v"), store.fetch(key(most), 10_000));
            store.close();
        }
    }

    /** And that of a session has both its times behind: 24 bytes. */
    @ParameterizedTest
    @EnumSource(names = {"SHINGLE", "SHINGLE_HELD", "SHINGLE_HELD_LITTLE"})
    void theKeyOfASessionCountsWithSegmentAndTimes(Backend backend) {
        Task task = backend.task(folder);
        int most = KEY_BYTES_MAX - 24;
        SessionWindow window = new SessionWindow(10_000, 20_000);
        for (SessionStore<Bytes, byte[]> store :
                List.of(backend.session(AGE), backend.sessionAtClose(AGE))) {
            task.open(store);
            refused(() -> store.put(new Windowed<>(key(most + 1), window), value("v")));
            store.put(new Windowed<>(key(most), window), value("v"));
            commit(task, store);
            assertNotNull(store.fetchSession(key(most), 10_000, 20_000));
            store.close();
        }
    }

    /** An earlier version has its segment in front and its time behind: 16 bytes. */
    @ParameterizedTest
    @EnumSource(names = {"SHINGLE", "SHINGLE_HELD", "SHINGLE_HELD_LITTLE"})
    void theKeyOfAVersionCountsWithSegmentAndTime(Backend backend) {
        Task task = backend.task(folder);
        int most = KEY_BYTES_MAX - 16;
        VersionedBytesStore store = backend.versioned(AGE);
        task.open(store);
        store.put(key(most), value("v"), 10_000);
        store.put(key(most), value("w"), 10_001);
        store.put(key(most + 1), value("v"), 10_000);
        refused(() -> store.put(key(most + 1), value("w"), 10_001));
        commit(task, store);
        assertNotNull(store.get(key(most), 10_000));
        assertNotNull(store.get(key(most), 10_001));
        store.close();
    }
}
