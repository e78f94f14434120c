package org.shingle.orders;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.Metric;
import org.apache.kafka.streams.KafkaStreams;

/** What the stores of an instance cost: their own metrics, and what the kernel counts. */
final class Ledger {
    /** Metrics that the stores of RocksDB and of Shingle have, or those of Shingle alone. */
    private static final Set<String> NAMES = Set.of(
            "put-rate", "bytes-written-total", "write-stall-duration-total",
            "total-sst-files-size", "size-all-mem-tables",
            "shingle-host-bytes-written-total", "shingle-space-bytes");

    private Ledger() {}

    /** The metrics of each store, added up over its tasks. */
    static Map<String, Map<String, Double>> stores(KafkaStreams streams) {
        Map<String, Map<String, Double>> stores = new TreeMap<>();
        for (Metric metric : streams.metrics().values()) {
            String name = metric.metricName().name();
            String store = store(metric.metricName().tags());
            boolean isWanted = store != null && NAMES.contains(name);
            if (isWanted && metric.metricValue() instanceof Number value
                    && Double.isFinite(value.doubleValue())) {
                stores.computeIfAbsent(store, any -> new TreeMap<>())
                        .merge(name, value.doubleValue(), Double::sum);
            }
        }
        return stores;
    }

    /** What the kernel counts for this process, and the space of its state. */
    static Map<String, Long> process(Path state) {
        Map<String, Long> counts = new LinkedHashMap<>();
        counts.put("written-bytes", field("/proc/self/io", "write_bytes"));
        counts.put("memory-bytes", 1024 * field("/proc/self/status", "VmRSS"));
        counts.put("state-bytes", space(state));
        return counts;
    }

    private static String store(Map<String, String> tags) {
        return tags.entrySet().stream()
                .filter(tag -> tag.getKey().endsWith("-state-id") || tag.getKey().equals("store"))
                .map(Map.Entry::getValue).findFirst().orElse(null);
    }

    private static long field(String file, String name) {
        try (Stream<String> lines = Files.lines(Path.of(file))) {
            return lines.filter(line -> line.startsWith(name + ":"))
                    .map(line -> line.replaceAll("[^0-9]", ""))
                    .mapToLong(Long::parseLong).findFirst().orElse(0);
        } catch (IOException error) {
            return 0; // not on this system
        }
    }

    private static long space(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(Files::isRegularFile).mapToLong(Ledger::size).sum();
        } catch (IOException | java.io.UncheckedIOException error) {
            return 0; // a file went while the folder was read
        }
    }

    private static long size(Path file) {
        try {
            return Files.size(file);
        } catch (IOException error) {
            return 0;
        }
    }
}
