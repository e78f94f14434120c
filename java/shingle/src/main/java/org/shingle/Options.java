package org.shingle;

import java.util.Locale;

/**
 * How to open a database. Each method changes these options and returns them.
 *
 * <p>The engine has one table of options, with their names, bounds and defaults; {@link #toString}
 * lists them. {@link #set} sets any of them by its name, in the form that configuration files have.
 * The other methods are short forms of it. A wrong name or value is refused at once, with a message
 * that says what would be right.
 *
 * <p>Options are for one thread. They own nothing and need no close.
 */
public final class Options {
    private static final int MUST_EXIST = 1;
    private static final int READ_ONLY = 2;
    private static final int CREATE_NEW = 4;

    private final Packer pairs = new Packer(64);
    private int flags;
    private Resources resources;

    /** The defaults. */
    public Options() {}

    /**
     * Sets an option by its name.
     *
     * @param name the name, such as {@code "memory_bytes"}
     * @param value the value as configuration files have it, such as {@code "64M"}
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: there is no such option, or the
     *     value is out of its bounds. The options are as before.
     */
    public Options set(String name, String value) {
        int before = pairs.used;
        pairs.addPair(Native.utf8(name), Native.utf8(value));
        try {
            Native.optionsText(pairs.toArray());
        } catch (ShingleException error) {
            pairs.used = before;
            throw error;
        }
        return this;
    }

    /**
     * Whether a database that does not exist is created.
     *
     * @param yes the default is true
     * @return these options
     */
    public Options create(boolean yes) {
        flags = yes ? flags & ~MUST_EXIST : flags | MUST_EXIST;
        return this;
    }

    /**
     * Whether the database must be new: {@link Shingle#open} refuses one that exists, with {@link
     * ErrorKind#ALREADY_EXISTS}. Of several processes that create it at once, one succeeds.
     *
     * @param yes the default is false
     * @return these options
     */
    public Options createNew(boolean yes) {
        flags = yes ? flags | CREATE_NEW : flags & ~CREATE_NEW;
        return this;
    }

    /**
     * Whether the database is opened for reading only, and left as it is.
     *
     * @param yes the default is false
     * @return these options
     */
    public Options readOnly(boolean yes) {
        flags = yes ? flags | READ_ONLY : flags & ~READ_ONLY;
        return this;
    }

    /**
     * What the database shares with others. Options of what it shares mean nothing then.
     *
     * @param shared open resources; null for none
     * @return these options
     */
    public Options resources(Resources shared) {
        resources = shared;
        return this;
    }

    /**
     * The memory budget: memtables, open tables, background work, and the block cache.
     *
     * @param bytes bytes
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: out of bounds
     */
    public Options memoryBytes(long bytes) {
        return set("memory_bytes", Long.toString(bytes));
    }

    /**
     * How much of the memory budget memtables have before they are flushed together.
     *
     * @param bytes bytes
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: out of bounds
     */
    public Options writeBufferBytes(long bytes) {
        return set("write_buffer_bytes", Long.toString(bytes));
    }

    /**
     * The size of the block cache, in place of what the memory budget leaves.
     *
     * @param bytes bytes
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: out of bounds
     */
    public Options cacheBytes(long bytes) {
        return set("cache_bytes", Long.toString(bytes));
    }

    /**
     * What writes are safe from that do not say so themselves.
     *
     * @param durability the default is {@link Durability#BUFFERED}
     * @return these options
     */
    public Options durability(Durability durability) {
        return set("durability", durability.text);
    }

    /**
     * How tables are compressed.
     *
     * @param name a name that the option {@code compression} has, such as {@code "lz4"}
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: there is no such compression
     */
    public Options compression(String name) {
        return set("compression", name.toLowerCase(Locale.ROOT));
    }

    /**
     * How the tree is compacted.
     *
     * @param name a name that the option {@code scheme} has, such as {@code "tiered"}
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: there is no such scheme
     */
    public Options scheme(String name) {
        return set("scheme", name);
    }

    /**
     * Where large values are stored.
     *
     * @param name a name that the option {@code values} has, such as {@code "log"}
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: there is no such layout
     */
    public Options values(String name) {
        return set("values", name);
    }

    /**
     * How many threads flush and compact.
     *
     * @param threads threads
     * @return these options
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: out of bounds
     */
    public Options backgroundThreads(int threads) {
        return set("background_threads", Integer.toString(threads));
    }

    /**
     * Every option with its value, as the text of a configuration file.
     *
     * @return lines of {@code name=value}
     */
    @Override
    public String toString() {
        return Native.text(Native.optionsText(pairs.toArray()));
    }

    /** Opens the database in a directory, and gives its handle. */
    long open(byte[] path) {
        Resources shared = resources;
        try {
            return Native.open(path, pairs.toArray(), flags, shared == null ? 0 : shared.handle());
        } finally {
            java.lang.ref.Reference.reachabilityFence(shared);
        }
    }
}
