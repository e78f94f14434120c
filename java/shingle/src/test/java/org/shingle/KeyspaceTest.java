package org.shingle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.Support.bytes;
import static org.shingle.Support.fails;
import static org.shingle.Support.holds;
import static org.shingle.Support.key;
import static org.shingle.Support.keys;
import static org.shingle.Support.text;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Keyspaces, and what spans several of them: batches, snapshots, transactions. */
class KeyspaceTest {
    @TempDir Path folder;
    private Shingle database;

    @BeforeEach
    void open() {
        database = Shingle.open(folder.resolve("db"));
    }

    @AfterEach
    void close() {
        database.close();
    }

    private static byte[] number(long number) {
        return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(number).array();
    }

    @Test
    void keyspacesAreMadeFoundListedAndDropped() {
        Keyspace fruit = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT);
        fruit.put(bytes("a"), bytes("in fruit"));
        database.put(bytes("a"), bytes("in default"));
        assertEquals("in fruit", text(fruit.get(bytes("a"))));
        assertEquals("fruit", fruit.name());
        holds(database, "a", "in default");
        assertTrue(database.keyspaces().containsAll(List.of("fruit", database.defaultKeyspace().name())));
        fails(
                ErrorKind.ALREADY_EXISTS,
                () -> database.createKeyspace("fruit", KeyspaceOptions.DEFAULT));
        fails(ErrorKind.NOT_FOUND, () -> database.keyspace("nuts"));
        try (Keyspace again = database.keyspace("fruit");
                Keyspace third = database.openKeyspace("fruit", KeyspaceOptions.DEFAULT)) {
            assertEquals("in fruit", text(again.get(bytes("a"))));
            assertEquals("in fruit", text(third.get(bytes("a"))));
        }
        KeyspaceOptions others = KeyspaceOptions.DEFAULT.mergeOperator("append");
        assertThrows(ShingleException.class, () -> database.openKeyspace("fruit", others));
        fruit.close();
        database.dropKeyspace("fruit");
        assertTrue(!database.keyspaces().contains("fruit"));
        fails(ErrorKind.NOT_FOUND, () -> database.dropKeyspace("fruit"));
    }

    @Test
    void keyspacesHaveMergesPrefixesExpiryAndNoLog() {
        KeyspaceOptions options =
                KeyspaceOptions.DEFAULT.mergeOperator("add-u64").prefixBytes(4).withoutWal(true);
        try (Keyspace counts = database.createKeyspace("counts", options)) {
            counts.merge(bytes("figs"), number(40));
            counts.merge(bytes("figs"), number(2), WriteOptions.BUFFERED);
            assertArrayEquals(number(42), counts.get(bytes("figs")));
            fails(ErrorKind.INVALID_ARGUMENT, () -> counts.merge(bytes("figs"), bytes("two")));
            assertThrows(
                    ShingleException.class,
                    () -> counts.put(bytes("x"), number(1), WriteOptions.SYNCED));
            database.flush();
        }
        assertThrows(
                ShingleException.class,
                () -> database.defaultKeyspace().merge(bytes("a"), bytes("b")));
        KeyspaceOptions ending = KeyspaceOptions.DEFAULT.ttl(Duration.ofDays(1));
        try (Keyspace sessions = database.createKeyspace("sessions", ending)) {
            Instant before = Instant.now();
            sessions.put(bytes("a"), bytes("b"));
            Instant expiry = sessions.getWithExpiry(bytes("a")).expiry().get();
            assertTrue(expiry.isAfter(before.plus(Duration.ofHours(23))), expiry.toString());
        }
        fails(
                ErrorKind.INVALID_ARGUMENT,
                () -> database.createKeyspace("x", KeyspaceOptions.DEFAULT.prefixBytes(256)));
        database.close();
        database = Shingle.open(folder.resolve("db"));
        try (Keyspace counts = database.keyspace("counts")) {
            assertArrayEquals(number(42), counts.get(bytes("figs")));
        }
    }

    @Test
    void aBatchIsWrittenToKeyspacesAtOnce() {
        KeyspaceOptions merging = KeyspaceOptions.DEFAULT.mergeOperator("append");
        try (Keyspace fruit = database.createKeyspace("fruit", merging)) {
            fruit.put(bytes("old"), bytes("x"));
            database.put(bytes("m1"), bytes("x"));
            WriteBatch batch = new WriteBatch()
                    .put(bytes("a"), bytes("1"))
                    .put(fruit, bytes("a"), bytes("2"))
                    .delete(fruit, bytes("old"))
                    .merge(fruit, bytes("a"), bytes("3"))
                    .putExpiring(fruit, bytes("gone"), bytes("x"), Instant.ofEpochMilli(1))
                    .deleteRange(bytes("m"), bytes("n"))
                    .delete(bytes("never there"))
                    .put(bytes("a"), bytes("4"))
                    .deleteRange(fruit, bytes("y"), bytes("z"));
            assertEquals(9, batch.count());
            assertTrue(batch.bytes() > 9 * 9);
            database.write(batch, WriteOptions.SYNCED);
            holds(database, "a", "4");
            holds(database, "m1", null);
            assertEquals("23", text(fruit.get(bytes("a"))));
            assertNull(fruit.get(bytes("old")));
            assertNull(fruit.get(bytes("gone")));

            database.write(batch);
            assertEquals("23", text(fruit.get(bytes("a"))), "a put and a merge, again");
            batch.clear();
            assertEquals(0, batch.count());
            database.write(batch);
            batch.put(fruit, bytes("b"), bytes("5"));
            fruit.close();
            fails(ErrorKind.CLOSED, () -> database.write(batch));
        }
    }

    @Test
    void aBatchThatFailsWritesNothing() {
        WriteBatch batch = new WriteBatch().put(bytes("a"), bytes("1"));
        batch.deleteRange(bytes("z"), bytes("y"));
        fails(ErrorKind.INVALID_ARGUMENT, () -> database.write(batch));
        holds(database, "a", null);
        byte[] none = null;
        assertThrows(NullPointerException.class, () -> batch.put(none, none));
        assertThrows(NullPointerException.class, () -> batch.put(null, none, none));
        assertEquals(2, batch.count());
        batch.clear();
        for (int n = 0; n < 100_000; n++) {
            batch.put(bytes(key(n)), bytes("value" + n));
        }
        database.write(batch);
        holds(database, key(99_999), "value99999");
    }

    @Test
    void aSnapshotShowsOneMomentOfAllKeyspaces() {
        try (Keyspace fruit = database.createKeyspace("fruit", KeyspaceOptions.DEFAULT)) {
            database.put(bytes("a"), bytes("old"));
            fruit.put(bytes("f"), bytes("old"));
            try (Snapshot snapshot = database.snapshot();
                    Snapshot ofFruit = snapshot.of(fruit)) {
                database.put(bytes("a"), bytes("new"));
                fruit.delete(bytes("f"));
                fruit.put(bytes("g"), bytes("new"));
                assertEquals("old", text(snapshot.get(bytes("a"))));
                assertEquals("old", text(ofFruit.get(bytes("f"))));
                byte[][] found = ofFruit.multiGet(bytes("g"), bytes("f"));
                assertNull(found[0]);
                assertEquals("old", text(found[1]));
                try (EntryIterator entries = ofFruit.iterator(ReadOptions.DEFAULT);
                        EntryIterator reverse = ofFruit.reverseIterator(ReadOptions.DEFAULT)) {
                    assertEquals(List.of("f"), keys(entries));
                    assertEquals(List.of("f"), keys(reverse));
                }
            }
            holds(database, "a", "new");
        }
    }

    @Test
    void transactionsCommitOrLeaveNothing() {
        Keyspace keyspace = database.defaultKeyspace();
        database.put(bytes("a"), bytes("1"));
        database.put(bytes("m"), bytes("x"));
        try (Transaction transaction = database.begin()) {
            assertEquals("1", text(transaction.get(bytes("a"))));
            transaction.put(bytes("a"), bytes("2"));
            transaction.delete(bytes("b"));
            transaction.deleteRange(keyspace, bytes("m"), bytes("n"));
            assertEquals("2", text(transaction.get(bytes("a"))));
            assertNull(transaction.get(bytes("m")));
            holds(database, "a", "1");
            transaction.commit(WriteOptions.SYNCED);
            fails(ErrorKind.CLOSED, transaction::commit);
        }
        holds(database, "a", "2");
        holds(database, "m", null);
        try (Transaction transaction = database.begin()) {
            transaction.put(bytes("a"), bytes("3"));
        }
        holds(database, "a", "2");
    }

    @Test
    void transactionsConflict() {
        Keyspace keyspace = database.defaultKeyspace();
        TransactionOptions ofSnapshot = TransactionOptions.DEFAULT.snapshotIsolation(true);
        try (Transaction transaction = database.begin()) {
            transaction.get(bytes("a"));
            transaction.put(bytes("b"), bytes("1"));
            database.put(bytes("a"), bytes("other"));
            fails(ErrorKind.CONFLICT, transaction::commit);
        }
        try (Transaction transaction = database.begin(ofSnapshot)) {
            transaction.get(bytes("a"));
            transaction.put(bytes("b"), bytes("2"));
            database.put(bytes("a"), bytes("another"));
            transaction.commit();
        }
        holds(database, "b", "2");
        try (Transaction transaction = database.begin(ofSnapshot)) {
            assertEquals("2", text(transaction.getForUpdate(keyspace, bytes("b"))));
            transaction.put(bytes("c"), bytes("1"));
            database.put(bytes("b"), bytes("other"));
            fails(ErrorKind.CONFLICT, transaction::commit);
        }
        TransactionOptions locking = TransactionOptions.DEFAULT.lockTimeout(Duration.ofMillis(10));
        try (Transaction first = database.begin(locking);
                Transaction second = database.begin(locking)) {
            first.put(bytes("d"), bytes("1"));
            assertThrows(
                    ShingleException.class, () -> second.put(bytes("d"), bytes("2")));
            first.commit();
        }
        try (Keyspace counts = database.createKeyspace(
                        "counts", KeyspaceOptions.DEFAULT.mergeOperator("add-u64"));
                Transaction transaction = database.begin()) {
            transaction.merge(counts, bytes("n"), number(1));
            transaction.put(counts, bytes("m"), number(5));
            transaction.delete(counts, bytes("o"));
            transaction.commit();
            assertArrayEquals(number(1), counts.get(bytes("n")));
        }
    }
}
