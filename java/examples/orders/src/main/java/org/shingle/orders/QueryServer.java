package org.shingle.orders;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.TaskMetadata;

/**
 * Answers about an instance over HTTP, on the loopback address. While the instance cannot answer,
 * the status is 503.
 *
 * <ul>
 *   <li>{@code /status}: state, tasks, lags, restores
 *   <li>{@code /ledger}: what the stores cost
 *   <li>{@code /owner?store=S&key=K}: which instances have a key
 *   <li>{@code /tallies?store=S&keys=K,L&stale=true&bound=POSITION}: tallies of keys
 *   <li>{@code /dump?store=S}: every entry of the active tasks
 * </ul>
 */
final class QueryServer implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final HttpServer server;
    private final ExecutorService threads = Executors.newFixedThreadPool(4);
    private final KafkaStreams streams;
    private final Path state;
    private final Restores restores;
    private final AtomicInteger failures;
    private final Queries queries;

    /** What a path answers. */
    private interface Answer {
        byte[] of(Map<String, String> parameters) throws Exception;
    }

    QueryServer(int port, KafkaStreams streams, Queries queries, Path state, Restores restores,
            AtomicInteger failures) throws IOException {
        this.streams = streams;
        this.state = state;
        this.restores = restores;
        this.failures = failures;
        this.queries = queries;
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        server = HttpServer.create(address, 64);
        server.setExecutor(threads);
        serve("/status", parameters -> JSON.writeValueAsBytes(status()));
        serve("/ledger", parameters -> JSON.writeValueAsBytes(ledger()));
        serve("/owner", parameters -> JSON.writeValueAsBytes(
                queries.owner(parameters.get("store"), parameters.get("key"))));
        serve("/tallies", parameters -> JSON.writeValueAsBytes(tallies(parameters)));
        serve("/dump", parameters -> {
            StringBuilder lines = new StringBuilder();
            queries.dump(parameters.get("store"), line -> lines.append(line).append('\n'));
            return lines.toString().getBytes(StandardCharsets.UTF_8);
        });
    }

    void start() {
        server.start();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }

    private void serve(String path, Answer answer) {
        server.createContext(path, exchange -> {
            int status = 200;
            byte[] body;
            try {
                body = answer.of(parameters(exchange));
            } catch (Exception error) {
                status = 503;
                body = error.toString().getBytes(StandardCharsets.UTF_8);
            }
            send(exchange, status, body);
        });
    }

    private static void send(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.getRequestBody().readAllBytes(); // so that the connection is used again
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    private static Map<String, String> parameters(HttpExchange exchange) {
        Map<String, String> parameters = new HashMap<>();
        String query = exchange.getRequestURI().getRawQuery();
        for (String part : query == null ? new String[0] : query.split("&")) {
            int equals = part.indexOf('=');
            String value = part.substring(equals + 1);
            parameters.put(part.substring(0, equals),
                    URLDecoder.decode(value, StandardCharsets.UTF_8));
        }
        return parameters;
    }

    private Map<String, Object> tallies(Map<String, String> parameters) {
        String bound = parameters.get("bound");
        return queries.tallies(
                parameters.get("store"),
                List.of(parameters.get("keys").split(",")),
                Boolean.parseBoolean(parameters.get("stale")),
                bound == null ? null : Positions.of(bound));
    }

    private Map<String, Object> status() {
        Map<String, Object> status = new LinkedHashMap<>();
        status.put("process", ProcessHandle.current().pid());
        status.put("state", streams.state());
        status.put("failures", failures.get());
        List<Object> tasks = new ArrayList<>();
        streams.metadataForLocalThreads().forEach(thread -> {
            thread.activeTasks().forEach(task -> tasks.add(task(task, true)));
            thread.standbyTasks().forEach(task -> tasks.add(task(task, false)));
        });
        status.put("tasks", tasks);
        Map<String, Map<Integer, Long>> lags = new LinkedHashMap<>();
        streams.allLocalStorePartitionLags().forEach((store, partitions) -> {
            Map<Integer, Long> lag = new LinkedHashMap<>();
            partitions.forEach((partition, info) -> lag.put(partition, lag(info)));
            lags.put(store, lag);
        });
        status.put("store-lags", lags);
        status.put("restores", restores.first());
        return status;
    }

    private static Map<String, Object> task(TaskMetadata task, boolean active) {
        long behind = 0;
        for (Map.Entry<TopicPartition, Long> end : task.endOffsets().entrySet()) {
            long committed = task.committedOffsets().getOrDefault(end.getKey(), 0L);
            behind += Math.max(0, end.getValue() - Math.max(0, committed));
        }
        Map<String, Object> about = new LinkedHashMap<>();
        about.put("task", task.taskId().toString());
        about.put("active", active);
        about.put("input", task.topicPartitions().stream().map(Object::toString).sorted().toList());
        about.put("uncommitted", behind);
        return about;
    }

    private static long lag(LagInfo info) {
        return Math.max(0, info.offsetLag());
    }

    private Map<String, Object> ledger() {
        Map<String, Object> ledger = new LinkedHashMap<>();
        ledger.put("process", Ledger.process(state));
        ledger.put("stores", Ledger.stores(streams));
        return ledger;
    }
}
