package org.shingle.orders;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;

/** Kafka in a folder: nodes that are brokers and controllers at once, on the loopback address. */
public final class Cluster implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    private static final List<String> OPTIONS = List.of("-Xmx256m", "-XX:TieredStopAtLevel=1");

    private final Path folder;
    private final String id = Uuid.randomUuid().toString();
    private final List<Integer> ports;
    private final List<Integer> controllers;
    private final Child[] nodes;

    private Cluster(Path folder, int count) throws IOException {
        this.folder = folder;
        List<Integer> free = freePorts(2 * count);
        this.ports = free.subList(0, count);
        this.controllers = free.subList(count, 2 * count);
        this.nodes = new Child[count];
    }

    /**
     * Starts a cluster and waits until all its nodes serve.
     *
     * @param folder everything goes there
     * @param count the number of nodes
     */
    public static Cluster start(Path folder, int count) throws Exception {
        Files.createDirectories(folder);
        Cluster cluster = new Cluster(folder, count);
        try {
            for (int node = 0; node < count; node++) {
                cluster.startNode(node);
            }
            cluster.awaitNodes();
            return cluster;
        } catch (Exception error) {
            cluster.close();
            throw error;
        }
    }

    /** Starts a node that does not run. */
    public void startNode(int node) throws IOException {
        Path file = folder.resolve("broker-" + node + ".properties");
        Properties properties = properties(node);
        try (var out = Files.newOutputStream(file)) {
            properties.store(out, null);
        }
        nodes[node] = Child.start(
                "broker-" + node, Broker.class, OPTIONS, folder, List.of(file.toString(), id));
    }

    /** Kills a node with SIGKILL. */
    public void killNode(int node) throws InterruptedException {
        nodes[node].kill();
    }

    /** Waits until all nodes serve. */
    public void awaitNodes() throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        try (Admin admin = admin()) {
            while (true) {
                int count = 0;
                try {
                    count = admin.describeCluster().nodes().get().size();
                } catch (ExecutionException error) {
                    // It does not serve yet.
                }
                if (count == nodes.length) {
                    return;
                }
                for (Child node : nodes) {
                    if (!node.isAlive()) {
                        throw new IOException(node + " has ended: see its log in " + folder);
                    }
                }
                if (System.nanoTime() > end) {
                    throw new IOException(count + " of " + nodes.length + " brokers serve after "
                            + PATIENCE.toSeconds() + " s: see their logs in " + folder);
                }
                Thread.sleep(100);
            }
        }
    }

    /** Makes topics that all nodes have. */
    public void createTopics(int partitions, String... names) throws Exception {
        short copies = (short) nodes.length;
        List<NewTopic> topics = java.util.Arrays.stream(names)
                .map(name -> new NewTopic(name, partitions, copies)).toList();
        try (Admin admin = admin()) {
            admin.createTopics(topics).all().get();
        }
    }

    /** Where clients connect. */
    public String addresses() {
        return ports.stream().map(port -> "127.0.0.1:" + port).collect(Collectors.joining(","));
    }

    /** A client that administers. */
    public Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", addresses(), "client.id", "admin",
                "default.api.timeout.ms", "30000"));
    }

    /** Numbers of ports that are free. */
    public static List<Integer> freePorts(int count) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        try {
            for (int n = 0; n < count; n++) {
                sockets.add(new ServerSocket(0, 1, InetAddress.getLoopbackAddress()));
            }
            return sockets.stream().map(ServerSocket::getLocalPort).toList();
        } finally {
            for (ServerSocket socket : sockets) {
                socket.close();
            }
        }
    }

    private Properties properties(int node) {
        String listener = "127.0.0.1:" + ports.get(node);
        Properties all = new Properties();
        all.put("process.roles", "broker,controller");
        all.put("node.id", Integer.toString(node));
        all.put("controller.quorum.voters", IntStream.range(0, nodes.length)
                .mapToObj(other -> other + "@127.0.0.1:" + controllers.get(other))
                .collect(Collectors.joining(",")));
        all.put("listeners", "PLAINTEXT://" + listener
                + ",CONTROLLER://127.0.0.1:" + controllers.get(node));
        all.put("advertised.listeners", "PLAINTEXT://" + listener);
        all.put("controller.listener.names", "CONTROLLER");
        all.put("log.dirs", folder.resolve("node-" + node).toString());
        String copies = Integer.toString(nodes.length);
        String enough = Integer.toString(Math.max(1, nodes.length - 1));
        for (String topic : List.of("offsets.topic", "transaction.state.log")) {
            all.put(topic + ".replication.factor", copies);
            all.put(topic + ".num.partitions", "4");
        }
        all.put("transaction.state.log.min.isr", enough);
        // A process that was killed leaves a transaction, which others wait for.
        all.put("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000");
        all.put("min.insync.replicas", enough);
        all.put("default.replication.factor", copies);
        all.put("share.coordinator.state.topic.replication.factor", copies);
        all.put("share.coordinator.state.topic.min.isr", enough);
        // Members that start together get their first tasks together, each those that it has.
        String delay = nodes.length == 1 ? "0" : "3000";
        all.put("group.initial.rebalance.delay.ms", delay);
        all.put("group.min.session.timeout.ms", "1000");
        // What members say under the group protocol `classic`, brokers say under `streams`.
        all.put("group.streams.num.standby.replicas", "1");
        all.put("group.streams.initial.rebalance.delay.ms", delay);
        all.put("group.streams.min.session.timeout.ms", "1000");
        all.put("group.streams.session.timeout.ms", "6000");
        all.put("group.streams.min.heartbeat.interval.ms", "500");
        all.put("group.streams.heartbeat.interval.ms", "1000");
        all.put("broker.session.timeout.ms", "4000");
        all.put("broker.heartbeat.interval.ms", "1000");
        all.put("num.network.threads", "2");
        all.put("num.io.threads", "4");
        all.put("log.cleaner.dedupe.buffer.size", "4194304"); // a small heap has no more
        all.put("auto.create.topics.enable", "false");
        return all;
    }

    @Override
    public void close() {
        for (Child node : nodes) {
            if (node != null) {
                killQuietly(node);
            }
        }
    }

    /** Its folder is temporary, so nothing has to be saved. */
    private static void killQuietly(Child node) {
        try {
            node.kill();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
