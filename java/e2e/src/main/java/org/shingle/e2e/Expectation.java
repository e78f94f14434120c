package org.shingle.e2e;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.shingle.orders.Codecs;
import org.shingle.orders.Generator;
import org.shingle.orders.OrdersTopology;

/** What the stores have to hold, computed from the produced records without Kafka Streams. */
final class Expectation {
    private final Map<String, Map<String, Sum>> stores = new HashMap<>();
    private final Map<Integer, Visit> visits = new HashMap<>();
    private final Map<String, long[]> latest = new HashMap<>();
    private final int partitions;

    /** What an application has to hold whose topics have this many partitions. */
    Expectation(int partitions) {
        this.partitions = partitions;
    }

    /**
     * A count and a sum.
     *
     * @param count of records
     * @param cents their sum
     */
    record Sum(long count, long cents) {
        Sum and(Sum other) {
            return new Sum(count + other.count, cents + other.cents);
        }
    }

    private record Visit(long start, long end, Sum sum) {}

    /** Counts one record. */
    void add(Generator.Event event) {
        String key = Generator.key(event.customer());
        if (event.payment() != null) {
            add(OrdersTopology.PAID, key, new Sum(1, event.payment().cents()));
            return;
        }
        Sum one = new Sum(1, event.order().cents());
        add(OrdersTopology.BY_CUSTOMER, key, one);
        add(OrdersTopology.BY_REGION, Generator.region(event.customer()), one);
        addWindow(OrdersTopology.BY_WINDOW, key, event.time(), OrdersTopology.WINDOW, one);
        addWindow(OrdersTopology.RECENT, key, event.time(), OrdersTopology.RECENT_WINDOW, one);
        Visit visit = visits.get(event.customer());
        long gap = OrdersTopology.VISIT_GAP.toMillis();
        if (visit != null && event.time() - visit.end() <= gap) {
            visits.put(event.customer(),
                    new Visit(visit.start(), event.time(), visit.sum().and(one)));
        } else {
            end(event.customer(), visit);
            visits.put(event.customer(), new Visit(event.time(), event.time(), one));
        }
    }

    /** Ends the visits that go on. */
    void end() {
        visits.forEach(this::end);
        visits.clear();
    }

    /** Names of stores and what they have to hold. */
    Map<String, Map<String, Sum>> stores() {
        return stores;
    }

    /**
     * Whether the retention of an entry has ended: its time, which is behind an @ in its name, is
     * that much before the latest time in its store and partition. The entry may still be there,
     * since the cache of Kafka Streams above a store knows no retention.
     */
    boolean hasExpired(String store, String entry) {
        int at = entry.indexOf('@');
        if (at < 0) {
            return false;
        }
        String key = entry.substring(0, at);
        long now = latest.get(store)[Codecs.partition(key, partitions)];
        return time(entry) <= now - retention(store).toMillis();
    }

    /** Whether entries of a store expire during a run. Those of the others must all be there. */
    static boolean expires(String store) {
        return store.equals(OrdersTopology.RECENT);
    }

    private static Duration retention(String store) {
        return expires(store) ? OrdersTopology.RECENT_RETENTION : OrdersTopology.RETENTION;
    }

    /** The time that the store has of an entry: the start of a window, the end of a session. */
    private static long time(String entry) {
        String times = entry.substring(entry.indexOf('@') + 1);
        return Long.parseLong(times.substring(times.indexOf('-') + 1));
    }

    private void addWindow(String store, String key, long time, Duration window, Sum one) {
        add(store, key + "@" + (time - time % window.toMillis()), one);
    }

    private void end(int customer, Visit visit) {
        if (visit != null) {
            String name = Generator.key(customer) + "@" + visit.start() + "-" + visit.end();
            add(OrdersTopology.VISITS, name, visit.sum());
        }
    }

    private void add(String store, String key, Sum sum) {
        stores.computeIfAbsent(store, any -> new TreeMap<>()).merge(key, sum, Sum::and);
        int at = key.indexOf('@');
        if (at >= 0) {
            int partition = Codecs.partition(key.substring(0, at), partitions);
            long[] times = latest.computeIfAbsent(store, any -> new long[partitions]);
            times[partition] = Math.max(times[partition], time(key));
        }
    }
}
