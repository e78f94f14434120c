package org.shingle.orders;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;

/**
 * What the application computes: orders of each customer, of each customer and window, and of each
 * visit; orders that were paid; sales of each region.
 *
 * <p>No operator names a store supplier, so the property {@code dsl.store.suppliers.class} alone
 * says where the state is kept.
 */
public final class OrdersTopology {
    /** The topic of orders. */
    public static final String ORDERS = "orders";

    /** The topic of payments. */
    public static final String PAYMENTS = "payments";

    /** The topic with the region of each customer. */
    public static final String CUSTOMERS = "customers";

    /** The topic of results: one record for each order. */
    public static final String RECEIPTS = "receipts";

    /** The store with a tally for each customer. */
    public static final String BY_CUSTOMER = "orders-by-customer";

    /** The window store with a tally for each customer and window. */
    public static final String BY_WINDOW = "orders-by-window";

    /** The window store with a tally for each customer and window of the last minutes. */
    public static final String RECENT = "recent-orders-by-window";

    /** The session store with a tally for each visit of a customer. */
    public static final String VISITS = "visits";

    /** The store with a tally of the paid orders of each customer. */
    public static final String PAID = "paid-by-customer";

    /** The store with the sales of each region. */
    public static final String BY_REGION = "sales-by-region";

    /** The length of a window. */
    public static final Duration WINDOW = Duration.ofMinutes(10);

    /** The length of a window of recent orders. */
    public static final Duration RECENT_WINDOW = Duration.ofMinutes(2);

    /** A visit ends when a customer has not ordered for so long. */
    public static final Duration VISIT_GAP = Duration.ofMinutes(1);

    /** How long windows and visits are retained. */
    public static final Duration RETENTION = Duration.ofDays(1);

    /** How long windows of recent orders are retained. */
    public static final Duration RECENT_RETENTION = Duration.ofMinutes(10);

    /** Order and payment belong together when they are this close. */
    public static final Duration PAYMENT_WINDOW = Duration.ofMinutes(2);

    /**
     * How much later a record may come than the latest one that was joined. After a failure one
     * input partition can be far behind the others, and the join must not drop its records.
     */
    private static final Duration JOIN_GRACE = Duration.ofHours(12);

    private OrdersTopology() {}

    /**
     * Builds the topology.
     *
     * @param prefix of the names of its topics
     */
    public static Topology build(String prefix) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, Order> orders =
                builder.stream(prefix + ORDERS, Consumed.with(Codecs.TEXT, Codecs.ORDER));
        KStream<String, Payment> payments =
                builder.stream(prefix + PAYMENTS, Consumed.with(Codecs.TEXT, Codecs.PAYMENT));
        KTable<String, String> customers =
                builder.table(prefix + CUSTOMERS, Consumed.with(Codecs.TEXT, Codecs.TEXT));
        countOrders(orders.groupByKey(Grouped.with(Codecs.TEXT, Codecs.ORDER)));
        countPaidOrders(orders, payments);
        KStream<String, Sale> sales = sales(orders, customers);
        sales.to(prefix + RECEIPTS, Produced.with(Codecs.TEXT, Codecs.SALE));
        sales.groupByKey(Grouped.with(BY_REGION, Codecs.TEXT, Codecs.SALE)).aggregate(
                () -> Sales.EMPTY,
                (region, sale, sum) -> sum.add(sale),
                store(BY_REGION, Codecs.SALES));
        return builder.build();
    }

    private static void countOrders(KGroupedStream<String, Order> orders) {
        orders.aggregate(
                () -> Tally.EMPTY,
                (customer, order, tally) -> tally.add(order.sequence(), order.cents()),
                store(BY_CUSTOMER, Codecs.TALLY));
        orders.windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, WINDOW)).aggregate(
                () -> Tally.EMPTY,
                (customer, order, tally) -> tally.add(order.sequence(), order.cents()),
                retained(BY_WINDOW, RETENTION));
        orders.windowedBy(TimeWindows.ofSizeAndGrace(RECENT_WINDOW, RECENT_WINDOW)).aggregate(
                () -> Tally.EMPTY,
                (customer, order, tally) -> tally.add(order.sequence(), order.cents()),
                retained(RECENT, RECENT_RETENTION));
        orders.windowedBy(SessionWindows.ofInactivityGapAndGrace(VISIT_GAP, VISIT_GAP)).aggregate(
                () -> Tally.EMPTY,
                (customer, order, tally) -> tally.add(order.sequence(), order.cents()),
                (customer, one, other) -> one.and(other),
                retained(VISITS, RETENTION));
    }

    /** Joins by the number of the order, then counts by customer: two repartitions. */
    private static void countPaidOrders(
            KStream<String, Order> orders, KStream<String, Payment> payments) {
        KStream<String, String> ordered = orders.map((customer, order) ->
                KeyValue.pair(Long.toString(order.number()), customer));
        KStream<String, Payment> paid = payments.selectKey(
                (customer, payment) -> Long.toString(payment.order()));
        JoinWindows close = JoinWindows.ofTimeDifferenceAndGrace(PAYMENT_WINDOW, JOIN_GRACE);
        ordered.join(
                        paid,
                        CustomerPayment::new,
                        close,
                        StreamJoined.with(Codecs.TEXT, Codecs.TEXT, Codecs.PAYMENT)
                                .withName("order-payment").withStoreName("order-payment"))
                .map((number, pair) -> KeyValue.pair(pair.customer(), pair.payment()))
                .groupByKey(Grouped.with(PAID, Codecs.TEXT, Codecs.PAYMENT))
                .aggregate(
                        () -> Tally.EMPTY,
                        (customer, payment, tally) ->
                                tally.add(payment.sequence(), payment.cents()),
                        store(PAID, Codecs.TALLY));
    }

    /** The orders, by region. */
    private static KStream<String, Sale> sales(
            KStream<String, Order> orders, KTable<String, String> customers) {
        return orders.processValues(Source::new)
                .join(customers, RegionalSale::new,
                        Joined.<String, Sale, String>with(Codecs.TEXT, Codecs.SALE, Codecs.TEXT))
                .map((customer, sale) -> KeyValue.pair(sale.region(), sale.sale()));
    }

    private static <V, S extends StateStore> Materialized<String, V, S> store(
            String name, Serde<V> codec) {
        return Materialized.<String, V, S>as(name).withKeySerde(Codecs.TEXT).withValueSerde(codec);
    }

    private static <S extends StateStore> Materialized<String, Tally, S> retained(
            String name, Duration retention) {
        Materialized<String, Tally, S> store = store(name, Codecs.TALLY);
        return store.withRetention(retention);
    }

    private record CustomerPayment(String customer, Payment payment) {}

    private record RegionalSale(Sale sale, String region) {}

    /** Adds the partition that an order came from. */
    private static final class Source extends ContextualFixedKeyProcessor<String, Order, Sale> {
        @Override
        public void process(FixedKeyRecord<String, Order> record) {
            int partition = context().recordMetadata().orElseThrow().partition();
            Order order = record.value();
            Sale sale = new Sale(partition, order.number(), order.cents());
            context().forward(record.withValue(sale));
        }
    }
}
