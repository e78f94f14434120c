package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.text;
import static org.shingle.kafka.Task.value;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.VersionedKeyQuery;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What every versioned store does. */
class VersionedContractTest {
    private static final Duration RETENTION = Duration.ofMinutes(2);
    private static final QueryConfig CONFIG = new QueryConfig(false);

    @TempDir Path folder;

    /** A value with its time, as the adapter of versioned stores gives it. */
    private static String timed(byte[] found) {
        if (found == null) {
            return null;
        }
        long time = ByteBuffer.wrap(found).getLong();
        return time + ":" + text(Arrays.copyOfRange(found, Long.BYTES, found.length));
    }

    private static String versions(
            VersionedBytesStore store, String key, long from, long to, boolean isAscending) {
        MultiVersionedKeyQuery<Bytes, byte[]> query =
                MultiVersionedKeyQuery.<Bytes, byte[]>withKey(bytes(key))
                        .fromTime(Instant.ofEpochMilli(from))
                        .toTime(Instant.ofEpochMilli(to));
        query = isAscending ? query.withAscendingTimestamps() : query.withDescendingTimestamps();
        VersionedRecordIterator<byte[]> found =
                store.query(query, PositionBound.unbounded(), CONFIG).getResult();
        List<String> texts = new ArrayList<>();
        try (found) {
            found.forEachRemaining(version -> texts.add(described(version)));
        }
        return String.join(" ", texts);
    }

    private static String described(VersionedRecord<byte[]> version) {
        return text(version.value()) + "@" + version.timestamp() + "-"
                + version.validTo().map(String::valueOf).orElse("");
    }

    @ParameterizedTest
    @EnumSource
    void earlierValuesAreReadByTime(Backend backend) {
        VersionedBytesStore store = backend.task(folder).open(backend.versioned(RETENTION));
        assertEquals(-1, store.put(bytes("k"), value("a"), 10_000));
        assertEquals(-1, store.put(bytes("k"), value("c"), 30_000));
        assertEquals(30_000, store.put(bytes("k"), value("b"), 20_000));
        assertEquals(10_000, store.put(bytes("k"), value("0"), 5_000));
        assertEquals("30000:c", timed(store.get(bytes("k"))));
        assertEquals("20000:b", timed(store.get(bytes("k"), 29_999)));
        assertEquals("20000:b", timed(store.get(bytes("k"), 20_000)));
        assertEquals("10000:a", timed(store.get(bytes("k"), 19_999)));
        assertEquals("5000:0", timed(store.get(bytes("k"), 5_000)));
        assertNull(store.get(bytes("k"), 4_999));
        assertNull(store.get(bytes("kk")));
        assertEquals(
                "0@5000-10000 a@10000-20000 b@20000-30000 c@30000-",
                versions(store, "k", 0, 99_999, true));
        assertEquals(
                "b@20000-30000 a@10000-20000", versions(store, "k", 15_000, 25_000, false));
        VersionedKeyQuery<Bytes, byte[]> query =
                VersionedKeyQuery.<Bytes, byte[]>withKey(bytes("k"))
                        .asOf(Instant.ofEpochMilli(12_000));
        assertEquals(
                "a@10000-20000",
                described(store.query(query, PositionBound.unbounded(), CONFIG).getResult()));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void deletionsAreVersionsToo(Backend backend) {
        VersionedBytesStore store = backend.task(folder).open(backend.versioned(RETENTION));
        store.put(bytes("k"), value("a"), 10_000);
        assertEquals("10000:a", timed(store.delete(bytes("k"), 20_000)));
        assertNull(store.get(bytes("k")));
        assertNull(store.get(bytes("k"), 20_000));
        assertEquals("10000:a", timed(store.get(bytes("k"), 19_999)));
        assertEquals(20_000, store.put(bytes("k"), value("b"), 15_000));
        assertNull(store.get(bytes("k")), "the deletion came later");
        assertEquals(-1, store.put(bytes("k"), value("c"), 30_000));
        assertNull(store.get(bytes("k"), 25_000));
        assertEquals(30_000, store.put(bytes("k"), value("d"), 25_000));
        assertEquals("25000:d", timed(store.get(bytes("k"), 29_000)));
        assertNull(store.get(bytes("k"), 24_000));
        store.put(bytes("new"), null, 40_000);
        assertEquals(40_000, store.put(bytes("new"), value("e"), 35_000));
        assertNull(store.get(bytes("new")));
        assertEquals("35000:e", timed(store.get(bytes("new"), 36_000)));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void historyEndsWithItsRetention(Backend backend) {
        Task task = backend.task(folder);
        VersionedBytesStore store = task.open(backend.versioned(RETENTION));
        for (long time = 0; time <= 600_000; time += 10_000) {
            store.put(bytes("k"), value("v" + time), time);
        }
        store.put(bytes("old"), value("stays"), 590_000);
        assertEquals("480000:v480000", timed(store.get(bytes("k"), 480_000)));
        assertNull(store.get(bytes("k"), 479_999));
        assertEquals(Long.MIN_VALUE, store.put(bytes("k"), value("late"), 479_999));
        store.put(bytes("k"), value("now"), 2_000_000);
        assertEquals("590000:stays", timed(store.get(bytes("old"))));
        assertEquals("590000:stays", timed(store.get(bytes("old"), 600_000)));
        task.commit(store, 5L);
        store.close();
        task.open(store);
        assertEquals("2000000:now", timed(store.get(bytes("k"))));
        assertEquals(5, store.committedOffset(Task.CHANGELOG));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void aRestoredStoreHasTheSameVersions(Backend backend) {
        Task task = backend.task(folder);
        VersionedBytesStore store = task.open(backend.versioned(RETENTION));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (long time : new long[] {10_000, 50_000, 30_000, 20_000, 90_000}) {
            byte[] value = time == 30_000 ? null : value("v" + time);
            records.add(Task.changelog(value("k"), value, time, null));
        }
        task.restore(records);
        assertEquals("90000:v90000", timed(store.get(bytes("k"))));
        assertEquals("20000:v20000", timed(store.get(bytes("k"), 29_999)));
        assertNull(store.get(bytes("k"), 49_999));
        assertEquals(
                "v10000@10000-20000 v20000@20000-30000 v50000@50000-90000 v90000@90000-",
                versions(store, "k", 0, 99_999, true));
        store.close();
    }

    /** Batches have keys once and more often, late records, and times that end earlier versions. */
    @ParameterizedTest
    @EnumSource
    void aStoreRestoredInBatchesHasWhatPutsLeave(Backend backend) {
        for (int seed = 0; seed < 5; seed++) {
            Random random = new Random(seed);
            Task task = backend.task(folder.resolve("restored" + seed));
            VersionedBytesStore restored = task.open(backend.versioned(RETENTION));
            VersionedBytesStore written = backend.task(folder.resolve("written" + seed))
                    .open(backend.versioned(RETENTION));
            long now = 0;
            for (int batch = 0; batch < 20; batch++) {
                List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
                for (int left = 1 + random.nextInt(30); left > 0; left--) {
                    now += random.nextInt(10_000);
                    long time = random.nextInt(3) > 0 ? now : Math.max(0, now - 50_000);
                    Bytes key = bytes("k" + random.nextInt(20));
                    byte[] value = random.nextInt(5) == 0 ? null : value("v" + time);
                    records.add(Task.changelog(key.get(), value, time, null));
                    written.put(key, value, time);
                }
                task.restore(records);
            }
            for (int number = 0; number < 20; number++) {
                String key = "k" + number;
                assertEquals(
                        versions(written, key, 0, now, true),
                        versions(restored, key, 0, now, true),
                        "seed " + seed + " " + key);
            }
            restored.close();
            written.close();
        }
    }

    /** Against a plain model, with records in any order of time. */
    @ParameterizedTest
    @EnumSource
    void versionsAreThoseOfAMapByTime(Backend backend) {
        for (int seed = 0; seed < 10; seed++) {
            Random random = new Random(seed);
            Task task = backend.task(folder.resolve("" + seed));
            VersionedBytesStore store = task.open(backend.versioned(Duration.ofDays(1)));
            List<TreeMap<Long, String>> models = List.of(new TreeMap<>(), new TreeMap<>());
            for (int call = 0; call < 200; call++) {
                int which = random.nextInt(2);
                TreeMap<Long, String> model = models.get(which);
                Bytes key = bytes("k".repeat(which + 1));
                long time = random.nextInt(400) * 1000L;
                // What a deletion at the time of a value leaves is not agreed.
                boolean isDeletion = random.nextInt(4) == 0 && !model.containsKey(time);
                String value = isDeletion ? null : "v" + call;
                store.put(key, value(value), time);
                model.put(time, value);
                long asOf = random.nextInt(400) * 1000L;
                var entry = model.floorEntry(asOf);
                String expected = entry == null || entry.getValue() == null
                        ? null
                        : entry.getKey() + ":" + entry.getValue();
                String message = "seed " + seed + " call " + call;
                assertEquals(expected, timed(store.get(key, asOf)), message);
                var last = model.lastEntry();
                String latest = last.getValue() == null
                        ? null
                        : last.getKey() + ":" + last.getValue();
                assertEquals(latest, timed(store.get(key)), message);
                Long next = model.higherKey(time);
                assertEquals(
                        next == null ? -1 : next, store.put(key, value(value), time), message);
            }
            store.close();
        }
    }

    @Test
    void aDeletionAtTheTimeOfAValueIsKept() {
        VersionedBytesStore store =
                Backend.SHINGLE.task(folder).open(Backend.SHINGLE.versioned(RETENTION));
        store.put(bytes("k"), value("a"), 10_000);
        store.put(bytes("k"), null, 10_000);
        assertNull(store.get(bytes("k"), 10_000));
        assertEquals(10_000, store.put(bytes("k"), value("b"), 5_000));
        assertNull(store.get(bytes("k")));
        assertTrue(store.isOpen());
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void aTimeBeforeAllVersionsHasNone(Backend backend) {
        VersionedBytesStore store = backend.task(folder).open(backend.versioned(RETENTION));
        store.put(bytes("k"), value("a"), 1_000);
        store.put(bytes("k"), value("b"), 2_000);
        store.put(bytes("k"), value("c"), 3_000);
        assertEquals("", versions(store, "k", -9, -1, true));
        assertEquals("", versions(store, "k", -9, 999, true));
        assertEquals("a@1000-2000", versions(store, "k", -9, 1_000, true));
        store.close();
    }
}
