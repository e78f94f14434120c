package org.shingle.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.streams.StreamsConfig;
import org.shingle.orders.Cluster;
import org.shingle.orders.Generator;
import org.shingle.orders.OrdersTopology;

/** The instances of one application. */
final class Group implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(120);
    private static final long PERIOD_MILLIS = 400;

    /** A standby may lack this many records and still count as ready. */
    private static final long SMALL_LAG = 3_000;

    /** A task goes to an instance that lacks at most so many records, where there is one. */
    private static final String RECOVERY_LAG = "100";

    private final List<Instance> instances = new ArrayList<>();
    private final Settings settings;
    private final String bootstrap;
    private final String guarantee;
    private final Path folder;

    Group(Settings settings, String bootstrap, String guarantee, Path folder) {
        this.settings = settings;
        this.bootstrap = bootstrap;
        this.guarantee = guarantee;
        this.folder = folder;
    }

    List<Instance> instances() {
        return instances;
    }

    /** Starts one more instance. */
    Instance add() throws Exception {
        String name = guarantee + "-" + instances.size();
        Instance instance = new Instance(name, Cluster.freePorts(1).get(0), folder);
        instances.add(instance);
        instance.start(settings.streams(bootstrap, guarantee, instance.state(), instance.port()));
        return instance;
    }

    /**
     * Lets all instances that run end cleanly, at the same time. Gives what each had of stores.
     */
    Map<Instance, Set<String>> stop() throws InterruptedException {
        Map<Instance, Set<String>> had = new LinkedHashMap<>();
        List<Thread> threads = new ArrayList<>();
        for (Instance instance : instances) {
            if (instance.runs()) {
                Set<String> stores = instance.stores();
                if (stores == null) {
                    throw new IllegalStateException(instance.name() + " does not tell its stores");
                }
                had.put(instance, stores);
                threads.add(new Thread(instance::close, "end of " + instance.name()));
            }
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        for (Instance instance : had.keySet()) {
            if (!instance.hasEndedCleanly()) {
                throw new IllegalStateException(instance.name() + " did not end cleanly");
            }
        }
        return had;
    }

    /** Starts instances that have ended. Tasks go to those that have their state already. */
    void reopen(Collection<Instance> ended) throws Exception {
        for (Instance instance : ended) {
            Properties all =
                    settings.streams(bootstrap, guarantee, instance.state(), instance.port());
            all.put(StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG, RECOVERY_LAG);
            instance.start(all);
        }
        awaitReady();
    }

    /** A key of each partition. */
    List<String> keys() throws InterruptedException {
        Map<Integer, String> keys = new TreeMap<>();
        for (int customer = 0; customer < settings.customers(); customer++) {
            String key = Generator.key(customer);
            keys.putIfAbsent(owner(key).get("partition").asInt(), key);
            if (keys.size() == settings.partitions()) {
                return List.copyOf(keys.values());
            }
        }
        throw new IllegalStateException("some partitions have no customers");
    }

    /** Which instances have a key, by the metadata of any instance that can tell. */
    JsonNode owner(String key) throws InterruptedException {
        String path = "/owner?store=" + OrdersTopology.BY_CUSTOMER + "&key=" + key;
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            for (Instance instance : instances) {
                JsonNode owner = instance.ask(path);
                if (owner != null) {
                    return owner;
                }
            }
            checkTime(end, "no instance tells the owner of " + key);
        }
    }

    /** The instance at an address. */
    Instance at(String address) {
        return instances.stream().filter(instance -> instance.address().equals(address))
                .findFirst().orElseThrow();
    }

    /**
     * Waits until all instances run, every partition of a store has a standby, and the standbys
     * are close behind. A task that is about to move has one copy more.
     */
    void awaitReady() throws InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        String reason;
        while ((reason = notReady()) != null) {
            checkTime(end, "the application is not ready: " + reason);
        }
    }

    private String notReady() throws InterruptedException {
        Map<String, Integer> copies = new TreeMap<>();
        for (Instance instance : instances) {
            if (!instance.runs()) {
                continue;
            }
            JsonNode status = instance.ask("/status");
            if (status == null || !status.get("state").asText().equals("RUNNING")) {
                return instance.name() + " does not run";
            }
            for (Map.Entry<String, JsonNode> store : status.get("store-lags").properties()) {
                for (Map.Entry<String, JsonNode> lag : store.getValue().properties()) {
                    if (lag.getValue().asLong() > SMALL_LAG) {
                        return instance.name() + " is " + lag.getValue() + " records behind";
                    }
                    copies.merge(store.getKey() + " " + lag.getKey(), 1, Integer::sum);
                }
            }
        }
        for (int partition = 0; partition < settings.partitions(); partition++) {
            copies.putIfAbsent(OrdersTopology.BY_CUSTOMER + " " + partition, 0);
        }
        return copies.entrySet().stream().filter(store -> store.getValue() < 2).findFirst()
                .map(store -> store.getKey() + " has " + store.getValue() + " copies").orElse(null);
    }

    /** All entries of a store, from the active tasks of all instances, or null. */
    Map<String, String> dump(String store) throws InterruptedException {
        Map<String, String> entries = new TreeMap<>();
        for (Instance instance : instances) {
            if (!instance.runs()) {
                continue;
            }
            List<String> lines = instance.dump(store);
            if (lines == null) {
                return null;
            }
            for (String line : lines) {
                int tab = line.indexOf('\t');
                String twice = entries.put(line.substring(0, tab), line.substring(tab + 1));
                if (twice != null) {
                    return null; // a task has just moved
                }
            }
        }
        return entries;
    }

    private static void checkTime(long end, String reason) throws InterruptedException {
        if (System.nanoTime() > end) {
            throw new IllegalStateException(reason + " after " + PATIENCE.toSeconds() + " s");
        }
        Thread.sleep(PERIOD_MILLIS);
    }

    /** Ends all at once: nothing has to be saved. */
    @Override
    public void close() throws InterruptedException {
        for (Instance instance : instances) {
            if (instance.runs()) {
                instance.kill();
            }
        }
    }
}
