package org.shingle.orders;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.SplittableRandom;

/**
 * Orders and payments from a seed: the same seed gives the same records in the same order.
 *
 * <p>Event time advances by a fixed step with each order. Of ten orders nine are paid, within the
 * time in which the topology joins them.
 */
public final class Generator {
    /** The regions of the customers. */
    public static final List<String> REGIONS =
            List.of("north", "east", "south", "west", "islands", "abroad");

    private static final int PAID_OF_TEN = 9;

    private final SplittableRandom random;
    private final long start;
    private final Duration step;
    private final long[] orders;
    private final long[] payments;
    private final PriorityQueue<Event> later = new PriorityQueue<>(
            (one, other) -> Long.compare(one.time(), other.time()));
    private long number;

    /**
     * Makes the generator.
     *
     * @param seed decides everything
     * @param customers how many customers there are
     * @param start the time of the first order, in milliseconds
     * @param step the time from one order to the next
     */
    public Generator(long seed, int customers, long start, Duration step) {
        this.random = new SplittableRandom(seed);
        this.start = start;
        this.step = step;
        this.orders = new long[customers];
        this.payments = new long[customers];
    }

    /**
     * A record to produce: an order or a payment, the other one is null.
     *
     * @param time its time in milliseconds
     * @param customer the number of the customer
     * @param order the order
     * @param payment the payment
     */
    public record Event(long time, int customer, Order order, Payment payment) {
        /** The topic of the record. */
        public String topic() {
            return order != null ? OrdersTopology.ORDERS : OrdersTopology.PAYMENTS;
        }

        /** The value of the record. */
        public byte[] value() {
            return order != null ? order.bytes() : payment.bytes();
        }
    }

    /** The key of a customer. */
    public static String key(int customer) {
        return "customer-" + customer;
    }

    /** The region of a customer. */
    public static String region(int customer) {
        return REGIONS.get(customer % REGIONS.size());
    }

    /** How many orders there were. */
    public long orders() {
        return number;
    }

    /** The next order, after the payments that come before it. */
    public List<Event> next() {
        long time = start + number * step.toMillis();
        List<Event> events = due(time);
        int customer = random.nextInt(orders.length);
        Order order = new Order(number, orders[customer]++, 100 + random.nextInt(9900));
        events.add(new Event(time, customer, order, null));
        if (random.nextInt(10) < PAID_OF_TEN) {
            long delay = random.nextLong(OrdersTopology.PAYMENT_WINDOW.toMillis());
            Payment payment = new Payment(number, payments[customer]++, order.cents());
            later.add(new Event(time + delay, customer, null, payment));
        }
        number++;
        return events;
    }

    /** The payments that are left after the last order. */
    public List<Event> end() {
        return due(Long.MAX_VALUE);
    }

    private List<Event> due(long time) {
        List<Event> events = new ArrayList<>();
        while (!later.isEmpty() && later.peek().time() <= time) {
            events.add(later.poll());
        }
        return events;
    }
}
