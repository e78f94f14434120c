package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.holds;

import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Arguments that are very large, very small, or of another kind. */
class ArgumentsTest {
    private static final Duration LONGEST = Duration.ofSeconds(Long.MAX_VALUE, 999_999_999);

    @TempDir Path folder;

    private Shingle open() {
        return Shingle.open(folder.resolve("db"));
    }

    @Test
    void timesAreRoundedUpAndSaturate() {
        TransactionOptions options = TransactionOptions.DEFAULT;
        assertEquals(0, options.lockTimeout(null).lockTimeoutMillis);
        assertEquals(0, options.lockTimeout(Duration.ZERO).lockTimeoutMillis);
        assertEquals(1, options.lockTimeout(Duration.ofNanos(1)).lockTimeoutMillis);
        assertEquals(1, options.lockTimeout(Duration.ofMillis(1)).lockTimeoutMillis);
        assertEquals(2, options.lockTimeout(Duration.ofNanos(1_000_001)).lockTimeoutMillis);
        assertEquals(Long.MAX_VALUE, options.lockTimeout(LONGEST).lockTimeoutMillis);
        fails(ErrorKind.INVALID_ARGUMENT, () -> options.lockTimeout(Duration.ofNanos(-1)));
        KeyspaceOptions keyspace = KeyspaceOptions.DEFAULT;
        assertEquals(1, keyspace.ttl(Duration.ofNanos(1)).ttlMillis);
        assertEquals(Long.MAX_VALUE, keyspace.ttl(LONGEST).ttlMillis);
        fails(ErrorKind.INVALID_ARGUMENT, () -> keyspace.ttl(LONGEST.negated()));
        assertEquals(Long.MAX_VALUE, Times.epochMillis(Instant.MAX));
        assertEquals(Long.MIN_VALUE, Times.epochMillis(Instant.MIN));
        assertEquals(-1, Times.epochMillis(Instant.ofEpochMilli(-1)));
    }

    @Test
    void theLongestTimesWork() {
        try (Shingle database = open();
                Keyspace keyspace = database.defaultKeyspace()) {
            assertTrue(database.waitWritable(1, LONGEST));
            assertTrue(database.waitWritable(1, LONGEST.negated()));
            TransactionOptions locking = TransactionOptions.DEFAULT.lockTimeout(LONGEST);
            try (Transaction transaction = database.begin(locking)) {
                transaction.put(bytes("a"), bytes("1"));
                transaction.putExpiring(keyspace, bytes("b"), bytes("2"), Instant.MAX);
                transaction.commit();
            }
            holds(database, "a", "1");
            holds(database, "b", "2");
            keyspace.putExpiring(bytes("c"), bytes("3"), Instant.MAX, WriteOptions.DEFAULT);
            WriteBatch batch = new WriteBatch();
            database.write(batch.putExpiring(keyspace, bytes("d"), bytes("4"), Instant.MAX));
            Instant end = Instant.ofEpochMilli(Long.MAX_VALUE);
            for (String key : List.of("b", "c", "d")) {
                assertEquals(end, keyspace.getWithExpiry(bytes(key)).expiry().orElseThrow());
            }
            fails(
                    ErrorKind.INVALID_ARGUMENT,
                    () -> keyspace.putExpiring(
                            bytes("e"), bytes("5"), Instant.MIN, WriteOptions.DEFAULT));
            holds(database, "e", null);
        }
    }

    @Test
    void arraysGrowUpToTheLargestOne() {
        assertEquals(300, Packer.capacity(200, 201));
        assertEquals(1000, Packer.capacity(200, 1000));
        int large = 1_500_000_000;
        assertEquals(Packer.BYTES_MAX, Packer.capacity(large, large + 1L));
        assertEquals(Packer.BYTES_MAX, Packer.capacity(Packer.BYTES_MAX - 1, Packer.BYTES_MAX));
    }

    /** Texts may have any characters, also those that end lines. */
    @Test
    void textsAreUnpackedAsTheyArePacked() {
        Packer packer = new Packer(8);
        List<String> texts = List.of("", "two\nlines", "größer", "last");
        for (String text : texts) {
            packer.addPair(Native.utf8(text), new byte[0]);
        }
        assertEquals(texts, Several.texts(packer.toArray()));
        assertEquals(List.of(), Several.texts(new byte[0]));
    }

    @Test
    void namesWithNewlinesAreOneName() {
        try (Shingle database = open()) {
            List<String> before = database.keyspaces();
            String name = "two\nlines";
            try (Keyspace keyspace = database.createKeyspace(name, KeyspaceOptions.DEFAULT)) {
                assertEquals(name, keyspace.name());
            } catch (ShingleException error) {
                assertEquals(ErrorKind.INVALID_ARGUMENT, error.kind());
                assertEquals(before, database.keyspaces());
                return;
            }
            assertTrue(database.keyspaces().contains(name), database.keyspaces().toString());
            assertEquals(before.size() + 1, database.keyspaces().size());
        }
    }

    @Test
    void pathsOfOtherFileSystemsAreRefused() throws Exception {
        Path archive = folder.resolve("archive.zip");
        try (FileSystem other = FileSystems.newFileSystem(archive, Map.of("create", "true"));
                Shingle database = open()) {
            Path path = other.getPath("/db");
            ShingleException error = fails(ErrorKind.INVALID_ARGUMENT, () -> Shingle.open(path));
            assertTrue(error.getMessage().contains("jar"), error.getMessage());
            fails(ErrorKind.INVALID_ARGUMENT, () -> database.checkpoint(path));
        }
        assertTrue(!Files.exists(Path.of("/db")));
    }

    @Test
    void propertiesAreNumbersOrTexts() {
        try (Shingle database = open()) {
            try (Snapshot snapshot = database.snapshot()) {
                assertNull(snapshot.get(bytes("a")));
                OptionalLong one = OptionalLong.of(1);
                assertEquals(one, database.numericProperty("rocksdb.num-snapshots"));
            }
            assertEquals(OptionalLong.of(0), database.numericProperty("rocksdb.num-snapshots"));
            assertEquals(OptionalLong.empty(), database.numericProperty("rocksdb.stats"));
            assertEquals(OptionalLong.empty(), database.numericProperty("rocksdb.no-such"));
        }
    }
}
