package org.shingle.orders;

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.streams.StreamsConfig;

/**
 * The whole example in one command: a broker in a folder, instances of the application, customers
 * that order, and a page that shows all of it.
 *
 * <p>Options: {@code --store shingle|rocksdb}, {@code --instances N}, {@code --rate ORDERS},
 * {@code --port PORT}, {@code --folder FOLDER}, {@code --set NAME=VALUE} for properties of the
 * application.
 */
public final class Shop {
    private static final int PARTITIONS = 4;
    private static final Map<String, String> STORES = Map.of(
            "shingle", "org.shingle.kafka.ShingleDslStoreSuppliers",
            "rocksdb",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers");

    private static final Map<String, String> USUAL = Map.of("--store", "shingle",
            "--instances", "2", "--rate", "50", "--port", "8080", "--folder", "");

    private Shop() {}

    /** Runs it until it is interrupted. */
    public static void main(String[] arguments) throws Exception {
        try {
            Arguments given = Arguments.of(arguments, USUAL);
            run(given.options(), given.properties());
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }

    private static void run(Map<String, String> options, Map<String, String> more)
            throws Exception {
        String store = options.get("--store");
        if (!STORES.containsKey(store)) {
            throw new IllegalArgumentException("--store is shingle or rocksdb, not " + store);
        }
        Path folder = options.get("--folder").isEmpty() ? Folders.temporary("shingle-orders")
                : Folders.removedAtEnd(Path.of(options.get("--folder")));
        System.out.println("starting a broker in " + folder);
        try (Cluster cluster = Cluster.start(folder, 1)) {
            cluster.createTopics(PARTITIONS, OrdersTopology.ORDERS, OrdersTopology.PAYMENTS,
                    OrdersTopology.CUSTOMERS, OrdersTopology.RECEIPTS);
            List<String> instances = new ArrayList<>();
            int count = Integer.parseInt(options.get("--instances"));
            for (int port : Cluster.freePorts(count)) {
                start(cluster.addresses(), store, folder, port, instances, more);
            }
            Customers customers = new Customers(
                    cluster.addresses(), Integer.parseInt(options.get("--rate")));
            int port = Integer.parseInt(options.get("--port"));
            try (PageServer page = new PageServer(port, store, instances, customers)) {
                String host = InetAddress.getLoopbackAddress().getHostAddress();
                System.out.println("http://" + host + ":" + page.port() + "/ shows the shop;"
                        + " Ctrl-C ends it");
                customers.start();
                new CountDownLatch(1).await();
            }
        }
    }

    private static void start(String bootstrap, String store, Path folder, int port,
            List<String> instances, Map<String, String> more) throws Exception {
        String name = "instance-" + instances.size();
        Properties all = new Properties();
        all.put(StreamsConfig.APPLICATION_ID_CONFIG, "shop");
        all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        all.put(StreamsConfig.APPLICATION_SERVER_CONFIG, "127.0.0.1:" + port);
        all.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve(name + "-state").toString());
        // The one property that decides where the state is.
        all.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, STORES.get(store));
        all.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, "1");
        all.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "2000");
        all.put(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "DEBUG");
        all.put(Application.PARTITIONS, Integer.toString(PARTITIONS));
        all.put("auto.offset.reset", "earliest");
        all.putAll(more);
        Path file = folder.resolve(name + ".properties");
        try (var out = Files.newOutputStream(file)) {
            all.store(out, null);
        }
        Child.start(name, Application.class, List.of("-Xmx256m"), folder,
                List.of(file.toString()));
        instances.add("127.0.0.1:" + port);
    }
}
