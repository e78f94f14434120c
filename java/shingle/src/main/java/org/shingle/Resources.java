package org.shingle;

/**
 * A block cache that several databases of this process share, or all that they need: see
 * {@link Options#resources}.
 *
 * <p>Safe for use by several threads. Databases that use the resources keep them, so they may be
 * closed while the databases are open.
 */
public final class Resources extends Owner {
    private Resources(long handle) {
        super(handle, Native::closeResources);
    }

    /**
     * A block cache for several databases.
     *
     * @param cacheBytes the maximum number of bytes in the cache, from 0
     * @return the resources, to be closed
     */
    public static Resources ofCache(long cacheBytes) {
        return new Resources(Native.createResources(cacheBytes));
    }

    /**
     * Memory, background threads and a limit of background work for several databases. These
     * options of the databases then mean nothing. A database that needs more takes what the others
     * do not use.
     *
     * @param memoryBytes the memory budget of all databases together, from 1 MiB
     * @param backgroundThreads threads for flushes and compaction of all databases, from 1
     * @param backgroundBytesPerSecond the maximum number of bytes that compaction of all databases
     *     writes in a second; 0: no limit
     * @return the resources, to be closed
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: out of bounds
     */
    public static Resources within(
            long memoryBytes, int backgroundThreads, long backgroundBytesPerSecond) {
        return new Resources(
                Native.createSharedResources(
                        memoryBytes, backgroundThreads, backgroundBytesPerSecond));
    }

    /**
     * How much the memtables of all databases have that share memory.
     *
     * @return bytes now; 0 where the databases share the cache alone
     */
    public long memtableBytes() {
        return Native.sharedMemtableBytes(this, handle());
    }

    /**
     * How much the cache has.
     *
     * @return bytes in the cache now
     */
    public long cacheUsedBytes() {
        return Native.cacheUsedBytes(this, handle());
    }

    @Override
    String kindName() {
        return "set of resources";
    }
}
