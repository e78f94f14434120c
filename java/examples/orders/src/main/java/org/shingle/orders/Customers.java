package org.shingle.orders;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Customers that order at a fixed rate, and pay. */
final class Customers {
    private static final int COUNT = 500;

    private final KafkaProducer<String, byte[]> producer;
    private final int rate;
    private final AtomicLong produced = new AtomicLong();

    Customers(String bootstrap, int rate) {
        Map<String, Object> properties =
                Map.of("bootstrap.servers", bootstrap, "acks", "all", "linger.ms", "20");
        producer = new KafkaProducer<>(
                properties, new StringSerializer(), new ByteArraySerializer());
        this.rate = rate;
    }

    /** How many records the broker has acknowledged. */
    long produced() {
        return produced.get();
    }

    void start() {
        long now = System.currentTimeMillis();
        for (int customer = 0; customer < COUNT; customer++) {
            byte[] region = Codecs.TEXT.serializer().serialize(null, Generator.region(customer));
            send(OrdersTopology.CUSTOMERS, now - 1, customer, region);
        }
        producer.flush();
        Thread thread = new Thread(this::order, "customers");
        thread.setDaemon(true);
        thread.start();
    }

    private void order() {
        long began = System.currentTimeMillis();
        Generator generator =
                new Generator(began, COUNT, began, Duration.ofSeconds(1).dividedBy(rate));
        while (true) {
            long due = (System.currentTimeMillis() - began) * rate / 1000;
            while (generator.orders() < due) {
                for (Generator.Event event : generator.next()) {
                    send(event.topic(), event.time(), event.customer(), event.value());
                }
            }
            try {
                Thread.sleep(20);
            } catch (InterruptedException error) {
                return;
            }
        }
    }

    private void send(String topic, long time, int customer, byte[] value) {
        String key = Generator.key(customer);
        producer.send(new ProducerRecord<>(topic, null, time, key, value), (metadata, error) -> {
            if (error == null) {
                produced.incrementAndGet();
            } else {
                System.err.println("a record was not written: " + error);
            }
        });
    }
}
