package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A store whose process was killed has what was written up to some moment, and says which. */
class KillTest {
    private static final String AT_LEAST_ONCE = "at_least_once";
    private static final String EXACTLY_ONCE = "exactly_once_v2";

    @TempDir Path folder;

    /** Runs the program, kills it, and gives the last commit that it told. */
    private long killed(Path directory, String kind, String guarantee, long intervalMs, long told)
            throws Exception {
        return killed(directory, kind, guarantee, intervalMs, 0, told);
    }

    private long killed(
            Path directory,
            String kind,
            String guarantee,
            long intervalMs,
            long heldBytes,
            long told)
            throws Exception {
        Process process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-cp",
                System.getProperty("java.class.path"),
                KilledProgram.class.getName(),
                directory.toString(),
                kind,
                guarantee,
                Long.toString(intervalMs),
                Long.toString(heldBytes))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        long last = -1;
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            while (last < told) {
                last = Long.parseLong(lines.readLine());
            }
            process.toHandle().destroyForcibly(); // what was printed stays readable
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                last = Long.parseLong(line);
            }
        } finally {
            process.destroyForcibly().waitFor();
        }
        return last;
    }

    private static KeyValueStore<Bytes, byte[]> opened(Path directory, String guarantee) {
        Task task = new Task(directory, "processing.guarantee", guarantee);
        return task.open(Backend.SHINGLE.keyValue("store"));
    }

    /** The store has all writes up to one, and none after it: the number of that one. */
    private static long lastWrite(KeyValueStore<Bytes, byte[]> store) {
        long last = -1;
        for (int key = 0; key < KilledProgram.KEYS; key++) {
            byte[] value = store.get(Bytes.wrap(KilledProgram.key(key)));
            last = value == null ? last : Math.max(last, ByteBuffer.wrap(value).getLong());
        }
        for (long number = Math.max(0, last - KilledProgram.KEYS + 1); number <= last; number++) {
            byte[] value = store.get(Bytes.wrap(KilledProgram.key(number)));
            assertEquals(number, ByteBuffer.wrap(value).getLong(), "up to " + last);
        }
        return last;
    }

    @Test
    void whatIsLeftIsAPrefixThatHasTheLastCommit() throws Exception {
        Random random = new Random(3);
        for (int run = 0; run < 5; run++) {
            Path directory = folder.resolve("run" + run);
            long told = killed(
                    directory, "written", AT_LEAST_ONCE, 0, 3_000 + random.nextInt(15_000));
            KeyValueStore<Bytes, byte[]> store = opened(directory, AT_LEAST_ONCE);
            long committed = store.committedOffset(Task.CHANGELOG);
            assertTrue(committed >= told, committed + " is before " + told);
            assertEquals(0, committed % KilledProgram.COMMIT_EVERY);
            assertEquals(
                    Position.emptyPosition().withComponent("input", 3, committed),
                    store.getPosition());
            assertTrue(lastWrite(store) >= committed);
            store.close();
        }
    }

    @Test
    void commitsWithoutAFlushAreInTheirOrderToo() throws Exception {
        Path directory = folder.resolve("store");
        killed(directory, "written", AT_LEAST_ONCE, 3_600_000, 30_000);
        KeyValueStore<Bytes, byte[]> store = opened(directory, AT_LEAST_ONCE);
        Long committed = store.committedOffset(Task.CHANGELOG);
        long last = lastWrite(store);
        assertTrue(committed != null && last >= committed, last + " is before " + committed);
        assertTrue(last < committed + 2L * KilledProgram.COMMIT_EVERY, "it is much behind");
        store.close();
    }

    @Test
    void aStoreWithoutAChangelogHasEachCommitThatFlushes() throws Exception {
        for (int run = 0; run < 3; run++) {
            Path directory = folder.resolve("run" + run);
            long told = killed(directory, "unlogged", AT_LEAST_ONCE, 1, 5_000 + 1_000 * run);
            KeyValueStore<Bytes, byte[]> store = opened(directory, AT_LEAST_ONCE);
            long last = lastWrite(store);
            assertTrue(last >= told, last + " is before " + told);
            store.close();
        }
    }

    /** Checks that entries in the order of time are those from the first write to some other. */
    private static <K> List<Long> prefix(KeyValueIterator<K, byte[]> entries, long told) {
        List<Long> numbers = new ArrayList<>();
        try (entries) {
            entries.forEachRemaining(entry ->
                    numbers.add(ByteBuffer.wrap(entry.value).getLong()));
        }
        assertEquals(LongStream.range(0, numbers.size()).boxed().toList(), numbers);
        assertTrue(numbers.size() > told, numbers.size() + " entries, told of " + told);
        return numbers;
    }

    private static void assertNumber(long number, byte[] value) {
        assertEquals(number, ByteBuffer.wrap(value).getLong());
    }

    @Test
    void windowsThatAreEmittedAtTheirCloseAreAPrefixInBothOrders() throws Exception {
        long told = killed(folder, "windows", AT_LEAST_ONCE, 0, 10_000);
        WindowStore<Bytes, byte[]> store =
                new Task(folder).open(Backend.SHINGLE.windowAtClose(KilledProgram.AGE));
        for (long number : prefix(store.fetchAll(0, Long.MAX_VALUE), told)) {
            assertNumber(number, store.fetch(Bytes.wrap(KilledProgram.key(number)), number));
        }
        store.close();
    }

    @Test
    void sessionsThatAreEmittedAtTheirCloseAreAPrefixInBothOrders() throws Exception {
        long told = killed(folder, "sessions", AT_LEAST_ONCE, 0, 10_000);
        SessionStore<Bytes, byte[]> store =
                new Task(folder).open(Backend.SHINGLE.sessionAtClose(KilledProgram.AGE));
        for (long number : prefix(store.findSessions(0, Long.MAX_VALUE), told)) {
            Bytes key = KilledProgram.session(number).key();
            assertNumber(number, store.fetchSession(key, number, number));
        }
        store.close();
    }

    @Test
    void aVersionIsTheLatestOneOrHasItsPlaceAmongEarlierOnes() throws Exception {
        long told = killed(folder, "versions", AT_LEAST_ONCE, 0, 10_000);
        VersionedBytesStore store =
                new Task(folder).open(Backend.SHINGLE.versioned(KilledProgram.AGE));
        long last = -1;
        for (long number = 0; number < KilledProgram.KEYS; number++) {
            byte[] latest = store.get(Bytes.wrap(KilledProgram.key(number)));
            last = Math.max(last, latest == null ? -1 : version(latest));
        }
        assertTrue(last >= told, last + " is before " + told);
        for (long number = 0; number <= last; number++) {
            Bytes key = Bytes.wrap(KilledProgram.key(number));
            assertEquals(number, version(store.get(key, number)));
            long next = number + KilledProgram.KEYS;
            assertEquals(number, version(store.get(key, Math.min(next - 1, last))));
        }
        store.close();
    }

    /** The number in a value of a versioned store, behind its time. */
    private static long version(byte[] value) {
        return ByteBuffer.wrap(value).getLong(Long.BYTES);
    }

    @Test
    void valuesWithHeadersAreAPrefixThatHasTheLastCommit() throws Exception {
        long told = killed(folder, "headers", AT_LEAST_ONCE, 0, 10_000);
        KeyValueStore<Bytes, byte[]> store =
                new Task(folder).open(Backend.SHINGLE_HEADERS.keyValue("store"));
        long committed = store.committedOffset(Task.CHANGELOG);
        assertTrue(committed >= told, committed + " is before " + told);
        assertTrue(lastWrite(store) >= committed);
        store.close();
    }

    @Test
    void whatIsLeftHasTheShapeOfItsStore() throws Exception {
        killed(folder, "written", AT_LEAST_ONCE, 0, 5_000);
        KeyValueStore<Bytes, byte[]> store =
                new Task(folder).open(Backend.SHINGLE_HEADERS.keyValue("store"));
        assertNull(store.committedOffset(Task.CHANGELOG));
        assertEquals(-1, lastWrite(store));
        store.close();
    }

    @Test
    void underExactlyOnceAKilledActiveTaskIsBuiltAnew() throws Exception {
        Path directory = folder.resolve("store");
        killed(directory, "written", EXACTLY_ONCE, 0, 5_000);
        assertThrows(TaskCorruptedException.class, () -> opened(directory, EXACTLY_ONCE));
        opened(directory, AT_LEAST_ONCE).close();
    }

    @Test
    void underExactlyOnceAKilledStandbyGoesOn() throws Exception {
        Path directory = folder.resolve("store");
        long told = killed(directory, "restored", EXACTLY_ONCE, 0, 5_000);
        KeyValueStore<Bytes, byte[]> store = opened(directory, EXACTLY_ONCE);
        long committed = store.committedOffset(Task.CHANGELOG);
        assertTrue(committed >= told && lastWrite(store) >= committed);
        store.close();
    }

    @Test
    void writesThatAreHeldAreThereWithTheirCommitOrNotAtAll() throws Exception {
        for (int run = 0; run < 3; run++) {
            Path directory = folder.resolve("run" + run);
            long told = killed(directory, "written", AT_LEAST_ONCE, 0, 64 << 20, 4_000 + run);
            // Nothing but what was committed: so it is as good for exactly-once.
            KeyValueStore<Bytes, byte[]> store = opened(directory, EXACTLY_ONCE);
            long committed = store.committedOffset(Task.CHANGELOG);
            assertTrue(committed >= told);
            assertEquals(committed, lastWrite(store));
            store.close();
        }
    }

    @Test
    void underExactlyOnceACleanEndIsNoReasonToBuildAnew() {
        Task task = new Task(folder, "processing.guarantee", EXACTLY_ONCE);
        KeyValueStore<Bytes, byte[]> store =
                task.open(ShingleStoreSuppliers.keyValueStore("store").get());
        store.put(Task.bytes("a"), Task.value("b"));
        task.commit(store, 1L);
        store.close();
        task.open(store);
        assertEquals(1, store.committedOffset(Task.CHANGELOG));
        store.put(Task.bytes("a"), Task.value("c"));
        store.close();
        assertThrows(TaskCorruptedException.class, () -> task.open(store));
        assertNull(store.getPosition().getPartitionPositions("input").get(0));
    }
}
