package org.shingle;

import java.time.Duration;

/** How a transaction is isolated from others. Immutable; each method gives changed options. */
public final class TransactionOptions {
    private static final int OF_ONE_SNAPSHOT = 1;

    /** Serializable, and without locks before the commit. */
    public static final TransactionOptions DEFAULT = new TransactionOptions(0, 0);

    final int flags;
    final long lockTimeoutMillis;

    private TransactionOptions(int flags, long lockTimeoutMillis) {
        this.flags = flags;
        this.lockTimeoutMillis = lockTimeoutMillis;
    }

    /**
     * Whether the commit fails only where another wrote a key that the transaction wrote.
     *
     * @param yes true: snapshot isolation. False, the default: serializable, so the commit also
     *     fails where another wrote a key that the transaction read.
     * @return changed options
     */
    public TransactionOptions snapshotIsolation(boolean yes) {
        return new TransactionOptions(yes ? OF_ONE_SNAPSHOT : 0, lockTimeoutMillis);
    }

    /**
     * Whether keys are locked when they are written or read for update.
     *
     * @param timeout how long the lock of another transaction is waited for, rounded up to a
     *     millisecond; null or zero, the default: keys are not locked before the commit
     * @return changed options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: the time is below zero
     */
    public TransactionOptions lockTimeout(Duration timeout) {
        return new TransactionOptions(flags, Times.millisUp(timeout, "a lock timeout"));
    }
}
