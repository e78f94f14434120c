package org.shingle;

import java.util.Arrays;

/**
 * Which keys a cursor or an iterator shows, and how it reads them. Immutable; each method gives
 * changed options. Keys are ordered byte by byte, and bytes count from 0 to 255.
 */
public final class ReadOptions {
    private static final int LEAVES_CACHE = 1;
    private static final int IS_BACKGROUND = 2;

    /** All keys, read as users read. */
    public static final ReadOptions DEFAULT = new ReadOptions(null, null, null, 0);

    final byte[] start;
    final byte[] end;
    final byte[] prefix;
    final int flags;

    private ReadOptions(byte[] start, byte[] end, byte[] prefix, int flags) {
        this.start = start;
        this.end = end;
        this.prefix = prefix;
        this.flags = flags;
    }

    /**
     * The keys of a range.
     *
     * @param start the first key that is shown; null for no bound
     * @param end the first key behind the range; null for no bound
     * @return options that show these keys
     */
    public static ReadOptions range(byte[] start, byte[] end) {
        return DEFAULT.from(start).to(end);
    }

    /**
     * The keys that begin with some bytes.
     *
     * @param prefix the bytes
     * @return options that show these keys
     */
    public static ReadOptions prefix(byte[] prefix) {
        return new ReadOptions(null, null, prefix.clone(), 0);
    }

    /**
     * Shows no keys before this one.
     *
     * @param start the first key that is shown; null for no bound
     * @return changed options, without a prefix
     */
    public ReadOptions from(byte[] start) {
        return new ReadOptions(copy(start), end, null, flags);
    }

    /**
     * Shows only keys before this one.
     *
     * @param end the first key that is not shown; null for no bound
     * @return changed options, without a prefix
     */
    public ReadOptions to(byte[] end) {
        return new ReadOptions(start, copy(end), null, flags);
    }

    /**
     * Shows this key, and no keys behind it.
     *
     * @param last the last key that is shown
     * @return changed options, without a prefix
     */
    public ReadOptions toInclusive(byte[] last) {
        return new ReadOptions(start, Arrays.copyOf(last, last.length + 1), null, flags);
    }

    /**
     * Whether blocks that are read from the medium go to the block cache.
     *
     * @param yes the default is true
     * @return changed options
     */
    public ReadOptions fillCache(boolean yes) {
        int changed = yes ? flags & ~LEAVES_CACHE : flags | LEAVES_CACHE;
        return new ReadOptions(start, end, prefix, changed);
    }

    /**
     * Whether no user waits for the scan: it prefetches in large pieces, and leaves the block cache
     * alone.
     *
     * @param yes the default is false
     * @return changed options
     */
    public ReadOptions background(boolean yes) {
        int changed = yes ? flags | IS_BACKGROUND : flags & ~IS_BACKGROUND;
        return new ReadOptions(start, end, prefix, changed);
    }

    private static byte[] copy(byte[] bytes) {
        return bytes == null ? null : bytes.clone();
    }
}
