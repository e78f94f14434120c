package org.shingle;

import java.time.Instant;
import java.util.Objects;

/**
 * Reads and writes that happen together or not at all.
 *
 * <p>A transaction sees the database as it was when it began, and its own writes. {@link #commit()}
 * ends it; {@link #close} without a commit ends it without its writes.
 *
 * <p>A transaction is for one thread at a time. A call that finds another thread inside the
 * transaction waits until that thread's call is done, also the commit. A close does not wait: the
 * transaction then ends with the other thread's call.
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
        return get(database.keyspace, key);
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
        return Native.transactionGet(this, handle(), keyspace, keyspace.handle(), key, 0);
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
        return Native.transactionGet(this, handle(), keyspace, keyspace.handle(), key, FOR_UPDATE);
    }

    /**
     * Stores a value in the default keyspace at the commit.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        put(database.keyspace, key, value);
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
        delete(database.keyspace, key);
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

    /**
     * Stores a value that ends, at the commit.
     *
     * @param keyspace where
     * @param key the key
     * @param value the value
     * @param expiry the moment from which the key is missing, to a millisecond
     */
    public void putExpiring(Keyspace keyspace, byte[] key, byte[] value, Instant expiry) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long millis = Times.epochMillis(expiry);
        Native.transactionPutExpiring(
                this, handle(), keyspace, keyspace.handle(), key, value, millis);
    }

    /**
     * The values of several keys.
     *
     * @param keyspace where
     * @param keys the keys
     * @return a value for each key, or null where there is none
     */
    public byte[][] multiGet(Keyspace keyspace, byte[]... keys) {
        byte[] asked = Several.packed(keys);
        byte[] packed =
                Native.transactionMultiGet(this, handle(), keyspace, keyspace.handle(), asked);
        return Several.values(packed, keys.length);
    }

    /**
     * Entries as the transaction sees them now, in the order of their keys. Later writes of the
     * transaction do not change them.
     *
     * <p>The iterator fetches entries in chunks. A serializable transaction has then read all keys
     * of a chunk: the commit fails where another write changed one of them, or came between them.
     *
     * @param keyspace where
     * @param options which keys; how they are read is not asked for
     * @return an iterator, to be closed
     */
    public EntryIterator iterator(Keyspace keyspace, ReadOptions options) {
        return scanned(keyspace, options, false);
    }

    /**
     * Entries from the last key to the first one: see {@link #iterator}.
     *
     * @param keyspace where
     * @param options which keys; how they are read is not asked for
     * @return an iterator, to be closed
     */
    public EntryIterator reverseIterator(Keyspace keyspace, ReadOptions options) {
        return scanned(keyspace, options, true);
    }

    private EntryIterator scanned(Keyspace keyspace, ReadOptions options, boolean isReverse) {
        long made =
                Native.transactionScan(
                        this,
                        handle(),
                        keyspace,
                        keyspace.handle(),
                        options.start,
                        options.end,
                        options.prefix);
        return new EntryIterator(Cursor.ofScan(database, made), isReverse);
    }

    /** Marks this point, to which {@link #rollBack} returns. */
    public void setSavepoint() {
        Native.setSavepoint(this, handle());
    }

    /**
     * Discards the writes since the last savepoint, and the savepoint. What was read and locked
     * since then stays so.
     *
     * @return false: there is no savepoint, and nothing happened
     */
    public boolean rollBack() {
        return Native.rollBack(this, handle());
    }

    private void add(Keyspace keyspace, int operation, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Native.transactionWrite(
                this, handle(), keyspace, keyspace.handle(), operation, key, value);
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
        // The library frees the handle, so the transaction is closed whatever the commit does.
        int flags = options.flags; // fails before the release where there are no options
        Native.commit(this, release(), flags);
    }

    /** Ends the transaction; without a commit, its writes do not happen. */
    @Override
    public void close() {
        super.close();
    }
}
