package org.shingle.orders;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Serves the page, and its data from all instances. */
final class PageServer implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(2);
    private static final int WINDOWS = 6;
    private static final int OK = 200;

    private final HttpClient client = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1).connectTimeout(PATIENCE).build();
    private final HttpServer server;
    private final String store;
    private final List<String> instances;
    private final Customers customers;

    PageServer(int port, String store, List<String> instances, Customers customers)
            throws IOException {
        this.store = store;
        this.instances = instances;
        this.customers = customers;
        InetAddress loopback = InetAddress.getLoopbackAddress();
        server = HttpServer.create(new InetSocketAddress(loopback, port), 16);
        server.createContext("/", exchange -> {
            boolean isPage = exchange.getRequestURI().getPath().equals("/");
            send(exchange, isPage ? OK : 404, "text/html; charset=utf-8",
                    isPage ? page() : new byte[0]);
        });
        server.createContext("/data", exchange ->
                send(exchange, OK, "application/json", JSON.writeValueAsBytes(data())));
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    @Override
    public void close() {
        server.stop(0);
    }

    private static byte[] page() throws IOException {
        try (InputStream page = PageServer.class.getResourceAsStream("/page.html")) {
            return page.readAllBytes();
        }
    }

    private static void send(HttpExchange exchange, int status, String type, byte[] body)
            throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    private Map<String, Object> data() {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("store", store);
        data.put("records", customers.produced());
        List<Object> all = new ArrayList<>();
        for (String address : instances) {
            Map<String, Object> instance = new LinkedHashMap<>();
            instance.put("address", address);
            instance.put("status", tree(ask(address, "/status")));
            instance.put("ledger", tree(ask(address, "/ledger")));
            all.add(instance);
        }
        data.put("instances", all);
        data.put("regions", dump(OrdersTopology.BY_REGION));
        data.put("windows", windows());
        data.put("paid", total(OrdersTopology.PAID));
        data.put("ordered", total(OrdersTopology.BY_CUSTOMER));
        return data;
    }

    /** The orders of all customers in each of the latest windows. */
    private Map<String, Long> windows() {
        TreeMap<String, Long> windows = new TreeMap<>();
        dump(OrdersTopology.BY_WINDOW).forEach((entry, count) ->
                windows.merge(entry.substring(entry.indexOf('@') + 1), count, Long::sum));
        while (windows.size() > WINDOWS) {
            windows.pollFirstEntry();
        }
        return windows;
    }

    private long total(String name) {
        return dump(name).values().stream().mapToLong(Long::longValue).sum();
    }

    /** The counts of a store, from all instances. */
    private Map<String, Long> dump(String name) {
        Map<String, Long> counts = new TreeMap<>();
        for (String address : instances) {
            byte[] lines = ask(address, "/dump?store=" + name);
            if (lines != null) {
                new String(lines, StandardCharsets.UTF_8).lines().forEach(line -> {
                    String[] parts = line.split("\t");
                    counts.put(parts[0], Long.parseLong(parts[1]));
                });
            }
        }
        return counts;
    }

    private static JsonNode tree(byte[] body) {
        try {
            return body == null ? null : JSON.readTree(body);
        } catch (IOException error) {
            return null;
        }
    }

    /** What an instance answers, or null while it cannot. */
    private byte[] ask(String address, String path) {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + address + path))
                .timeout(PATIENCE).build();
        try {
            var response = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            return response.statusCode() == OK ? response.body() : null;
        } catch (IOException error) {
            return null; // it starts or has ended
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return null;
        }
    }
}
