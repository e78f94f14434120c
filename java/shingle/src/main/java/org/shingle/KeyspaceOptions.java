package org.shingle;

import java.time.Duration;

/**
 * The fixed properties of a keyspace: it keeps those that it was created with. Immutable; each
 * method gives changed options.
 */
public final class KeyspaceOptions {
    private static final int WITHOUT_WAL = 1;

    /** No merge operator, no expiry, no prefix, and writes go to the log. */
    public static final KeyspaceOptions DEFAULT = new KeyspaceOptions(null, 0, 0, 0);

    final String mergeOperator;
    final long ttlMillis;
    final int prefixBytes;
    final int flags;

    private KeyspaceOptions(String mergeOperator, long ttlMillis, int prefixBytes, int flags) {
        this.mergeOperator = mergeOperator;
        this.ttlMillis = ttlMillis;
        this.prefixBytes = prefixBytes;
        this.flags = flags;
    }

    /**
     * How {@link Keyspace#merge} makes a new value of the old one and an operand.
     *
     * @param name {@code "append"}: the operand follows the value. {@code "add-u64"}: both are
     *     numbers of eight bytes, little-endian. Null: the keyspace has no merges.
     * @return changed options
     */
    public KeyspaceOptions mergeOperator(String name) {
        return new KeyspaceOptions(name, ttlMillis, prefixBytes, flags);
    }

    /**
     * How long values live that are written without an expiry of their own.
     *
     * @param ttl rounded up to a millisecond; null or zero: they do not end
     * @return changed options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: the time is below zero
     */
    public KeyspaceOptions ttl(Duration ttl) {
        long millis = Times.millisUp(ttl, "a time to live");
        return new KeyspaceOptions(mergeOperator, millis, prefixBytes, flags);
    }

    /**
     * Filters also know the first bytes of keys, so that scans of a prefix skip tables without it.
     *
     * @param bytes how many bytes, 1 to 255; 0: filters know whole keys only
     * @return changed options
     */
    public KeyspaceOptions prefixBytes(int bytes) {
        return new KeyspaceOptions(mergeOperator, ttlMillis, bytes, flags);
    }

    /**
     * Whether writes do without the log. They are faster, and those since the last flush are lost
     * when the process ends before {@link Shingle#close}.
     *
     * @param yes the default is false
     * @return changed options
     */
    public KeyspaceOptions withoutWal(boolean yes) {
        return new KeyspaceOptions(
                mergeOperator,
                ttlMillis,
                prefixBytes,
                yes ? flags | WITHOUT_WAL : flags & ~WITHOUT_WAL);
    }
}
