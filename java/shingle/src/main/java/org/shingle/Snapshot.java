package org.shingle;

import java.util.Objects;

/**
 * The state of a database at one moment, seen through one keyspace.
 *
 * <p>Safe for use by several threads. A snapshot keeps old data from being removed, so it should be
 * closed soon. It stays readable when its database is closed.
 */
public final class Snapshot extends Owner {
    private final Object parent;

    /** The parent lives as long as the snapshot, so that the collector does not close it. */
    Snapshot(Object parent, long handle) {
        super(handle, Native::closeSnapshot);
        this.parent = parent;
    }

    /**
     * The same moment, seen through another keyspace.
     *
     * @param keyspace a keyspace of the same database
     * @return a snapshot, to be closed too
     */
    public Snapshot of(Keyspace keyspace) {
        long made = Native.snapshotOf(this, handle(), keyspace, keyspace.handle());
        return new Snapshot(keyspace, made);
    }

    /**
     * The value of a key.
     *
     * @param key the key
     * @return the value, or null where there is none
     */
    public byte[] get(byte[] key) {
        return Native.snapshotGet(this, handle(), Objects.requireNonNull(key, "key"));
    }

    /**
     * The values of several keys, read together.
     *
     * @param keys the keys
     * @return a value for each key, or null where there is none
     */
    public byte[][] multiGet(byte[]... keys) {
        byte[] packed = Native.snapshotMultiGet(this, handle(), Several.packed(keys));
        return Several.values(packed, keys.length);
    }

    /**
     * A cursor over these keys.
     *
     * @param options which keys, and how they are read
     * @return a cursor without a position, to be closed
     */
    public Cursor cursor(ReadOptions options) {
        long made =
                Native.snapshotCursor(
                        this, handle(), options.start, options.end, options.prefix, options.flags);
        return new Cursor(this, made);
    }

    /**
     * Entries in the order of their keys.
     *
     * @param options which keys, and how they are read
     * @return an iterator, to be closed
     */
    public EntryIterator iterator(ReadOptions options) {
        return new EntryIterator(cursor(options), false);
    }

    /**
     * Entries from the last key to the first one.
     *
     * @param options which keys, and how they are read
     * @return an iterator, to be closed
     */
    public EntryIterator reverseIterator(ReadOptions options) {
        return new EntryIterator(cursor(options), true);
    }
}
