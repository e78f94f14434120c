package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.all;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.text;
import static org.shingle.kafka.Task.value;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What every key-value store does, and every store: offsets, positions, queries, life. */
class KeyValueContractTest {
    private static final String CONSISTENCY =
            org.apache.kafka.streams.StreamsConfig.InternalConfig
                    .IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED;

    @TempDir Path folder;

    private KeyValueStore<Bytes, byte[]> filled(Task task, Backend backend) {
        KeyValueStore<Bytes, byte[]> store = task.open(backend.keyValue("store"));
        for (String key : List.of("b", "a", "ab", "\u00ff", "c", "b\0")) {
            store.put(bytes(key), value(key.toUpperCase()));
        }
        return store;
    }

    @ParameterizedTest
    @EnumSource
    void entriesAreReadWrittenAndDeleted(Backend backend) {
        KeyValueStore<Bytes, byte[]> store = filled(backend.task(folder), backend);
        assertTrue(store.persistent() && store.isOpen() && store.name().equals("store"));
        assertTrue(backend.hasHeaders()
                ? store instanceof HeadersBytesStore : store instanceof TimestampedBytesStore);
        assertEquals("AB", text(store.get(bytes("ab"))));
        assertNull(store.get(bytes("abc")));
        store.put(bytes("empty"), new byte[0]);
        assertArrayEquals(new byte[0], store.get(bytes("empty")));
        store.put(bytes("a"), null);
        assertNull(store.get(bytes("a")));
        assertEquals("B", text(store.delete(bytes("b"))));
        assertNull(store.delete(bytes("b")));
        assertEquals("C", text(store.putIfAbsent(bytes("c"), value("other"))));
        assertEquals("C", text(store.get(bytes("c"))));
        assertNull(store.putIfAbsent(bytes("d"), value("D")));
        assertNull(store.putIfAbsent(bytes("e"), null));
        assertEquals("D", text(store.get(bytes("d"))));
        store.putAll(List.of(
                KeyValue.pair(bytes("d"), null),
                KeyValue.pair(bytes("f"), value("first")),
                KeyValue.pair(bytes("f"), value("second"))));
        assertNull(store.get(bytes("d")));
        assertEquals("second", text(store.get(bytes("f"))));
        assertThrows(NullPointerException.class, () -> store.put(null, value("a")));
        assertThrows(NullPointerException.class, () -> store.delete(null));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void rangesIncludeBothBoundsInBothDirections(Backend backend) {
        KeyValueStore<Bytes, byte[]> store = filled(backend.task(folder), backend);
        List<String> all = all(store.all());
        assertEquals(6, all.size());
        assertEquals(List.of("a=A", "ab=AB", "b=B", "b\\x00=B\0", "c=C"), all.subList(0, 5));
        List<String> reversed = new ArrayList<>(all);
        java.util.Collections.reverse(reversed);
        assertEquals(reversed, all(store.reverseAll()));
        assertEquals(all.subList(1, 3), all(store.range(bytes("aa"), bytes("b"))));
        assertEquals(List.of("b=B", "ab=AB"), all(store.reverseRange(bytes("aa"), bytes("b"))));
        assertEquals(all.subList(2, 6), all(store.range(bytes("b"), null)));
        assertEquals(all.subList(0, 3), all(store.range(null, bytes("b"))));
        assertEquals(reversed, all(store.reverseRange(null, null)));
        assertEquals(List.of(), all(store.range(bytes("c"), bytes("a"))));
        assertEquals(List.of("a=A"), all(store.range(bytes("a"), bytes("a"))));
        assertEquals(
                List.of("b=B", "b\\x00=B\0"), all(store.prefixScan("b", new StringSerializer())));
        assertEquals(List.of(), all(store.prefixScan("x", new StringSerializer())));
        assertTrue(store.approximateNumEntries() >= 6);
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void anIteratorShowsOneMomentAndEndsWithItsStore(Backend backend) {
        KeyValueStore<Bytes, byte[]> store = filled(backend.task(folder), backend);
        KeyValueIterator<Bytes, byte[]> iterator = store.range(bytes("b"), bytes("c"));
        store.put(bytes("bb"), value("new"));
        store.delete(bytes("c"));
        assertEquals(bytes("b"), iterator.next().key);
        assertEquals(bytes("b\0"), iterator.peekNextKey());
        assertEquals(bytes("b\0"), iterator.next().key);
        assertEquals(bytes("c"), iterator.next().key);
        assertFalse(iterator.hasNext());
        assertThrows(java.util.NoSuchElementException.class, iterator::next);
        assertThrows(java.util.NoSuchElementException.class, iterator::peekNextKey);
        iterator.close();
        assertThrows(InvalidStateStoreException.class, iterator::hasNext);
        KeyValueIterator<Bytes, byte[]> open = store.all();
        open.next();
        store.close();
        assertThrows(InvalidStateStoreException.class, open::hasNext);
    }

    @ParameterizedTest
    @EnumSource
    void aClosedStoreRefusesAndOpensAgain(Backend backend) {
        Task task = backend.task(folder);
        KeyValueStore<Bytes, byte[]> store = filled(task, backend);
        task.commit(store, 1L);
        store.close();
        store.close();
        assertFalse(store.isOpen());
        assertThrows(InvalidStateStoreException.class, () -> store.get(bytes("a")));
        assertThrows(InvalidStateStoreException.class, () -> store.put(bytes("a"), value("a")));
        assertThrows(InvalidStateStoreException.class, store::all);
        assertThrows(InvalidStateStoreException.class, store::approximateNumEntries);
        task.open(store);
        assertEquals("C", text(store.get(bytes("c"))));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    @SuppressWarnings("deprecation") // what it says is true as long as Kafka asks for it
    void offsetsAndPositionComeBackAsTheyWereCommitted(Backend backend) {
        Task task = backend.task(folder);
        KeyValueStore<Bytes, byte[]> store = task.open(backend.keyValue("store"));
        assertTrue(store.managesOffsets());
        assertNull(store.committedOffset(Task.CHANGELOG));
        task.record("input", 7);
        store.put(bytes("a"), value("A"));
        task.record("other", 2);
        store.putAll(List.of(KeyValue.pair(bytes("b"), value("B"))));
        task.record("input", 5);
        store.delete(bytes("b"));
        Position position = Position.emptyPosition()
                .withComponent("input", 3, 7)
                .withComponent("other", 3, 2);
        assertEquals(position, store.getPosition());
        task.commit(store, 11L);
        assertEquals(11, store.committedOffset(Task.CHANGELOG));
        store.close();
        task.open(store);
        assertEquals(11, store.committedOffset(Task.CHANGELOG));
        assertEquals(position, store.getPosition());
        task.commit(store, -4L);
        assertEquals(-4, store.committedOffset(Task.CHANGELOG), "unknown, as Kafka gives it");
        TopicPartition other = new TopicPartition("changelog", 4);
        store.commit(Map.of(Task.CHANGELOG, 12L, other, 13L));
        task.commit(store, null);
        assertNull(store.committedOffset(Task.CHANGELOG));
        assertEquals(13, store.committedOffset(other));
        store.commit(Map.of());
        assertNull(store.committedOffset(other));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void restoredRecordsAreEntriesInTheOrderOfTheirOffsets(Backend backend) {
        Task task = backend.task(folder, CONSISTENCY, true);
        KeyValueStore<Bytes, byte[]> store = task.open(backend.keyValue("store"));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int number = 2000; number > 0; number--) {
            Position position = Position.emptyPosition().withComponent("input", 3, 3000 - number);
            String key = "key" + number % 1000;
            records.add(Task.changelog(value(key), value("v" + number), 0, position));
        }
        records.add(Task.changelog(value("key5"), null, 0, null));
        task.restore(records);
        assertNull(store.get(bytes("key5")));
        assertEquals("v6", text(store.get(bytes("key6"))));
        assertEquals("v1000", text(store.get(bytes("key0"))));
        assertEquals(999, all(store.all()).size());
        assertEquals(
                Position.emptyPosition().withComponent("input", 3, 2999), store.getPosition());
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void queriesAreAnsweredWithinTheirBounds(Backend backend) {
        Task task = backend.task(folder);
        task.record("input", 9);
        KeyValueStore<Bytes, byte[]> store = filled(task, backend);
        QueryConfig config = new QueryConfig(true);
        KeyQuery<Bytes, byte[]> keyQuery = KeyQuery.withKey(bytes("ab"));
        QueryResult<byte[]> found = store.query(keyQuery, PositionBound.unbounded(), config);
        if (!backend.knowsQueries()) {
            assertEquals(FailureReason.UNKNOWN_QUERY_TYPE, found.getFailureReason());
            store.close();
            return;
        }
        assertEquals("AB", text(found.getResult()));
        assertEquals(store.getPosition(), found.getPosition());
        assertFalse(found.getExecutionInfo().isEmpty());
        Position reached = Position.emptyPosition().withComponent("input", 3, 9);
        assertTrue(store.query(keyQuery, PositionBound.at(reached), config).isSuccess());
        Position ahead = Position.emptyPosition().withComponent("input", 3, 10);
        QueryResult<byte[]> behind = store.query(keyQuery, PositionBound.at(ahead), config);
        assertEquals(FailureReason.NOT_UP_TO_BOUND, behind.getFailureReason());
        RangeQuery<Bytes, byte[]> range = RangeQuery.withRange(bytes("a"), bytes("b"));
        PositionBound none = PositionBound.unbounded();
        assertEquals(
                List.of("a=A", "ab=AB", "b=B"), all(store.query(range, none, config).getResult()));
        assertEquals(
                List.of("b=B", "ab=AB", "a=A"),
                all(store.query(range.withDescendingKeys(), none, config).getResult()));
        RangeQuery<Bytes, byte[]> every = RangeQuery.withNoBounds();
        assertEquals(all(store.all()), all(store.query(every, none, config).getResult()));
        var other = WindowKeyQuery.<Bytes, byte[]>withKeyAndWindowStartRange(
                bytes("a"), java.time.Instant.EPOCH, java.time.Instant.EPOCH);
        QueryResult<?> unknown = store.query(other, none, config);
        assertEquals(FailureReason.UNKNOWN_QUERY_TYPE, unknown.getFailureReason());
        store.close();
        assertTrue(store.query(keyQuery, none, config).isFailure());
    }
}
