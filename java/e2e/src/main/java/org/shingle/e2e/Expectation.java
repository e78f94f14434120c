package org.shingle.e2e;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.shingle.orders.Generator;
import org.shingle.orders.OrdersTopology;

/** What the stores have to hold, computed from the produced records without Kafka Streams. */
final class Expectation {
    private final Map<String, Map<String, Sum>> stores = new HashMap<>();
    private final Map<Integer, Visit> visits = new HashMap<>();
    private long lastOrder;

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
        lastOrder = event.time();
        add(OrdersTopology.BY_CUSTOMER, key, one);
        add(OrdersTopology.BY_REGION, Generator.region(event.customer()), one);
        long window = event.time() - event.time() % OrdersTopology.WINDOW.toMillis();
        add(OrdersTopology.BY_WINDOW, key + "@" + window, one);
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
     * Whether an entry may have expired: its time is in its name, behind an @. It may also be there
     * still, since the cache of Kafka Streams above a store knows no retention.
     */
    boolean mayHaveExpired(String entry) {
        return time(entry) < lastOrder - OrdersTopology.RETENTION.toMillis()
                + 2 * OrdersTopology.WINDOW.toMillis();
    }

    private static long time(String entry) {
        int at = entry.indexOf('@');
        if (at < 0) {
            return Long.MAX_VALUE;
        }
        String times = entry.substring(at + 1);
        return Long.parseLong(times.substring(times.indexOf('-') + 1));
    }

    private void end(int customer, Visit visit) {
        if (visit != null) {
            String name = Generator.key(customer) + "@" + visit.start() + "-" + visit.end();
            add(OrdersTopology.VISITS, name, visit.sum());
        }
    }

    private void add(String store, String key, Sum sum) {
        stores.computeIfAbsent(store, any -> new TreeMap<>()).merge(key, sum, Sum::and);
    }
}
