package org.shingle;

/**
 * A block cache that several databases of this process share: see {@link Options#resources}.
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
