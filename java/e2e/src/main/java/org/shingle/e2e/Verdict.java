package org.shingle.e2e;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.streams.StreamsConfig;
import org.shingle.orders.Sale;

/** Compares what the stores and the topic of results hold with what they have to hold. */
final class Verdict {
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    private static final long PERIOD_MILLIS = 500;
    private static final int EXAMPLES = 5;

    private Verdict() {}

    /** Waits until all stores are right, or time is up, and reports each store. */
    static void compare(Outcome outcome, String guarantee, String when, Group group,
            Expectation expectation) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        for (String store : expectation.stores().keySet().stream().sorted().toList()) {
            Outcome.Total total;
            do {
                total = compare(guarantee, when, store, group, expectation);
                Thread.sleep(total != null && isRight(total) ? 0 : PERIOD_MILLIS);
            } while ((total == null || !isRight(total)) && System.nanoTime() < end);
            if (total == null) {
                outcome.problem(guarantee + ": " + store + " cannot be read, " + when);
                continue;
            }
            outcome.add(total);
            boolean exactlyOnce = guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2);
            if (exactlyOnce && total.replays() > 0) {
                outcome.problem(guarantee + ": " + store + " counted " + total.replays()
                        + " records again");
            }
        }
    }

    /** With exactly-once, each order has one committed result. */
    static void outputs(Outcome outcome, String bootstrap, String topic, Load load) {
        BitSet numbers = new BitSet();
        long duplicates = 0;
        Map<String, Object> properties = Map.of(
                "bootstrap.servers", bootstrap,
                "isolation.level", "read_committed",
                "auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream()
                    .map(Verdict::partition).toList();
            consumer.assign(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long giveUp = System.nanoTime() + PATIENCE.toNanos();
            while (!isAt(consumer, ends) && System.nanoTime() < giveUp) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    int number = Math.toIntExact(Sale.of(record.value()).number());
                    duplicates += numbers.get(number) ? 1 : 0;
                    numbers.set(number);
                }
            }
        }
        long missing = load.orders() - numbers.cardinality();
        outcome.note(String.format(java.util.Locale.ROOT,
                "%s: %,d orders have a committed result, %d are missing, %d results came twice",
                StreamsConfig.EXACTLY_ONCE_V2, numbers.cardinality(), missing, duplicates));
        if (missing != 0 || duplicates != 0) {
            outcome.problem("results are not exactly once");
        }
    }

    private static TopicPartition partition(PartitionInfo info) {
        return new TopicPartition(info.topic(), info.partition());
    }

    private static boolean isAt(KafkaConsumer<?, ?> consumer, Map<TopicPartition, Long> ends) {
        Collection<TopicPartition> all = ends.keySet();
        return all.stream().allMatch(part -> consumer.position(part) >= ends.get(part));
    }

    private static boolean isRight(Outcome.Total total) {
        return total.wrong() + total.missing() == 0;
    }

    private static Outcome.Total compare(
            String guarantee, String when, String store, Group group, Expectation expectation)
            throws InterruptedException {
        Map<String, String> found = group.dump(store);
        if (found == null) {
            return null;
        }
        long entries = 0;
        long wrong = 0;
        long missing = 0;
        long excused = 0;
        long expired = 0;
        long replays = 0;
        List<String> examples = new ArrayList<>();
        Map<String, Expectation.Sum> expected = expectation.stores().get(store);
        for (Map.Entry<String, Expectation.Sum> entry : expected.entrySet()) {
            String values = found.get(entry.getKey());
            if (expectation.hasExpired(store, entry.getKey())) {
                expired++;
                excused += values == null ? 1 : 0;
                continue; // One that is there may lack what came after its retention.
            }
            if (values == null) {
                missing++;
                examples.add(entry.getKey() + " is missing");
                continue;
            }
            String[] parts = values.split("\t");
            Expectation.Sum sum =
                    new Expectation.Sum(Long.parseLong(parts[0]), Long.parseLong(parts[1]));
            entries++;
            if (!sum.equals(entry.getValue())) {
                wrong++;
                examples.add(entry.getKey() + " has " + sum + " instead of " + entry.getValue());
            }
            replays += Long.parseLong(parts[2]);
        }
        for (String name : found.keySet()) {
            if (!expected.containsKey(name)) {
                wrong++;
                examples.add(name + " should not be there");
            }
        }
        List<String> some = examples.subList(0, Math.min(EXAMPLES, examples.size()));
        return new Outcome.Total(guarantee, when, store, entries, wrong, missing, excused, expired,
                replays, some);
    }
}
