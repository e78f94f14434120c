package org.shingle.e2e;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.shingle.orders.Codecs;
import org.shingle.orders.Generator;
import org.shingle.orders.OrdersTopology;

/**
 * Produces orders and payments at a fixed rate, through all failures, and remembers what was sent
 * and what was acknowledged.
 *
 * <p>The producer is idempotent and gives up late, so that each record is in its topic once.
 */
final class Load implements AutoCloseable {
    /**
     * Event time goes by this many times faster than time, so that windows expire in a short run.
     * It begins in the past: brokers refuse times of the future, and delete records of changelogs
     * when their time is older than the retention of the store and a day.
     */
    private static final int SPEED = 60;

    private static final Duration PAST = Duration.ofHours(20);

    private final KafkaProducer<String, byte[]> producer;
    private final Generator generator;
    private final int rate;
    private final String prefix;
    private final Expectation expectation;
    private final AtomicLongArray sent;
    private final AtomicLongArray acknowledged;
    private final AtomicLong unacknowledged = new AtomicLong();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final Thread thread = new Thread(this::produce, "load");
    private final long start;
    private long records;
    private volatile boolean ends;

    Load(String bootstrap, Settings settings, long seed, String prefix) {
        Map<String, Object> properties = Map.of(
                "bootstrap.servers", bootstrap,
                "acks", "all",
                "linger.ms", "50",
                "delivery.timeout.ms", "120000",
                "max.block.ms", "120000");
        producer = new KafkaProducer<>(
                properties, new StringSerializer(), new ByteArraySerializer());
        this.prefix = prefix;
        expectation = new Expectation(settings.partitions());
        rate = settings.rate();
        sent = new AtomicLongArray(settings.customers());
        acknowledged = new AtomicLongArray(settings.customers());
        start = System.currentTimeMillis() - PAST.toMillis();
        generator = new Generator(
                seed, settings.customers(), start, Duration.ofSeconds(SPEED).dividedBy(rate));
    }

    /** Writes the table of customers, with a time before that of all orders, and then orders. */
    void start() throws Exception {
        for (int customer = 0; customer < sent.length(); customer++) {
            byte[] region = Codecs.TEXT.serializer().serialize(null, Generator.region(customer));
            send(OrdersTopology.CUSTOMERS, start - 1, Generator.key(customer), region, () -> {});
        }
        producer.flush();
        thread.start();
    }

    /** How many orders of a customer were sent. */
    long sent(int customer) {
        return sent.get(customer);
    }

    /** How many orders of a customer were acknowledged. */
    long acknowledged(int customer) {
        return acknowledged.get(customer);
    }

    /** Ends after the payments that are left. Every record is acknowledged then. */
    Expectation finish() throws Exception {
        ends = true;
        thread.join();
        generator.end().forEach(this::send);
        producer.flush();
        if (failure.get() != null) {
            throw new IllegalStateException("a record was not acknowledged", failure.get());
        }
        if (unacknowledged.get() != 0) {
            throw new IllegalStateException(unacknowledged + " records were not acknowledged");
        }
        expectation.end();
        return expectation;
    }

    /** How many records were produced, without those of the table. */
    long records() {
        return records;
    }

    /** How many orders were produced. */
    long orders() {
        return generator.orders();
    }

    @Override
    public void close() throws InterruptedException {
        ends = true;
        thread.interrupt();
        thread.join();
        producer.close(Duration.ZERO);
    }

    private void produce() {
        long begin = System.nanoTime();
        long orders = 0;
        try {
            while (!ends) {
                long due = (System.nanoTime() - begin) / 1000 * rate / 1_000_000;
                for (; orders < due && !ends; orders++) {
                    List<Generator.Event> events = generator.next();
                    events.forEach(this::send);
                }
                Thread.sleep(5);
            }
        } catch (InterruptedException error) {
            return; // close
        } catch (RuntimeException error) {
            failure.compareAndSet(null, error);
        }
    }

    private void send(Generator.Event event) {
        int customer = event.customer();
        boolean isOrder = event.order() != null;
        expectation.add(event);
        records++;
        if (isOrder) {
            sent.incrementAndGet(customer);
        }
        send(event.topic(), event.time(), Generator.key(customer), event.value(), () -> {
            if (isOrder) {
                acknowledged.incrementAndGet(customer);
            }
        });
    }

    private void send(String topic, long time, String key, byte[] value, Runnable then) {
        unacknowledged.incrementAndGet();
        producer.send(new ProducerRecord<>(prefix + topic, null, time, key, value),
                (metadata, error) -> {
                    if (error != null) {
                        failure.compareAndSet(null, error);
                    } else {
                        unacknowledged.decrementAndGet();
                        then.run();
                    }
                });
    }
}
