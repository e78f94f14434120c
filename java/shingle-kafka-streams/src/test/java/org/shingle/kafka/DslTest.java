package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Operators of the DSL give the same records with stores of RocksDB and of Shingle, in the same
 * order, and write the same changelogs.
 */
class DslTest {
    @TempDir Path folder;

    static Stream<Arguments> topologies() {
        Map<String, Consumer<Streams>> topologies = new TreeMap<>();
        topologies.put("counts", DslTest::counts);
        topologies.put("table joins", DslTest::tableJoins);
        topologies.put("stream joins", DslTest::streamJoins);
        topologies.put("foreign key join", DslTest::foreignKeyJoin);
        topologies.put("windows", DslTest::windows);
        topologies.put("windows without grace", DslTest::windowsWithoutGrace);
        topologies.put("hopping windows", DslTest::hoppingWindows);
        topologies.put("sliding windows", DslTest::slidingWindows);
        topologies.put("sessions", DslTest::sessions);
        return topologies.entrySet().stream()
                .flatMap(topology -> Stream.of(
                        Arguments.of(topology.getKey(), "default", 0, topology.getValue()),
                        Arguments.of(topology.getKey(), "default", 10 << 20, topology.getValue()),
                        Arguments.of(topology.getKey(), "headers", 10 << 20, topology.getValue())));
    }

    /** The inputs, and where results go. */
    record Streams(KStream<String, String> left, KStream<String, String> right) {
        KGroupedStream<String, String> grouped() {
            return left.groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
        }

        static void out(KStream<String, ?> results) {
            results.mapValues(String::valueOf).to("out");
        }

        static void windowsOut(KTable<Windowed<String>, ?> results) {
            out(results.toStream().selectKey((key, value) -> key.toString()));
        }
    }

    static void counts(Streams streams) {
        Streams.out(streams.grouped().count().toStream());
        Streams.out(streams.grouped()
                .reduce((before, now) -> now.length() > 7 ? null : before + now)
                .toStream());
    }

    static void tableJoins(Streams streams) {
        KTable<String, String> left = streams.left().toTable();
        KTable<String, String> right = streams.right().toTable();
        Streams.out(left.join(right, (a, b) -> a + b).toStream());
        Streams.out(left.outerJoin(right, (a, b) -> a + b).toStream());
        Streams.out(streams.left().leftJoin(right, (a, b) -> a + b));
    }

    static void streamJoins(Streams streams) {
        JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(
                Duration.ofSeconds(30), Duration.ofSeconds(10));
        Streams.out(streams.left().join(streams.right(), (a, b) -> a + b, windows));
        Streams.out(streams.left().outerJoin(streams.right(), (a, b) -> a + "|" + b, windows));
    }

    static void foreignKeyJoin(Streams streams) {
        KTable<String, String> left = streams.left().toTable();
        KTable<String, String> right = streams.right().toTable();
        Streams.out(left.leftJoin(right, value -> "k" + value.charAt(1), (a, b) -> a + b)
                .toStream());
    }

    static void windows(Streams streams) {
        TimeWindows windows =
                TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(20));
        Streams.windowsOut(streams.grouped().windowedBy(windows).count());
        Streams.windowsOut(streams.grouped().windowedBy(windows)
                .emitStrategy(EmitStrategy.onWindowClose()).count());
        Streams.windowsOut(streams.grouped().windowedBy(windows).count()
                .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
    }

    /** A window closes with the record whose time is that at which its retention ends. */
    static void windowsWithoutGrace(Streams streams) {
        TimeWindows windows = TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(2));
        Streams.windowsOut(streams.grouped().windowedBy(windows)
                .emitStrategy(EmitStrategy.onWindowClose()).count());
        Streams.windowsOut(streams.grouped().windowedBy(windows).count());
    }

    static void hoppingWindows(Streams streams) {
        TimeWindows windows =
                TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(20))
                        .advanceBy(Duration.ofSeconds(25));
        Streams.windowsOut(streams.grouped().windowedBy(windows).count());
        Streams.windowsOut(streams.grouped().windowedBy(windows)
                .emitStrategy(EmitStrategy.onWindowClose())
                .count(Materialized.with(Serdes.String(), Serdes.Long())));
    }

    static void slidingWindows(Streams streams) {
        SlidingWindows windows = SlidingWindows.ofTimeDifferenceAndGrace(
                Duration.ofSeconds(40), Duration.ofSeconds(20));
        Streams.windowsOut(streams.grouped().windowedBy(windows).count());
        Streams.windowsOut(streams.grouped().windowedBy(windows)
                .emitStrategy(EmitStrategy.onWindowClose()).count());
    }

    static void sessions(Streams streams) {
        SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(
                Duration.ofSeconds(5), Duration.ofSeconds(20));
        Streams.windowsOut(streams.grouped().windowedBy(windows).count());
        Streams.windowsOut(streams.grouped().windowedBy(windows)
                .emitStrategy(EmitStrategy.onWindowClose()).count());
    }

    @ParameterizedTest(name = "{0}, {1}, cache {2}")
    @MethodSource("topologies")
    void resultsAreThoseOfRocksDb(
            String name, String format, int cache, Consumer<Streams> topology) throws Exception {
        var expected = results(RocksDBDslStoreSuppliers.class, format, cache, topology);
        var found = results(ShingleDslStoreSuppliers.class, format, cache, topology);
        assertTrue(expected.stream().mapToInt(List::size).sum() > 100, expected.toString());
        if (name.equals("hopping windows") && cache > 0) {
            // Windows that close at one record come by the time of their segments.
            expected.forEach(Collections::sort);
            found.forEach(Collections::sort);
        }
        assertEquals(expected, found);
    }

    /** The results of each record. */
    private List<List<String>> results(
            Class<? extends DslStoreSuppliers> suppliers,
            String format,
            int cache,
            Consumer<Streams> topology)
            throws Exception {
        Path state = Files.createDirectories(folder.resolve(suppliers.getSimpleName()));
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "dsl");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cache);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        properties.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put("shingle.memory.bytes", 16 << 20);
        StreamsBuilder builder = new StreamsBuilder(
                new org.apache.kafka.streams.TopologyConfig(new StreamsConfig(properties)));
        topology.accept(new Streams(builder.stream("left"), builder.stream("right")));
        List<List<String>> results = new ArrayList<>();
        try (TopologyTestDriver driver =
                new TopologyTestDriver(builder.build(properties), properties, Instant.EPOCH)) {
            TestInputTopic<String, String> left = input(driver, "left");
            TestInputTopic<String, String> right = input(driver, "right");
            var output = driver.createOutputTopic(
                    "out", new StringDeserializer(), new StringDeserializer());
            Random random = new Random(1);
            long now = 10_000;
            for (int record = 0; record < 300; record++) {
                now += random.nextInt(4) == 0 ? random.nextInt(8_000) : random.nextInt(500);
                now += record % 100 == 99 ? 300_000 : 0; // many windows close at once
                long lateness = random.nextInt(5) == 0 ? random.nextInt(60_000) : 0;
                long time = Math.max(0, now - lateness);
                String key = "k" + "ab\0cdefg".charAt(random.nextInt(8));
                String value = "v" + "abcdefg".charAt(random.nextInt(7));
                TestInputTopic<String, String> input = random.nextBoolean() ? left : right;
                input.pipeInput(key, value, time);
                driver.advanceWallClockTime(Duration.ofMillis(100));
                results.add(new ArrayList<>());
                while (!output.isEmpty()) {
                    TestRecord<String, String> result = output.readRecord();
                    results.get(record)
                            .add(result.timestamp() + " " + result.key() + " " + result.value());
                }
            }
            results.add(changelogs(driver));
            boolean isShingle = suppliers == ShingleDslStoreSuppliers.class;
            int depth = 3; // application, task, kind of store
            try (Stream<Path> files = Files.walk(state, depth)) {
                assertEquals(isShingle, files.anyMatch(file -> file.endsWith("shingle")));
            }
        }
        return results;
    }

    /** All records of all changelogs, byte for byte: either store could be restored from them. */
    private static List<String> changelogs(TopologyTestDriver driver) {
        List<String> records = new ArrayList<>();
        for (String topic : new java.util.TreeSet<>(driver.producedTopicNames())) {
            if (topic.endsWith("-changelog")) {
                driver.createOutputTopic(
                        topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                        .readRecordsToList()
                        .forEach(record -> records.add(
                                topic + " " + record.timestamp() + " " + record.headers() + " "
                                        + hex(record.key()) + " " + hex(record.value())));
            }
        }
        assertFalse(records.isEmpty());
        return records;
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "none" : java.util.HexFormat.of().formatHex(bytes);
    }

    private static TestInputTopic<String, String> input(TopologyTestDriver driver, String name) {
        return driver.createInputTopic(name, new StringSerializer(), new StringSerializer());
    }
}
