package org.shingle.orders;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/** Interactive queries of the instance's own stores. */
final class Queries {
    private final KafkaStreams streams;
    private final int partitions;

    /** Queries of an instance whose topics have this many partitions. */
    Queries(KafkaStreams streams, int partitions) {
        this.streams = streams;
        this.partitions = partitions;
    }

    /** Who has a key. */
    Map<String, Object> owner(String store, String key) {
        KeyQueryMetadata owner = metadata(store, key);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("partition", owner.partition());
        answer.put("active", name(owner.activeHost()));
        answer.put("standbys", owner.standbyHosts().stream().map(Queries::name).toList());
        return answer;
    }

    /**
     * The tally of each key that this instance may answer for.
     *
     * @param stale whether a standby may answer
     * @param bound what the store has to have seen, or null
     */
    Map<String, Object> tallies(String store, List<String> keys, boolean stale, Position bound) {
        Map<String, Object> answers = new LinkedHashMap<>();
        for (String key : keys) {
            int partition = partition(key);
            StateQueryRequest<Tally> request = StateQueryRequest.inStore(store)
                    .withQuery(KeyQuery.<String, Tally>withKey(key))
                    .withPartitions(Set.of(partition))
                    .withPositionBound(
                            bound == null ? PositionBound.unbounded() : PositionBound.at(bound));
            QueryResult<Tally> result = streams.query(stale ? request : request.requireActive())
                    .getPartitionResults().get(partition);
            answers.put(key, answer(result));
        }
        return answers;
    }

    /** Gives every entry of the active tasks of a store, as a line with tabs. */
    void dump(String store, Consumer<String> line) {
        switch (store) {
            case OrdersTopology.BY_WINDOW, OrdersTopology.RECENT -> windows(store, line);
            case OrdersTopology.VISITS -> sessions(store, line);
            case OrdersTopology.BY_REGION -> regions(store, line);
            default -> customers(store, line);
        }
    }

    private static Map<String, Object> answer(QueryResult<Tally> result) {
        Map<String, Object> answer = new LinkedHashMap<>();
        if (result == null || result.isFailure()) {
            answer.put("failure", result == null ? "NOT_PRESENT" : result.getFailureReason());
            return answer;
        }
        Tally tally = result.getResult();
        answer.put("count", tally == null ? 0 : tally.count());
        answer.put("replays", tally == null ? 0 : tally.replays());
        answer.put("position", Positions.text(result.getPosition()));
        return answer;
    }

    private void customers(String store, Consumer<String> line) {
        var type = QueryableStoreTypes.<String, Tally>keyValueStore();
        try (var entries = streams.store(StoreQueryParameters.fromNameAndType(store, type)).all()) {
            entries.forEachRemaining(entry -> line.accept(entry.key + text(entry.value)));
        }
    }

    private void regions(String store, Consumer<String> line) {
        var type = QueryableStoreTypes.<String, Sales>keyValueStore();
        try (var entries = streams.store(StoreQueryParameters.fromNameAndType(store, type)).all()) {
            entries.forEachRemaining(entry -> line.accept(entry.key + "\t" + entry.value.count()
                    + "\t" + entry.value.cents() + "\t" + entry.value.replays()));
        }
    }

    private void windows(String store, Consumer<String> line) {
        var type = QueryableStoreTypes.<String, Tally>windowStore();
        try (var entries = streams.store(StoreQueryParameters.fromNameAndType(store, type)).all()) {
            entries.forEachRemaining(entry -> line.accept(
                    entry.key.key() + "@" + entry.key.window().start() + text(entry.value)));
        }
    }

    private void sessions(String store, Consumer<String> line) {
        var type = QueryableStoreTypes.<String, Tally>sessionStore();
        var sessions = streams.store(StoreQueryParameters.fromNameAndType(store, type));
        try (var entries = sessions.fetch(null, null)) {
            entries.forEachRemaining(entry -> line.accept(entry.key.key() + "@"
                    + entry.key.window().start() + "-" + entry.key.window().end()
                    + text(entry.value)));
        }
    }

    /**
     * The partition of a key, as the default partitioner has it. The metadata of Kafka Streams is
     * not asked: under the group protocol {@code streams} it counts the partitions of instances
     * that are alive, so it names a wrong partition after a failure (seen with 4.3.1).
     */
    private int partition(String key) {
        return Codecs.partition(key, partitions);
    }

    private KeyQueryMetadata metadata(String store, String key) {
        KeyQueryMetadata metadata = streams.queryMetadataForKey(store, key,
                (topic, name, value, count) -> Optional.of(Set.of(partition(key))));
        if (metadata == null || metadata.equals(KeyQueryMetadata.NOT_AVAILABLE)) {
            throw new IllegalStateException("it is not known yet which instance has " + key);
        }
        return metadata;
    }

    private static String text(Tally tally) {
        return "\t" + tally.count() + "\t" + tally.cents() + "\t" + tally.replays();
    }

    private static String name(HostInfo host) {
        return host.host() + ":" + host.port();
    }
}
