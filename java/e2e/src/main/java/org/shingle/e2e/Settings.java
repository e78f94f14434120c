package org.shingle.e2e;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.StreamsConfig;
import org.shingle.orders.Application;
import org.shingle.orders.Folders;

/**
 * What a run does.
 *
 * @param store {@code shingle} or {@code rocksdb}
 * @param guarantees of Kafka Streams, in the order in which they are run
 * @param folder everything of the run goes there
 * @param out the folder for the outcome, or null
 * @param rate orders per second
 * @param customers the number of customers
 * @param partitions of each topic
 * @param session after which a member of the group that says nothing counts as gone
 * @param limit when the run has to be over
 * @param isShort whether some steps are done with the first guarantee alone
 * @param pause between the steps, so that there is something to restore
 * @param protocol of the group: {@code classic} or {@code streams}
 * @param more properties of the applications
 */
record Settings(
        String store,
        List<String> guarantees,
        Path folder,
        Path out,
        int rate,
        int customers,
        int partitions,
        Duration session,
        Duration limit,
        boolean isShort,
        Duration pause,
        String protocol,
        Map<String, String> more) {
    private static final Map<String, String> STORES = Map.of(
            "rocksdb",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers",
            "shingle",
            "org.shingle.kafka.ShingleDslStoreSuppliers");

    static Settings of(String[] arguments) throws IOException {
        Map<String, String> options = new HashMap<>();
        Map<String, String> more = new HashMap<>();
        boolean isShort = false;
        for (int n = 0; n < arguments.length; n++) {
            switch (arguments[n]) {
                case "--short" -> isShort = true;
                case "--set" -> {
                    String[] pair = value(arguments, ++n).split("=", 2);
                    more.put(pair[0], pair[1]);
                }
                case "--store", "--guarantee", "--folder", "--out", "--rate", "--protocol" ->
                        options.put(arguments[n], value(arguments, ++n));
                default -> throw new IllegalArgumentException("unknown option " + arguments[n]
                        + ": there are --short, --store, --guarantee, --folder, --out, --rate, "
                        + "--protocol and --set");
            }
        }
        String store = options.getOrDefault("--store", "shingle");
        if (!STORES.containsKey(store)) {
            throw new IllegalArgumentException("--store is shingle or rocksdb, not " + store);
        }
        String guarantee = options.get("--guarantee");
        Path folder = Path.of(options.getOrDefault("--folder", ""));
        return new Settings(
                store,
                guarantee != null ? List.of(guarantee)
                        : List.of(StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2),
                options.containsKey("--folder") ? Folders.removedAtEnd(folder)
                        : Folders.temporary("shingle-e2e"),
                options.containsKey("--out") ? Path.of(options.get("--out")) : null,
                Integer.parseInt(options.getOrDefault("--rate", isShort ? "100" : "1000")),
                isShort ? 90 : 600,
                isShort ? 3 : 6,
                Duration.ofSeconds(isShort ? 4 : 6),
                Duration.ofMinutes(isShort ? 15 : 60),
                isShort,
                Duration.ofSeconds(isShort ? 1 : 30),
                options.getOrDefault("--protocol", "classic"),
                more);
    }

    /** Properties of an instance. */
    Properties streams(String bootstrap, String guarantee, Path state, int port) {
        Properties all = new Properties();
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, "orders-" + guarantee);
        all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        all.put(StreamsConfig.APPLICATION_SERVER_CONFIG, "127.0.0.1:" + port);
        all.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        all.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, STORES.get(store));
        all.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        all.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, "1");
        all.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol);
        boolean exactlyOnce = guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2);
        all.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, exactlyOnce ? "200" : "1000");
        all.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "1000000");
        // Kafka's default of 30 s would leave no offsets in stores that a short run kills.
        all.put("shingle.commit.interval.ms", "1000");
        all.put(StreamsConfig.PROBING_REBALANCE_INTERVAL_MS_CONFIG, "60000");
        all.put("auto.offset.reset", "earliest");
        // Changelogs carry positions, so that standbys know theirs.
        all.put("__iq.consistency.offset.vector.enabled__", "true");
        all.put(Application.PARTITIONS, Integer.toString(partitions));
        all.put(Application.TOPIC_PREFIX, prefix(guarantee));
        String sessionMillis = Long.toString(session.toMillis());
        if (protocol.equals("classic")) {
            all.put("session.timeout.ms", sessionMillis);
            all.put("heartbeat.interval.ms", "1000");
        }
        if (exactlyOnce) {
            all.put("transaction.timeout.ms", sessionMillis);
        }
        all.putAll(more);
        return all;
    }

    /** What the names of topics begin with. */
    static String prefix(String guarantee) {
        return guarantee + "-";
    }

    private static String value(String[] arguments, int n) {
        if (n >= arguments.length) {
            throw new IllegalArgumentException(arguments[n - 1] + " has no value");
        }
        return arguments[n];
    }
}
