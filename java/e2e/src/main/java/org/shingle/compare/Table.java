package org.shingle.compare;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/** The medians of all runs of each store, beside those of RocksDB. */
final class Table {
    private static final String BASE = "rocksdb";
    private static final double GB = 1e9;

    private final Map<String, List<Map<String, Object>>> stores = new LinkedHashMap<>();
    private final Map<String, ToDoubleFunction<Map<String, Object>>> rows = new LinkedHashMap<>();
    private final String title;

    Table(List<Map<String, Object>> runs, long keys, long updates, long entryBytes) {
        for (Map<String, Object> run : runs) {
            stores.computeIfAbsent(run.get("store").toString(), any -> new ArrayList<>()).add(run);
        }
        double state = keys * entryBytes / GB;
        title = String.format(Locale.ROOT, "%,d keys, %d bytes an entry, %.2f GB; %,d updates",
                keys, entryBytes, state, updates);
        rows.put("bytes written per record, when the last put is done",
                run -> value(run, "written-bytes-when-done") / (keys + updates));
        rows.put("bytes written per record, settled",
                run -> value(run, "written-bytes") / (keys + updates));
        rows.put("bytes written per update, settled", run -> updates == 0 ? Double.NaN
                : (value(run, "written-bytes") - value(run, "load-written-bytes")) / updates);
        rows.put("put p50, us", run -> value(run, "put-p50-us"));
        rows.put("put p99, us", run -> value(run, "put-p99-us"));
        rows.put("put p99.9, us", run -> value(run, "put-p99.9-us"));
        rows.put("a loop as long as the median put: p99, us", run -> value(run, "loop-p99-us"));
        rows.put("a loop as long as the median put: p99.9, us",
                run -> value(run, "loop-p99.9-us"));
        rows.put("such a loop in memory: p99, us", run -> value(run, "memory-loop-p99-us"));
        rows.put("such a loop in memory: p99.9, us", run -> value(run, "memory-loop-p99.9-us"));
        rows.put("put max, us", run -> value(run, "put-max-us"));
        rows.put("put while it loads: p99.9, us", run -> value(run, "load-put-p99.9-us"));
        rows.put("get p50, us", run -> value(run, "get-p50-us"));
        rows.put("get p99.9, us", run -> value(run, "get-p99.9-us"));
        rows.put("longest commit, ms", run -> value(run, "longest-commit-ms"));
        rows.put("load, records per s", run -> keys / value(run, "load-seconds"));
        rows.put("updates per s", run -> updates / value(run, "update-seconds"));
        rows.put("restore, s per GB", run -> value(run, "restore-seconds") / state);
        rows.put("restore settled, s per GB",
                run -> value(run, "restore-settled-seconds") / state);
        rows.put("restore, bytes written per byte",
                run -> value(run, "restore-written-bytes") / (state * GB));
        rows.put("space, GB", run -> value(run, "space-bytes") / GB);
        rows.put("memory of the process, MB", run -> value(run, "memory-bytes") / 1e6);
        rows.put("memory of the process at most, MB", run -> value(run, "most-memory-bytes") / 1e6);
        rows.put("reopen after kill -9, ms", run -> value(run, "reopen-open-ms"));
        rows.put("records to replay after kill -9",
                run -> value(run, "offset") - Math.max(0, value(run, "reopen-committed-offset")));
    }

    String text() {
        StringBuilder text = new StringBuilder(title).append("\n\n| median of runs |");
        stores.keySet().forEach(store -> text.append(' ').append(store).append(" |"));
        text.append("\n|---|").append("---|".repeat(stores.size())).append('\n');
        rows.forEach((name, row) -> {
            text.append("| ").append(name).append(" |");
            double base = stores.containsKey(BASE) ? median(BASE, row) : Double.NaN;
            for (String store : stores.keySet()) {
                double value = median(store, row);
                text.append(' ').append(number(value));
                if (!store.equals(BASE) && base > 0 && !Double.isNaN(value)) {
                    text.append(String.format(Locale.ROOT, " (%.2fx)", value / base));
                }
                text.append(" |");
            }
            text.append('\n');
        });
        return text.toString();
    }

    private double median(String store, ToDoubleFunction<Map<String, Object>> row) {
        double[] sorted = stores.get(store).stream().mapToDouble(row).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1
                ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    private static double value(Map<String, Object> run, String name) {
        return ((Number) run.get(name)).doubleValue();
    }

    private static String number(double value) {
        String format = value >= 1000 ? "%,.0f" : value >= 10 ? "%.1f" : "%.2f";
        return String.format(Locale.ROOT, format, value);
    }
}
