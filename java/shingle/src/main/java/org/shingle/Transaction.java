package org.shingle;

import java.util.Objects;

/**
 * Reads and writes that happen together or not at all.
 *
 * <p>A transaction sees the database as it was when it began, and its own writes. {@link #commit()}
 * ends it; {@link #close} without a commit ends it without its writes. It is for one thread at a
 * time.
 */
public final class Transaction extends Owner {
    private static final int FOR_UPDATE = 1;

    private final Shingle database;

    Transaction(Shingle database, long handle) {
        super(handle, Native::closeTransaction);
        this.database = database;
    }

    /**
     * The value of a key of the default keyspace.
     *
     * @param key the key
     * @return the value, or null where there is none
     */
    public byte[] get(byte[] key) {
        return get(database.defaultKeyspace(), key);
    }

    /**
     * The value of a key.
     *
     * @param keyspace where
     * @param key the key
     * @return the value, or null where there is none
     */
    public byte[] get(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        return Native.transactionGet(this, handle, keyspace, keyspace.handle, key, 0);
    }

    /**
     * The value of a key that the transaction will change: the commit fails where another writes it
     * in the meantime, whatever the isolation.
     *
     * @param keyspace where
     * @param key the key
     * @return the value, or null where there is none
     */
    public byte[] getForUpdate(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        return Native.transactionGet(this, handle, keyspace, keyspace.handle, key, FOR_UPDATE);
    }

    /**
     * Stores a value in the default keyspace at the commit.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        put(database.defaultKeyspace(), key, value);
    }

    /**
     * Stores a value at the commit.
     *
     * @param keyspace where
     * @param key the key
     * @param value the value
     */
    public void put(Keyspace keyspace, byte[] key, byte[] value) {
        add(keyspace, WriteBatch.PUT, key, Objects.requireNonNull(value, "value"));
    }

    /**
     * Removes a key of the default keyspace at the commit.
     *
     * @param key the key; it need not exist
     */
    public void delete(byte[] key) {
        delete(database.defaultKeyspace(), key);
    }

    /**
     * Removes a key at the commit.
     *
     * @param keyspace where
     * @param key the key; it need not exist
     */
    public void delete(Keyspace keyspace, byte[] key) {
        add(keyspace, WriteBatch.DELETE, key, null);
    }

    /**
     * Removes the keys of a range at the commit.
     *
     * @param keyspace where
     * @param start the first key that is removed
     * @param end the first key that stays
     */
    public void deleteRange(Keyspace keyspace, byte[] start, byte[] end) {
        add(keyspace, WriteBatch.DELETE_RANGE, start, Objects.requireNonNull(end, "end"));
    }

    /**
     * Applies an operand to the value of a key at the commit.
     *
     * @param keyspace a keyspace with a merge operator
     * @param key the key
     * @param operand what the merge operator takes
     */
    public void merge(Keyspace keyspace, byte[] key, byte[] operand) {
        add(keyspace, WriteBatch.MERGE, key, Objects.requireNonNull(operand, "operand"));
    }

    private void add(Keyspace keyspace, int operation, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Native.transactionWrite(
                this, handle, keyspace, keyspace.handle, operation, key, value);
    }

    /**
     * Commits the transaction and ends it, also where it fails.
     *
     * @throws ShingleException {@link ErrorKind#CONFLICT}: another write came between; begin again
     */
    public void commit() {
        commit(WriteOptions.DEFAULT);
    }

    /**
     * Commits the transaction and ends it, also where it fails.
     *
     * @param options how the writes are done
     * @throws ShingleException {@link ErrorKind#CONFLICT}: another write came between; begin again
     */
    public void commit(WriteOptions options) {
        Native.commit(this, handle, options.flags);
    }

    /** Ends the transaction; without a commit, its writes do not happen. */
    @Override
    public void close() {
        super.close();
    }
}
