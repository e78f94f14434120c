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
     * flushed; under exactly-once it commits standby tasks every 100 ms. A commit begins the flush
     * and does not wait for it. With 0, each commit waits until it is durable.
     */
    public static final String COMMIT_INTERVAL_MS = PREFIX + "commit.interval.ms";

    /**
     * How many bytes of writes each store holds in memory until its task commits: {@value}. 0,
     * unless it is set: writes do not wait. A store that has more writes them before the commit. At
     * most 1 GiB: the commit is one batch.
     */
    public static final String HELD_BYTES = PREFIX + "held.bytes";

    private static final String MEMORY_BYTES_DEFAULT = "256M";
    private static final String BACKGROUND_THREADS_DEFAULT = "2";
    private static final String COMMIT_INTERVAL_MS_DEFAULT = "10000";

    /** What is for the stores and not for their databases. */
    private static final Set<String> OWN = Set.of("commit_interval_ms", "held_bytes");

    /** What all stores share, so that no store has its own. */
    private static final Set<String> SHARED = Set.of(
            "memory_bytes", "cache_bytes", "background_threads", "background_bytes_per_second");

    /** A property that takes all numbers of bytes, and 0. Sizes are read in its form. */
    private static final String ANY_BYTES = "background_bytes_per_second";

    /** The maximum interval: as nanoseconds, twice of it is still a number. */
    private static final long INTERVAL_MS_MAX = Long.MAX_VALUE / 2_000_000;

    /** A batch has at most 2 GiB: these, what describes them, and the write that is too much. */
    private static final long HELD_BYTES_MAX = 1L << 30;

    private final Map<String, Object> properties;

    /** The properties for all stores, by the names of options with underscores. */
    private final Map<String, Setting> forAll = new TreeMap<>();

    ShingleConfig(Map<String, Object> properties) {
        this.properties = properties;
        properties.forEach((name, value) -> {
            if (name.startsWith(PREFIX) && !name.startsWith(STORE_PREFIX)) {
                Setting setting = new Setting(name, value);
                Setting other = forAll.put(shingleName(name.substring(PREFIX.length())), setting);
                if (other != null) {
                    throw new ConfigException(
                            name + " and " + other.property + " are the same property: keep one");
                }
            }
        });
    }

    /** What the user wrote: the whole name of a property, and its value. */
    private record Setting(String property, Object value) {
        String text() {
            return String.valueOf(value).strip();
        }

        ConfigException wrong(String why) {
            return new ConfigException(property, value, why);
        }
    }

    /** Whether the application processes each record exactly once. */
    boolean isExactlyOnce() {
        Object guarantee = properties.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        return StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee);
    }

    /** Whether changelog records carry the position of their store. */
    boolean hasPositionsInChangelog() {
        return StreamsConfig.InternalConfig.getBoolean(
                properties,
                StreamsConfig.InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED,
                false);
    }

    /** What the stores of an application share. */
    Resources resources() {
        return Resources.within(
                shared(MEMORY_BYTES, MEMORY_BYTES_DEFAULT),
                Math.toIntExact(shared(BACKGROUND_THREADS, BACKGROUND_THREADS_DEFAULT)),
                shared(BACKGROUND_BYTES_PER_SECOND, "0"));
    }

    private Setting setting(String name, String usual) {
        Setting usually = new Setting(name, usual);
        return forAll.getOrDefault(shingleName(name.substring(PREFIX.length())), usually);
    }

    private long shared(String name, String usual) {
        return parsed(shingleName(name.substring(PREFIX.length())), setting(name, usual));
    }

    /** A number in the form that an option of Shingle has: {@code 64M}. */
    private static long parsed(String option, Setting setting) {
        Options options = new Options();
        set(options, option, setting);
        String text = listed(options).get(option);
        return Long.parseLong(text);
    }

    /** The options with their values, by their names. */
    private static Map<String, String> listed(Options options) {
        Map<String, String> listed = new TreeMap<>();
        options.toString().lines().filter(line -> line.contains("=")).forEach(line -> {
            int at = line.indexOf('=');
            listed.put(line.substring(0, at).strip(), line.substring(at + 1).strip());
        });
        return listed;
    }

    long commitIntervalMs() {
        Setting setting = setting(COMMIT_INTERVAL_MS, COMMIT_INTERVAL_MS_DEFAULT);
        long interval;
        try {
            interval = Long.parseLong(setting.text());
        } catch (NumberFormatException error) {
            throw setting.wrong("it is not a whole number of milliseconds");
        }
        if (interval < 0 || interval > INTERVAL_MS_MAX) {
            throw setting.wrong("it is from 0 to " + INTERVAL_MS_MAX + " milliseconds");
        }
        return interval;
    }

    long heldBytesMax() {
        Setting setting = setting(HELD_BYTES, "0");
        long bytes;
        try {
            bytes = parsed(ANY_BYTES, setting);
        } catch (ConfigException error) {
            throw setting.wrong("it is not a number of bytes, such as 0, 65536 or 64M");
        }
        if (bytes > HELD_BYTES_MAX) {
            throw setting.wrong("it is at most " + HELD_BYTES_MAX + " bytes");
        }
        return bytes;
    }

    /** The options of a store's database. Its own overrule those for all. */
    Options options(String store) {
        Map<String, Setting> found = new TreeMap<>();
        forAll.forEach((option, setting) -> {
            if (option.equals("cache_bytes")) {
                throw new ConfigException(
                        setting.property + ": the cache of the stores has what " + MEMORY_BYTES
                                + " leaves");
            }
            if (!SHARED.contains(option) && !OWN.contains(option)) {
                found.put(option, setting);
            }
        });
        found.putAll(named(store));
        Options options = new Options();
        found.forEach((option, setting) -> set(options, option, setting));
        return options;
    }

    private static void set(Options options, String option, Setting setting) {
        try {
            options.set(option, setting.text());
        } catch (ShingleException error) {
            throw setting.wrong(error.getMessage());
        }
    }

    /** The options for one store. Properties of the others have to be right too. */
    private Map<String, Setting> named(String store) {
        Set<String> known = listed(new Options()).keySet();
        Map<String, Setting> named = new TreeMap<>();
        properties.forEach((name, value) -> {
            if (name.startsWith(STORE_PREFIX)) {
                String rest = name.substring(STORE_PREFIX.length());
                int point = optionPoint(name, rest, known);
                if (rest.substring(0, point).equals(store)) {
                    String option = shingleName(rest.substring(point + 1));
                    named.put(option, new Setting(name, value));
                }
            }
        });
        return named;
    }

    /**
     * Where the name of the store ends and that of an option begins. Both can have points, so the
     * longest option that is known counts.
     */
    private static int optionPoint(String property, String rest, Set<String> known) {
        for (int at = rest.indexOf('.', 1); at > 0; at = rest.indexOf('.', at + 1)) {
            String option = shingleName(rest.substring(at + 1));
            if (SHARED.contains(option) || OWN.contains(option)) {
                throw new ConfigException(
                        property + ": this is for all stores of an application; set it without "
                                + "\"store.\" and the name of the store");
            }
            if (known.contains(option)) {
                return at;
            }
        }
        throw new ConfigException(
                property + ": it does not end with an option of Shingle; the form is "
                        + STORE_PREFIX + "STORE.OPTION, and the options are: "
                        + String.join(", ", known));
    }

    private static String shingleName(String name) {
        return name.replace('.', '_');
    }
}
