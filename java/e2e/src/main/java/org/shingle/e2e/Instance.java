package org.shingle.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.shingle.orders.Application;
import org.shingle.orders.Child;

/** An instance of the application in a process of its own, with state that outlives the process. */
final class Instance implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient CLIENT = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofMillis(500)).build();
    private static final Duration PATIENCE = Duration.ofSeconds(2);
    private static final int OK = 200;

    private final String name;
    private final int port;
    private final Path folder;
    private final Path properties;
    private volatile Child child;

    Instance(String name, int port, Path folder) {
        this.name = name;
        this.port = port;
        this.folder = folder;
        this.properties = folder.resolve(name + ".properties");
    }

    String name() {
        return name;
    }

    String address() {
        return "127.0.0.1:" + port;
    }

    Path state() {
        return folder.resolve(name + "-state");
    }

    /** Whether its state has databases of Shingle. */
    boolean hasShingle() throws IOException {
        try (Stream<Path> files = Files.walk(state())) {
            return files.anyMatch(file -> file.endsWith("shingle"));
        }
    }

    int port() {
        return port;
    }

    void start(Properties all) throws IOException {
        try (var file = Files.newOutputStream(properties)) {
            all.store(file, null);
        }
        restart();
    }

    /** Starts it again, with the state that it left. */
    void restart() throws IOException {
        child = Child.start(name, Application.class,
                List.of("-Xmx256m", "-XX:TieredStopAtLevel=1"), folder,
                List.of(properties.toString()));
    }

    boolean runs() {
        Child now = child;
        return now != null && now.isAlive();
    }

    /** Ends it with SIGKILL. */
    void kill() throws InterruptedException {
        child.kill();
    }

    /** What it has of stores, as {@code store/partition}, or null while it cannot answer. */
    Set<String> stores() throws InterruptedException {
        JsonNode status = ask("/status");
        if (status == null) {
            return null;
        }
        Set<String> stores = new TreeSet<>();
        for (Map.Entry<String, JsonNode> store : status.get("store-lags").properties()) {
            store.getValue().fieldNames().forEachRemaining(
                    partition -> stores.add(store.getKey() + "/" + partition));
        }
        return stores;
    }

    /** Whether it ended because {@link #close} asked it to. */
    boolean hasEndedCleanly() {
        return child.hasEndedCleanly();
    }

    /** Lets it leave the group and end. */
    @Override
    public void close() {
        if (child != null) {
            child.close();
        }
    }

    /** What a path answers, or null while it cannot answer. */
    JsonNode ask(String path) throws InterruptedException {
        byte[] body = body(path, PATIENCE);
        try {
            return body == null ? null : JSON.readTree(body);
        } catch (IOException error) {
            throw new IllegalStateException(name + " answered " + path + " with "
                    + new String(body, StandardCharsets.UTF_8), error);
        }
    }

    /** The entries of a store, or null while it cannot answer. */
    List<String> dump(String store) throws InterruptedException {
        byte[] body = body("/dump?store=" + store, Duration.ofSeconds(30));
        return body == null ? null : new String(body, StandardCharsets.UTF_8).lines().toList();
    }

    /** The answers for keys: of active tasks, or with stale ones too. */
    JsonNode tallies(String store, List<String> keys, boolean stale, String bound)
            throws InterruptedException {
        String path = "/tallies?store=" + store + "&keys=" + String.join(",", keys)
                + "&stale=" + stale;
        return ask(bound == null ? path
                : path + "&bound=" + URLEncoder.encode(bound, StandardCharsets.UTF_8));
    }

    private byte[] body(String path, Duration patience) throws InterruptedException {
        if (!runs()) {
            return null;
        }
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + address() + path))
                .timeout(patience).build();
        try {
            var response = CLIENT.send(request, HttpResponse.BodyHandlers.ofByteArray());
            return response.statusCode() == OK ? response.body() : null;
        } catch (IOException error) {
            return null; // it starts, was killed, or is too busy
        }
    }
}
