package org.shingle;

import java.time.Instant;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;

/**
 * Writes that become visible and durable together: see {@link Shingle#write}.
 *
 * <p>After a crash, the writes to keyspaces with a log are all there or none of them, and so are
 * those to keyspaces without a log ({@link KeyspaceOptions#withoutWal}). In a batch that has both,
 * one part can be there without the other.
 *
 * <p>A batch is memory of the Java machine: it needs no close, and the native library gets it whole
 * when it is written. It stays as it is then, and can be written again; {@link #clear} empties it
 * for other writes. Later operations overrule earlier ones. A batch is for one thread at a time.
 */
public final class WriteBatch {
    private static final int KEYSPACE = 0;
    static final int PUT = 1;
    static final int DELETE = 2;
    static final int DELETE_RANGE = 3;
    static final int MERGE = 4;
    private static final int PUT_EXPIRING = 5;

    private static final byte[] NOTHING = {};

    final Packer operations = new Packer(256);
    private final Set<Keyspace> keyspaces = new HashSet<>();
    private Keyspace current;
    private int count;

    /** An empty batch. */
    public WriteBatch() {}

    /**
     * Adds a put to the default keyspace.
     *
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public WriteBatch put(byte[] key, byte[] value) {
        return add(null, PUT, key, value);
    }

    /**
     * Adds a put.
     *
     * @param keyspace where; it stays open until the batch is written
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public WriteBatch put(Keyspace keyspace, byte[] key, byte[] value) {
        return add(Objects.requireNonNull(keyspace, "keyspace"), PUT, key, value);
    }

    /**
     * Adds a put of a value that ends.
     *
     * @param keyspace where; it stays open until the batch is written
     * @param key the key
     * @param value the value
     * @param expiry the moment from which the key is missing, to a millisecond
     * @return this batch
     */
    public WriteBatch putExpiring(Keyspace keyspace, byte[] key, byte[] value, Instant expiry) {
        Objects.requireNonNull(keyspace, "keyspace");
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long millis = Times.epochMillis(expiry);
        return added(keyspace, () -> {
            operations.add(PUT_EXPIRING);
            operations.addLong(millis);
            operations.addPair(key, value);
        });
    }

    /**
     * Adds a deletion to the default keyspace.
     *
     * @param key the key; it need not exist
     * @return this batch
     */
    public WriteBatch delete(byte[] key) {
        return add(null, DELETE, key, NOTHING);
    }

    /**
     * Adds a deletion.
     *
     * @param keyspace where; it stays open until the batch is written
     * @param key the key; it need not exist
     * @return this batch
     */
    public WriteBatch delete(Keyspace keyspace, byte[] key) {
        return add(Objects.requireNonNull(keyspace, "keyspace"), DELETE, key, NOTHING);
    }

    /**
     * Adds a deletion of a range to the default keyspace.
     *
     * @param start the first key that is removed
     * @param end the first key that stays
     * @return this batch
     */
    public WriteBatch deleteRange(byte[] start, byte[] end) {
        return add(null, DELETE_RANGE, start, end);
    }

    /**
     * Adds a deletion of a range.
     *
     * @param keyspace where; it stays open until the batch is written
     * @param start the first key that is removed
     * @param end the first key that stays
     * @return this batch
     */
    public WriteBatch deleteRange(Keyspace keyspace, byte[] start, byte[] end) {
        return add(Objects.requireNonNull(keyspace, "keyspace"), DELETE_RANGE, start, end);
    }

    /**
     * Adds a merge.
     *
     * @param keyspace a keyspace with a merge operator; it stays open until the batch is written
     * @param key the key
     * @param operand what the merge operator takes
     * @return this batch
     */
    public WriteBatch merge(Keyspace keyspace, byte[] key, byte[] operand) {
        return add(Objects.requireNonNull(keyspace, "keyspace"), MERGE, key, operand);
    }

    /**
     * How much is in the batch.
     *
     * @return operations
     */
    public int count() {
        return count;
    }

    /**
     * How large the batch is.
     *
     * @return bytes of keys and values, and of what describes them
     */
    public int bytes() {
        return operations.used;
    }

    /** A batch keeps numbers of keyspaces. Those of closed ones must not reach the library. */
    void checkOpen() {
        for (Keyspace keyspace : keyspaces) {
            if (keyspace != null) {
                keyspace.handle();
            }
        }
    }

    /** Removes everything from the batch, and keeps its memory. */
    public void clear() {
        operations.used = 0;
        keyspaces.clear();
        current = null;
        count = 0;
    }

    private WriteBatch add(Keyspace keyspace, int operation, byte[] key, byte[] value) {
        Objects.requireNonNull(key);
        Objects.requireNonNull(value);
        return added(keyspace, () -> {
            operations.add(operation);
            operations.addPair(key, value);
        });
    }

    /** Adds an operation, or leaves the batch as it was where the operation does not fit. */
    private WriteBatch added(Keyspace keyspace, Runnable operation) {
        int before = operations.used;
        long number = keyspace == null ? 0 : keyspace.handle();
        try {
            if (keyspace != current) {
                operations.add(KEYSPACE);
                operations.addLong(number);
            }
            operation.run();
        } catch (RuntimeException | OutOfMemoryError error) {
            operations.used = before;
            throw error;
        }
        if (keyspace != current) {
            keyspaces.add(keyspace);
            current = keyspace;
        }
        count++;
        return this;
    }
}
