package org.shingle.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.shingle.orders.Generator;
import org.shingle.orders.OrdersTopology;

/**
 * Reads one customer of each partition from all instances, all the time, and checks each answer: an
 * active task must not count more orders than were sent.
 */
final class Probe implements AutoCloseable {
    private static final String STORE = OrdersTopology.BY_CUSTOMER;
    private static final long PERIOD_MILLIS = 100;

    private final List<Instance> instances;
    private final Load load;
    private final Map<String, Integer> customers = new LinkedHashMap<>();
    private final Map<String, Seen> latest = new HashMap<>();
    private final List<Thread> threads = new CopyOnWriteArrayList<>();
    private final List<String> wrong = new CopyOnWriteArrayList<>();
    private long answers;
    private volatile boolean ends;

    /** The last answer for a key, when it came, and the longest time between two answers. */
    private record Seen(long count, long time, long longest) {}

    /**
     * Chooses the customers and begins.
     *
     * @param keys a key of each partition
     */
    Probe(List<Instance> instances, Load load, List<String> keys) {
        this.instances = instances;
        this.load = load;
        keys.forEach(key -> customers.put(
                key, Integer.parseInt(key.substring(Generator.key(0).length() - 1))));
        instances.forEach(this::watch);
    }

    /** Reads from one more instance. */
    void watch(Instance instance) {
        Thread thread = new Thread(() -> read(instance), "probe of " + instance.name());
        threads.add(thread);
        thread.start();
    }

    List<String> keys() {
        return List.copyOf(customers.keySet());
    }

    /** For each key one order more than is acknowledged now. */
    Map<String, Long> oneMore() {
        Map<String, Long> counts = new HashMap<>();
        customers.forEach((key, customer) -> counts.put(key, load.acknowledged(customer) + 1));
        return counts;
    }

    /** Waits until an active task has answered with each count. Gives the seconds of each key. */
    Map<String, Double> await(long since, Map<String, Long> counts, Duration patience)
            throws InterruptedException {
        Map<String, Double> seconds = new HashMap<>();
        long end = System.nanoTime() + patience.toNanos();
        while (seconds.size() < counts.size()) {
            synchronized (this) {
                counts.forEach((key, count) -> {
                    Seen seen = latest.get(key);
                    if (seen != null && seen.time() > since && seen.count() >= count) {
                        seconds.putIfAbsent(key, (seen.time() - since) / 1e9);
                    }
                });
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException("no correct answer after " + patience.toSeconds()
                        + " s; wanted " + counts + ", have " + latest);
            }
            Thread.sleep(10);
        }
        return seconds;
    }

    /** The longest time in seconds in which a key had no answer, since the last call. */
    synchronized double longestSilence() {
        long now = System.nanoTime();
        long longest = 0;
        for (Map.Entry<String, Seen> entry : latest.entrySet()) {
            Seen seen = entry.getValue();
            longest = Math.max(longest, Math.max(seen.longest(), now - seen.time()));
            entry.setValue(new Seen(seen.count(), seen.time(), 0));
        }
        return longest / 1e9;
    }

    /** How many answers active tasks gave. */
    synchronized long answers() {
        return answers;
    }

    /** Answers that cannot be right. */
    List<String> wrong() {
        return wrong;
    }

    @Override
    public void close() throws InterruptedException {
        ends = true;
        for (Thread thread : new ArrayList<>(threads)) {
            thread.join();
        }
    }

    private void read(Instance instance) {
        try {
            while (!ends) {
                JsonNode tallies = instance.tallies(STORE, keys(), false, null);
                if (tallies != null) {
                    customers.forEach((key, customer) ->
                            check(instance, key, customer, tallies.get(key)));
                }
                Thread.sleep(PERIOD_MILLIS);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized void check(Instance instance, String key, int customer, JsonNode answer) {
        if (!answer.has("count")) {
            return; // not active here
        }
        long count = answer.get("count").asLong();
        if (count > load.sent(customer)) {
            wrong.add(instance.name() + " counts " + count + " orders of " + key + ", but only "
                    + load.sent(customer) + " were sent");
        }
        answers++;
        long now = System.nanoTime();
        latest.merge(key, new Seen(count, now, 0), (before, seen) ->
                new Seen(count, now, Math.max(before.longest(), now - before.time())));
    }
}
