package org.shingle;

/** How a write is done. Immutable; each method gives changed options. */
public final class WriteOptions {
    private static final int NO_WAIT = 4;

    /** As the database was opened, and with waiting. */
    public static final WriteOptions DEFAULT = new WriteOptions(0);

    /** The write survives a power loss when the call returns. */
    public static final WriteOptions SYNCED = DEFAULT.durability(Durability.SYNCED);

    /** The write survives the end of the process when the call returns. */
    public static final WriteOptions BUFFERED = DEFAULT.durability(Durability.BUFFERED);

    /** What the native library takes. */
    final int flags;

    private WriteOptions(int flags) {
        this.flags = flags;
    }

    /**
     * What the write is safe from when the call returns. A keyspace without a log refuses
     * {@link Durability#SYNCED}.
     *
     * @param durability null for what the database was opened with
     * @return changed options
     */
    public WriteOptions durability(Durability durability) {
        int others = flags & NO_WAIT;
        return new WriteOptions(durability == null ? others : others | durability.flag);
    }

    /**
     * Whether the write waits while background work is behind.
     *
     * @param yes true: it waits. False: it fails with {@link ErrorKind#WOULD_WAIT} instead, and
     *     {@link Shingle#waitWritable} waits. The default is true.
     * @return changed options
     */
    public WriteOptions waits(boolean yes) {
        return new WriteOptions(yes ? flags & ~NO_WAIT : flags | NO_WAIT);
    }
}
