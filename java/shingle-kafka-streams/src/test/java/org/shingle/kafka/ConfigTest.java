package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;

/** Properties do what they say, or are refused by the name that the user wrote. */
class ConfigTest {
    private static String option(String store, String name, Map<String, Object> properties) {
        return new ShingleConfig(properties).options(store).toString().lines()
                .map(line -> line.replace(" ", ""))
                .filter(line -> line.startsWith(name + "="))
                .map(line -> line.substring(name.length() + 1))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aStoreWhoseNameBeginsWithThatOfAnotherHasItsOwnOptions() {
        Map<String, Object> properties = Map.of(
                "shingle.scheme", "fragmented",
                "shingle.store.a.scheme", "leveled",
                "shingle.store.a.b.scheme", "tiered",
                "shingle.store.a.write.buffer.bytes", "1M");
        assertEquals("leveled", option("a", "scheme", properties));
        assertEquals("tiered", option("a.b", "scheme", properties));
        assertEquals("fragmented", option("a.b.c", "scheme", properties));
        assertEquals("1048576", option("a", "write_buffer_bytes", properties));
    }

    /** Everything that is read when a store opens. */
    private static void read(String property, Object value) {
        ShingleConfig config = new ShingleConfig(Map.of(property, value));
        config.options("store");
        config.commitIntervalMs();
        config.heldBytesMax();
        config.resources().close();
    }

    private static String refused(String property, Object value) {
        ConfigException error =
                assertThrows(ConfigException.class, () -> read(property, value), property);
        assertTrue(error.getMessage().contains(property), error.getMessage());
        return error.getMessage();
    }

    @Test
    void optionsOfStoresThatThereAreNotAreRefused() {
        assertTrue(refused("shingle.store.other.sheme", "leveled").contains("scheme"));
        refused("shingle.store.scheme", "leveled");
        refused("shingle.store.other", "leveled");
        refused("shingle.store.other.held.bytes", "1M");
        refused("shingle.store.other.cache.bytes", "1M");
        refused("shingle.store.store.scheme", "unheard");
    }

    @Test
    void numbersOutOfBoundsAreRefused() {
        refused("shingle.commit.interval.ms", -1);
        refused("shingle.commit.interval.ms", Long.MAX_VALUE);
        refused("shingle.commit.interval.ms", "10s");
        refused("shingle.held.bytes", -1);
        refused("shingle.held.bytes", "much");
        refused("shingle.held.bytes", (1L << 30) + 1);
        read("shingle.held.bytes", "1G");
        refused("shingle.memory.bytes", "-1");
        refused("shingle.background.threads", "many");
        refused("shingle.background.bytes.per.second", "-5");
    }

    @Test
    void allSizesHaveTheSameForm() {
        for (Object size : new Object[] {67_108_864, 67_108_864L, "67108864", "64M", " 64M "}) {
            assertEquals(64 << 20,
                    new ShingleConfig(Map.of("shingle.held.bytes", size)).heldBytesMax());
            read("shingle.memory.bytes", size);
        }
        assertEquals(0, new ShingleConfig(Map.of()).heldBytesMax());
    }

    @Test
    void aPropertyWithUnderscoresIsTheSameOne() {
        Map<String, Object> properties =
                Map.of("shingle.held_bytes", "1M", "shingle.commit_interval_ms", 7);
        assertEquals(1 << 20, new ShingleConfig(properties).heldBytesMax());
        assertEquals(7, new ShingleConfig(properties).commitIntervalMs());
        Map<String, Object> both = Map.of("shingle.held_bytes", 1, "shingle.held.bytes", 2);
        String message =
                assertThrows(ConfigException.class, () -> new ShingleConfig(both)).getMessage();
        Stream.of("shingle.held_bytes", "shingle.held.bytes")
                .forEach(name -> assertTrue(message.contains(name), message));
    }
}
