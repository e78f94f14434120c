package org.shingle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.holds;
import static org.shingle.Support.key;
import static org.shingle.Support.text;

import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DatabaseTest {
    @TempDir Path folder;

    private Shingle open() {
        return Shingle.open(folder.resolve("db"));
    }

    @Test
    void writesAreReadAndSurviveReopening() {
        try (Shingle database = open()) {
            database.put(bytes("apple"), bytes("red"));
            database.put(bytes("pear"), bytes("green"), WriteOptions.SYNCED);
            database.put(bytes("plum"), bytes("blue"), WriteOptions.BUFFERED.waits(false));
            database.delete(bytes("plum"));
            database.delete(bytes("never there"));
            holds(database, "apple", "red");
            holds(database, "plum", null);
        }
        try (Shingle database = open()) {
            holds(database, "apple", "red");
            holds(database, "pear", "green");
            holds(database, "plum", null);
        }
    }

    /** A name of which no text in UTF-8 has the bytes, as from another system. */
    @Test
    void aDirectoryHasTheNameThatItsPathHas() throws Exception {
        Path path = Path.of(URI.create(folder.toUri() + "m%FCller%20%25"));
        try (Shingle database = Shingle.open(path)) {
            database.put(bytes("a"), bytes("1"));
        }
        try (var files = Files.list(folder)) {
            assertEquals(List.of(path), files.toList());
        }
        try (Shingle database = Shingle.open(path)) {
            holds(database, "a", "1");
        }
        Shingle.destroy(path);
        assertFalse(Files.exists(path));
    }

    @Test
    void emptyKeysAndValuesAreKeysAndValues() {
        try (Shingle database = open()) {
            database.put(bytes(""), bytes("of the empty key"));
            database.put(bytes("empty"), bytes(""));
            holds(database, "", "of the empty key");
            holds(database, "empty", "");
        }
    }

    @Test
    void bigKeysAndValuesComeBackWhole() {
        byte[] value = new byte[20 << 20];
        new Random(1).nextBytes(value);
        byte[] longKey = new byte[5000];
        try (Shingle database = open()) {
            database.put(bytes("big"), value);
            for (int size : new int[] {511, 512, 513, 70_000}) {
                database.put(bytes("size" + size), new byte[size]);
            }
            database.put(longKey, bytes("long"));
            database.beginFlush();
            database.flush();
            assertArrayEquals(value, database.get(bytes("big")));
            for (int size : new int[] {511, 512, 513, 70_000}) {
                assertEquals(size, database.get(bytes("size" + size)).length);
            }
            assertEquals("long", text(database.get(longKey)));
            try (EntryIterator entries = database.iterator(ReadOptions.prefix(bytes("big")))) {
                assertArrayEquals(value, entries.next().value());
            }
        }
    }

    @Test
    void severalKeysAreReadTogether() {
        try (Shingle database = open()) {
            database.put(bytes("a"), bytes("1"));
            database.put(bytes("c"), bytes(""));
            byte[][] found = database.multiGet(bytes("c"), bytes("b"), bytes("a"), bytes("a"));
            assertEquals(4, found.length);
            assertEquals("", text(found[0]));
            assertNull(found[1]);
            assertEquals("1", text(found[2]));
            assertEquals("1", text(found[3]));
            assertEquals(0, database.multiGet().length);
            byte[][] many = new byte[1000][];
            for (int n = 0; n < many.length; n++) {
                many[n] = bytes(key(n));
                database.put(many[n], bytes("value" + n));
            }
            found = database.multiGet(many);
            for (int n = 0; n < many.length; n++) {
                assertEquals("value" + n, text(found[n]));
            }
        }
    }

    @Test
    void rangesOfKeysAreRemoved() {
        try (Shingle database = open()) {
            for (String key : List.of("a", "b", "c", "d")) {
                database.put(bytes(key), bytes("x"));
            }
            database.deleteRange(bytes("b"), bytes("d"));
            holds(database, "a", "x");
            holds(database, "b", null);
            holds(database, "c", null);
            holds(database, "d", "x");
            fails(
                    ErrorKind.INVALID_ARGUMENT,
                    () -> database.deleteRange(bytes("z"), bytes("a")));
        }
    }

    @Test
    void directBuffersAndOthersHoldTheSame() {
        try (Shingle database = open()) {
            for (boolean isDirect : new boolean[] {true, false}) {
                ByteBuffer memory = isDirect ? ByteBuffer.allocateDirect(64) : ByteBuffer.allocate(64);
                memory.put(bytes("....fruit=apple...."));
                ByteBuffer key = memory.duplicate().position(4).limit(9);
                ByteBuffer value = memory.duplicate().position(10).limit(15);
                database.put(key, value);
                assertEquals(4, key.position());
                assertEquals(10, value.position());
                holds(database, "fruit", "apple");

                ByteBuffer found = memory.duplicate().position(20).limit(60);
                assertEquals(5, database.get(key, found));
                assertEquals(20, found.position());
                assertEquals(25, found.limit());
                byte[] copy = new byte[5];
                found.get(copy);
                assertEquals("apple", text(copy));

                ByteBuffer small = memory.duplicate().position(30).limit(32);
                assertEquals(5, database.get(key, small));
                assertEquals(32, small.limit());
                ByteBuffer none = memory.duplicate().position(4).limit(6);
                assertEquals(Keyspace.NOT_FOUND, database.get(none, found));
                assertEquals(25, found.limit());
                ByteBuffer empty = memory.duplicate().limit(0);
                database.put(empty, empty);
                assertEquals(0, database.get(empty, found));
                holds(database, "", "");
                assertThrows(
                        ReadOnlyBufferException.class,
                        () -> database.get(key, memory.asReadOnlyBuffer()));
                database.delete(bytes("fruit"));
            }
            ByteBuffer nothing = ByteBuffer.allocateDirect(0);
            database.put(nothing, nothing);
            holds(database, "", "");
        }
    }

    @Test
    void nullIsRefusedBeforeTheCall() {
        try (Shingle database = open()) {
            byte[] none = null;
            assertThrows(NullPointerException.class, () -> database.get(none));
            assertThrows(NullPointerException.class, () -> database.put(none, bytes("x")));
            assertThrows(NullPointerException.class, () -> database.put(bytes("x"), none));
            assertThrows(NullPointerException.class, () -> database.delete(none));
            assertThrows(NullPointerException.class, () -> database.multiGet(bytes("x"), none));
            assertThrows(NullPointerException.class, () -> database.deleteRange(none, none));
        }
    }

    @Test
    void valuesEnd() {
        try (Shingle database = open()) {
            Keyspace keyspace = database.defaultKeyspace();
            Instant far = Instant.ofEpochMilli(4_102_444_800_000L);
            keyspace.putExpiring(bytes("melon"), bytes("ripe"), far, WriteOptions.DEFAULT);
            keyspace.put(bytes("pear"), bytes("green"));
            Instant past = Instant.ofEpochMilli(1);
            keyspace.putExpiring(bytes("old"), bytes("x"), past, WriteOptions.DEFAULT);
            ExpiringValue melon = keyspace.getWithExpiry(bytes("melon"));
            assertEquals("ripe", text(melon.value()));
            assertEquals(Optional.of(far), melon.expiry());
            assertEquals(Optional.empty(), keyspace.getWithExpiry(bytes("pear")).expiry());
            assertNull(keyspace.getWithExpiry(bytes("old")));
            assertNull(keyspace.get(bytes("old")));
        }
    }

    @Test
    void wrongOptionsAreExplainedAndLeaveTheOthers() {
        Options options = new Options().scheme("tiered");
        ShingleException error =
                fails(ErrorKind.INVALID_ARGUMENT, () -> options.set("memory_byte", "64M"));
        assertTrue(error.getMessage().contains("memory_bytes"), error.getMessage());
        error = fails(ErrorKind.INVALID_ARGUMENT, () -> options.memoryBytes(1));
        assertTrue(error.getMessage().contains("memory_bytes"), error.getMessage());
        fails(ErrorKind.INVALID_ARGUMENT, () -> options.compression("zip"));
        options.memoryBytes(64 << 20).compression("LZ4").backgroundThreads(1);
        options.durability(Durability.SYNCED).values("log");
        options.writeBufferBytes(1 << 20).cacheBytes(8 << 20);
        String all = options.toString();
        assertTrue(all.contains("scheme=tiered"), all);
        assertTrue(all.contains("durability=synced"), all);
        try (Shingle database = Shingle.open(folder.resolve("db"), options)) {
            database.put(bytes("a"), new byte[5000]);
            assertEquals(5000, database.get(bytes("a")).length);
            database.setOption("memory_bytes", "80M");
            fails(ErrorKind.INVALID_ARGUMENT, () -> database.setOption("no_such", "1"));
        }
    }

    @Test
    void aNewDatabaseIsNewAndADestroyedOneIsGone() {
        Path path = folder.resolve("new");
        Options createNew = new Options().createNew(true);
        Shingle.open(path, createNew).close();
        fails(ErrorKind.ALREADY_EXISTS, () -> Shingle.open(path, createNew));
        try (Shingle database = Shingle.open(path, createNew.createNew(false))) {
            fails(ErrorKind.LOCKED, () -> Shingle.destroy(path));
        }
        Shingle.destroy(path);
        assertFalse(Files.exists(path));
        fails(ErrorKind.NOT_FOUND, () -> Shingle.destroy(path));
    }

    @Test
    void errorsCarryKindsAndRemedies() {
        Path path = folder.resolve("db");
        Options mustExist = new Options().create(false);
        fails(ErrorKind.NOT_FOUND, () -> Shingle.open(path, mustExist));
        try (Shingle database = open()) {
            ShingleException error = fails(ErrorKind.LOCKED, this::open);
            assertTrue(!error.remedy().isEmpty() && error.toString().contains("LOCKED"));
            assertEquals(ErrorKind.LOCKED.code(), error.code());
        }
        try (Shingle database = Shingle.open(path, new Options().readOnly(true))) {
            assertThrows(
                    ShingleException.class, () -> database.put(bytes("a"), bytes("b")));
        }
        assertEquals(ErrorKind.UNKNOWN, ErrorKind.of(999));
    }

    @Test
    void damageNamesTheFileAndTheByte() throws Exception {
        Path path = folder.resolve("db");
        try (Shingle database = open()) {
            for (int n = 0; n < 1000; n++) {
                database.put(bytes(key(n)), new byte[100]);
            }
            database.flush();
            assertEquals(List.of(), database.check());
        }
        Path table;
        try (var files = Files.list(path)) {
            table = files.filter(file -> file.toString().endsWith(".table")).findFirst().get();
        }
        byte[] content = Files.readAllBytes(table);
        content[content.length / 3] ^= 1;
        Files.write(table, content);
        try (Shingle database = open()) {
            assertTrue(!database.check().isEmpty());
            ShingleException error = fails(ErrorKind.CORRUPTION, () -> {
                for (int n = 0; n < 1000; n++) {
                    database.get(bytes(key(n)));
                }
            });
            assertEquals(Optional.of(table.getFileName().toString()), error.file());
            assertTrue(error.offset().isPresent());
        }
    }

    @Test
    void theWholeDatabaseIsFlushedCompactedCopiedAndMeasured() {
        Path copy = folder.resolve("copy");
        try (Shingle database = open()) {
            for (int n = 0; n < 2000; n++) {
                database.put(bytes(key(n)), bytes("value" + n));
            }
            database.sync();
            database.flush();
            database.defaultKeyspace().compactRange(bytes(key(0)), bytes(key(1000)));
            database.defaultKeyspace().compactRange(null, null);
            database.compact();
            database.waitIdle();
            assertTrue(database.waitWritable(1000, Duration.ofSeconds(1)));
            database.checkpoint(copy);
            fails(ErrorKind.ALREADY_EXISTS, () -> database.checkpoint(copy));

            assertEquals("2000", database.property("rocksdb.estimate-num-keys"));
            assertNull(database.property("rocksdb.no-such"));
            // The keys of one keyspace, where the property is of all.
            Keyspace other = database.createKeyspace("other", KeyspaceOptions.DEFAULT);
            other.put(bytes("key"), bytes("value"));
            assertEquals("2001", database.property("rocksdb.estimate-num-keys"));
            assertEquals(2000, database.defaultKeyspace().approximateSize());
            assertEquals(1, other.approximateSize());
            database.dropKeyspace("other");
            fails(ErrorKind.CLOSED, other::approximateSize);
            assertTrue(database.statisticsJson().startsWith("{"));
            Map<String, Double> numbers = database.statistics();
            assertTrue(numbers.size() > 50, numbers.toString());
            assertNotNull(numbers.get("cache_bytes"), numbers.toString());
            assertTrue(numbers.keySet().stream().anyMatch(name -> name.contains("[0].")));
        }
        try (Shingle database = Shingle.open(copy)) {
            holds(database, key(1999), "value1999");
        }
    }

    @Test
    void numbersOfJsonHavePaths() {
        String text = "{\"a\": 1, \"b\": [2.5, {\"c\": -3e2}, null], \"d\": \"x\\\"}\", \"e\": {}, \"f\": true}";
        Map<String, Double> expected = Map.of("a", 1.0, "b[0]", 2.5, "b[1].c", -300.0);
        assertEquals(expected, JsonNumbers.of(text));
    }

    @Test
    void databasesShareACache() {
        try (Resources shared = Resources.ofCache(8 << 20)) {
            Options options = new Options().resources(shared);
            try (Shingle first = Shingle.open(folder.resolve("first"), options);
                    Shingle second = Shingle.open(folder.resolve("second"), options)) {
                shared.close();
                for (Shingle database : List.of(first, second)) {
                    database.put(bytes("a"), bytes("b"));
                    database.flush();
                    holds(database, "a", "b");
                }
            }
            fails(ErrorKind.CLOSED, () -> Shingle.open(folder.resolve("third"), options));
            fails(ErrorKind.CLOSED, shared::cacheUsedBytes);
        }
        fails(ErrorKind.INVALID_ARGUMENT, () -> Resources.ofCache(-1));
        try (Resources shared = Resources.ofCache(8 << 20)) {
            Options options = new Options().resources(shared);
            try (Shingle database = Shingle.open(folder.resolve("first"), options)) {
                holds(database, "a", "b");
                assertTrue(shared.cacheUsedBytes() > 0);
            }
        }
    }

    @Test
    void databasesShareMemoryAndThreads() {
        List<Shingle> databases = new ArrayList<>();
        try (Resources shared = Resources.within(2 << 20, 2, 0)) {
            Options options = new Options().resources(shared).memoryBytes(1L << 30);
            for (int index = 0; index < 10; index++) {
                databases.add(Shingle.open(folder.resolve("shared" + index), options));
            }
            long most = 0;
            for (int number = 0; number < 500; number++) {
                for (Shingle database : databases) {
                    database.put(bytes(key(number)), new byte[1000]);
                    most = Math.max(most, shared.memtableBytes());
                }
            }
            assertTrue(most > 0 && most < 2 << 20, "5 MB were written: " + most);
            databases.forEach(Shingle::close);
            assertEquals(0, shared.memtableBytes());
        }
        fails(ErrorKind.INVALID_ARGUMENT, () -> Resources.within(1000, 2, 0));
        fails(ErrorKind.INVALID_ARGUMENT, () -> Resources.within(2 << 20, 0, 0));
        fails(ErrorKind.INVALID_ARGUMENT, () -> Resources.within(2 << 20, 1, -1));
    }
}
