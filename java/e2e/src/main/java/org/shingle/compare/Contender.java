package org.shingle.compare;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;

/**
 * A store to compare, by its name: {@code rocksdb} as Kafka Streams sets it up, {@code
 * rocksdb-bounded} within the memory that Shingle gets, {@code shingle} with its defaults, and
 * {@code shingle-X} with a scheme or a value layout.
 */
record Contender(String name) {
    private static final String ROCKSDB =
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers";
    private static final String SHINGLE = "org.shingle.kafka.ShingleDslStoreSuppliers";

    /** Value layouts of Shingle; what else follows the name is a scheme. */
    private static final java.util.Set<String> LAYOUTS = java.util.Set.of("log", "hashed");

    boolean isShingle() {
        return name.startsWith("shingle");
    }

    /**
     * The properties of an application that uses the store.
     *
     * @param more properties for the stores of Shingle
     */
    Map<String, Object> properties(long memoryBytes, Map<String, String> more) {
        Map<String, Object> all = new HashMap<>();
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, "compare");
        all.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.AT_LEAST_ONCE);
        all.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "INFO");
        if (isShingle()) {
            all.put("shingle.memory.bytes", Long.toString(memoryBytes));
            if (name.contains("-")) {
                String variant = name.substring(name.indexOf('-') + 1);
                String option = LAYOUTS.contains(variant) ? "shingle.values" : "shingle.scheme";
                all.put(option, variant);
            }
            all.putAll(more);
        } else if (name.equals("rocksdb-bounded")) {
            all.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, BoundedMemory.class);
            all.put(BoundedMemory.BYTES, Long.toString(memoryBytes));
        } else if (!name.equals("rocksdb")) {
            throw new IllegalArgumentException("unknown store " + name);
        }
        return all;
    }

    KeyValueBytesStoreSupplier supplier() throws ReflectiveOperationException {
        Class<?> suppliers = Class.forName(isShingle() ? SHINGLE : ROCKSDB);
        DslStoreSuppliers dsl =
                (DslStoreSuppliers) suppliers.getDeclaredConstructor().newInstance();
        return dsl.keyValueStore(new DslKeyValueParams("state", DslStoreFormat.TIMESTAMPED));
    }
}
