package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.TimestampedKeyQuery;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStoreWithHeaders;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stores whose values have headers, behind Kafka's own wrappers. */
class HeadersTest {
    @TempDir Path folder;

    private static TimestampedKeyValueStoreWithHeaders<String, String> store() {
        return Stores.timestampedKeyValueStoreWithHeadersBuilder(
                ShingleStoreSuppliers.timestampedKeyValueStoreWithHeaders("store"),
                Serdes.String(), Serdes.String())
                .withLoggingDisabled()
                .build();
    }

    private static Headers headers(String text) {
        return new RecordHeaders().add("of", text.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void headersComeBackAndQueriesAreAnswered() {
        Task task = new Task(folder);
        var store = task.open(store());
        store.put("a", ValueTimestampHeaders.make("A", 7, headers("a")));
        store.put("b", ValueTimestampHeaders.make("B", 8, headers("b")));
        task.commit(store, 1L);
        store.close();
        var opened = task.open(store());
        ValueTimestampHeaders<String> found = opened.get("a");
        assertEquals("A", found.value());
        assertEquals(7, found.timestamp());
        assertEquals(headers("a"), found.headers());
        PositionBound none = PositionBound.unbounded();
        QueryConfig config = new QueryConfig(false);
        assertEquals("A", opened.query(KeyQuery.<String, String>withKey("a"), none, config)
                .getResult());
        var timed = opened.query(
                TimestampedKeyQuery.<String, String>withKey("b"), none, config).getResult();
        assertEquals("B", timed.value());
        assertEquals(8, timed.timestamp());
        try (var range = opened.query(
                RangeQuery.<String, String>withLowerBound("b"), none, config).getResult()) {
            assertTrue(range.hasNext());
            assertEquals("B", range.next().value);
            assertFalse(range.hasNext());
        }
        opened.close();
    }
}
