package org.shingle.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.ToDoubleFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.shingle.ShingleException;

/**
 * The counters of a store as metrics of Kafka Streams, in the group {@code stream-state-metrics}.
 * Where the meaning is that of a metric of RocksDB's stores, the name is the same; other names
 * begin with {@code shingle-}.
 *
 * <p>A metric is read when somebody asks for it. The statistics of the database are read at most
 * once in a second for all metrics of its store.
 */
final class StoreMetrics {
    private static final long AGE_NANOS_MAX = 1_000_000_000;
    private static final double NANOS_PER_MS = 1e6;

    /** What is missing in a database that did not do it yet, such as a time of compactions. */
    private static final double UNKNOWN = Double.NaN;

    /** Properties that have RocksDB's names in Shingle too. */
    private static final Map<String, String> PROPERTIES = Map.ofEntries(
            Map.entry("num-immutable-mem-table", "Number of sealed memtables"),
            Map.entry("cur-size-all-mem-tables", "Bytes of all memtables"),
            Map.entry("size-all-mem-tables", "Bytes of all memtables"),
            Map.entry("mem-table-flush-pending", "1 if a flush is due"),
            Map.entry("compaction-pending", "1 if a compaction is due"),
            Map.entry("num-running-compactions", "Number of compactions in progress"),
            Map.entry("estimate-pending-compaction-bytes", "Bytes that compaction has to rewrite"),
            Map.entry("total-sst-files-size", "Bytes of all files with entries"),
            Map.entry("live-sst-files-size", "Bytes of live data"),
            Map.entry("block-cache-capacity", "Bytes of the block cache, which all stores share"),
            Map.entry("block-cache-usage", "Bytes in the block cache, which all stores share"),
            Map.entry("background-errors", "1 if background work fails"));

    private final StoreDatabase database;
    private final List<Runnable> added = new ArrayList<>();
    private Statistics statistics;

    private StoreMetrics(StoreDatabase database) {
        this.database = database;
    }

    /** Adds the metrics of a store; {@link #remove} removes them. */
    static StoreMetrics add(
            StateStoreContext context, String scope, String store, StoreDatabase database) {
        StoreMetrics metrics = new StoreMetrics(database);
        try {
            metrics.addAll(context, scope, store);
        } catch (RuntimeException | Error error) {
            metrics.remove();
            throw error;
        }
        return metrics;
    }

    private void addAll(StateStoreContext context, String scope, String store) {
        PROPERTIES.forEach((name, description) -> added.add(
                KafkaInternals.addMetric(
                        context, scope, store, name, description, () -> property(name))));
        added.add(KafkaInternals.addMetric(
                context,
                scope,
                store,
                "estimate-num-keys",
                "Estimated number of entries",
                () -> value(database::approximateEntries)));
        for (Counter counter : Counter.values()) {
            added.add(KafkaInternals.addMetric(
                    context,
                    scope,
                    store,
                    counter.text,
                    counter.description,
                    () -> counter.value.applyAsDouble(statistics())));
        }
    }

    void remove() {
        added.forEach(Runnable::run);
        added.clear();
    }

    private double property(String name) {
        return value(() -> database.shingle().numericProperty("rocksdb." + name).orElse(0));
    }

    private static double value(DoubleSupplier value) {
        try {
            return value.getAsDouble();
        } catch (ShingleException error) {
            return UNKNOWN; // closed
        }
    }

    private synchronized Statistics statistics() {
        long now = System.nanoTime();
        if (statistics == null || now - statistics.nanos > AGE_NANOS_MAX) {
            try {
                statistics =
                        new Statistics(
                        now,
                        database.shingle().statistics(),
                        database.shingle().statisticsJson());
            } catch (ShingleException error) {
                statistics = new Statistics(now, Map.of(), ""); // closed
            }
        }
        return statistics;
    }

    /** The statistics of a moment, by {@link System#nanoTime}. */
    private record Statistics(long nanos, Map<String, Double> numbers, String json) {
        double number(String path) {
            return numbers.getOrDefault(path, UNKNOWN);
        }

        double millis(String path) {
            return number(path) / NANOS_PER_MS;
        }

        double meanMillis(String path) {
            return ratio(millis(path + ".sum"), number(path + ".count"));
        }

        /** The sum of a number over the elements of an array. */
        double sum(String array, String name) {
            return numbers.entrySet().stream()
                    .filter(entry -> entry.getKey().startsWith(array + "[")
                            && entry.getKey().endsWith("]." + name))
                    .mapToDouble(Map.Entry::getValue)
                    .sum();
        }

        /** A number of the element of an array that has a name. */
        double named(String field, String name, String number) {
            String text = "\"" + field + "\":\\s*\"" + name + "\"[^}]*?\"" + number
                    + "\":\\s*([0-9.]+)";
            Matcher found = Pattern.compile(text).matcher(json);
            return found.find() ? Double.parseDouble(found.group(1)) : 0;
        }

        double hitRatio(String kind) {
            double hits = named("kind", kind, "hits");
            return ratio(hits, hits + named("kind", kind, "misses"));
        }
    }

    private static double ratio(double part, double whole) {
        return whole == 0 ? UNKNOWN : part / whole;
    }

    private enum Counter {
        WRITTEN("bytes-written-total", "Bytes that were put into the store",
                all -> all.number("user_write_bytes")),
        READ("bytes-read-total", "Bytes that reads of the store have given",
                all -> all.number("user_read_bytes")),
        FLUSHED("memtable-bytes-flushed-total", "Bytes that flushes have written",
                all -> all.named("cause", "flush", "write_bytes")),
        FLUSH_MEAN("memtable-flush-time-avg", "Mean time of a flush in ms",
                all -> all.meanMillis("latency_ns.flush")),
        FLUSH_MAX("memtable-flush-time-max", "Maximum time of a flush in ms",
                all -> all.millis("latency_ns.flush.max")),
        COMPACTION_MEAN("compaction-time-avg", "Mean time of a compaction in ms",
                all -> all.meanMillis("latency_ns.compaction")),
        COMPACTION_MAX("compaction-time-max", "Maximum time of a compaction in ms",
                all -> all.millis("latency_ns.compaction.max")),
        STALL_TOTAL("write-stall-duration-total", "Time for which writes were stalled in ms",
                all -> all.sum("stalls", "ns") / NANOS_PER_MS),
        STALL_MEAN("write-stall-duration-avg", "Mean time of a write stall in ms",
                all -> ratio(all.sum("stalls", "ns"), all.sum("stalls", "count")) / NANOS_PER_MS),
        DATA_HITS("block-cache-data-hit-ratio", "Part of the data blocks found in the cache",
                all -> all.hitRatio("data")),
        INDEX_HITS("block-cache-index-hit-ratio", "Part of the index blocks found in the cache",
                all -> all.hitRatio("index")),
        FILTER_HITS("block-cache-filter-hit-ratio", "Part of the filters found in the cache",
                all -> all.hitRatio("filter")),
        STALLS("shingle-write-stalls-total", "Number of write stalls",
                all -> all.sum("stalls", "count")),
        LIMIT_WAIT("shingle-background-limit-wait-total",
                "Time for which compaction waited for the limit of its rate in ms",
                all -> all.millis("limit_wait_ns")),
        HOST_WRITTEN("shingle-host-bytes-written-total", "Bytes written to files, for any cause",
                all -> all.number("host_write_bytes")),
        HOST_READ("shingle-host-bytes-read-total", "Bytes read from files, for any cause",
                all -> all.number("host_read_bytes")),
        WRITE_AMPLIFICATION("shingle-write-amplification",
                "Bytes written to files for each byte put into the store",
                all -> all.number("wa")),
        READ_AMPLIFICATION("shingle-read-amplification",
                "Bytes read from files for each byte that reads have given",
                all -> all.number("ra")),
        SPACE("shingle-space-bytes", "Bytes of all files of the store",
                all -> all.number("space_bytes")),
        LIVE("shingle-live-bytes", "Bytes of live data",
                all -> all.number("live_bytes")),
        SPACE_AMPLIFICATION("shingle-space-amplification",
                "Bytes of files for each byte of live data",
                all -> ratio(all.number("space_bytes"), all.number("live_bytes")));

        final String text;
        final String description;
        final ToDoubleFunction<Statistics> value;

        Counter(String text, String description, ToDoubleFunction<Statistics> value) {
            this.text = text;
            this.description = description;
            this.value = value;
        }
    }
}
