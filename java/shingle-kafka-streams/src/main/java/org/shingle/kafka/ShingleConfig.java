package org.shingle.kafka;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.StreamsConfig;
import org.shingle.Options;
import org.shingle.Resources;
import org.shingle.ShingleException;

/**
 * The properties of an application that are for its stores.
 *
 * <p>{@code shingle.NAME} sets an option of Shingle for all stores: {@code shingle.scheme}, {@code
 * shingle.memory.bytes}. {@code shingle.store.STORE.NAME} sets it for one store. Points in a name
 * stand for the underscores of Shingle's own names.
 */
public final class ShingleConfig {
    /** What the names of all properties begin with. */
    public static final String PREFIX = "shingle.";

    /** What the names of properties of one store begin with; the name of the store follows. */
    public static final String STORE_PREFIX = PREFIX + "store.";

    /** The memory of all stores of an application together: {@value}, {@code 256M} unless set. */
    public static final String MEMORY_BYTES = PREFIX + "memory.bytes";

    /** How many threads flush and compact all stores of an application: {@value}. */
    public static final String BACKGROUND_THREADS = PREFIX + "background.threads";

    /** How many bytes compaction of all stores writes in a second: {@value}; 0, no limit. */
    public static final String BACKGROUND_BYTES_PER_SECOND =
            PREFIX + "background.bytes.per.second";

    /**
     * The minimum time in milliseconds from one commit of a store that is flushed to the next:
     * {@value}, 10,000 unless it is set. Kafka commits every 30 seconds, so that each commit is
     * flushed; under exactly-once it commits standby tasks every 100 ms.
     */
    public static final String COMMIT_INTERVAL_MS = PREFIX + "commit.interval.ms";

    /**
     * How many bytes of writes each store holds in memory until its task commits: {@value}. 0,
     * unless it is set: writes do not wait. A store that has more writes them before the commit.
     */
    public static final String HELD_BYTES = PREFIX + "held.bytes";

    private static final String MEMORY_BYTES_DEFAULT = "256M";
    private static final String BACKGROUND_THREADS_DEFAULT = "2";
    private static final String COMMIT_INTERVAL_MS_DEFAULT = "10000";

    /** What is not for the database. */
    private static final Set<String> OWN = Set.of(COMMIT_INTERVAL_MS, HELD_BYTES);

    /** What all stores share, so that no store has its own. */
    private static final Set<String> SHARED = Set.of(
            "memory_bytes", "cache_bytes", "background_threads", "background_bytes_per_second");

    private final Map<String, Object> properties;

    ShingleConfig(Map<String, Object> properties) {
        this.properties = properties;
    }

    /** Whether the application processes each record exactly once. */
    boolean isExactlyOnce() {
        Object guarantee = properties.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        return StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee);
    }

    /** Whether changelog records carry the position of their store. */
    boolean hasPositionsInChangelog() {
        return StreamsConfig.InternalConfig.getBoolean(
                properties, StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
    }

    /** What the stores of an application share. */
    Resources resources() {
        return Resources.within(
                shared(MEMORY_BYTES, MEMORY_BYTES_DEFAULT),
                Math.toIntExact(shared(BACKGROUND_THREADS, BACKGROUND_THREADS_DEFAULT)),
                shared(BACKGROUND_BYTES_PER_SECOND, "0"));
    }

    /** A property for all stores, in the form that options of Shingle have: {@code 64M}. */
    private long shared(String name, String usual) {
        String option = shingleName(name, PREFIX);
        String value = String.valueOf(properties.getOrDefault(name, usual)).strip();
        Options options = new Options();
        set(options, option, value);
        String line = option + "=";
        return options.toString().lines()
                .map(text -> text.replace(" ", ""))
                .filter(text -> text.startsWith(line))
                .mapToLong(text -> Long.parseLong(text.substring(line.length())))
                .findFirst()
                .orElseThrow();
    }

    long commitIntervalMs() {
        return number(COMMIT_INTERVAL_MS, COMMIT_INTERVAL_MS_DEFAULT);
    }

    long heldBytesMax() {
        return number(HELD_BYTES, "0");
    }

    private long number(String name, String usual) {
        Object value = properties.getOrDefault(name, usual);
        try {
            return Long.parseLong(value.toString().strip());
        } catch (NumberFormatException error) {
            throw new ConfigException(name, value, "it is not a whole number");
        }
    }

    /** The options of a store's database. */
    Options options(String store) {
        Options options = new Options();
        named(store).forEach((name, value) -> set(options, name, value));
        return options;
    }

    private void set(Options options, String name, String value) {
        try {
            options.set(name, value);
        } catch (ShingleException error) {
            throw new ConfigException(PREFIX + name, value, error.getMessage());
        }
    }

    /** The options for a store by Shingle's names. Its own overrule those for all. */
    private Map<String, String> named(String store) {
        Map<String, String> named = new TreeMap<>();
        String own = STORE_PREFIX + store + ".";
        properties.forEach((name, value) -> {
            boolean isForAll = name.startsWith(PREFIX) && !name.startsWith(STORE_PREFIX);
            if (isForAll && !OWN.contains(name) && !isShared(name)) {
                named.putIfAbsent(shingleName(name, PREFIX), String.valueOf(value));
            }
            if (name.startsWith(own)) {
                named.put(ownName(name, own), String.valueOf(value));
            }
        });
        return named;
    }

    /** Whether the property is for what the stores share. */
    private static boolean isShared(String name) {
        String option = shingleName(name, PREFIX);
        if (option.equals("cache_bytes")) {
            throw new ConfigException(
                    name + ": the cache of the stores has what " + MEMORY_BYTES + " leaves");
        }
        return SHARED.contains(option);
    }

    private static String ownName(String name, String prefix) {
        String own = shingleName(name, prefix);
        if (SHARED.contains(own)) {
            throw new ConfigException(
                    name + ": all stores of an application share this; set it without \"store.\" "
                            + "and the name of the store");
        }
        return own;
    }

    private static String shingleName(String name, String prefix) {
        return name.substring(prefix.length()).replace('.', '_');
    }
}
