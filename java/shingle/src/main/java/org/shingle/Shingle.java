package org.shingle;

import java.io.ByteArrayOutputStream;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.LongConsumer;

/**
 * An open database.
 *
 * <p>Safe for use by several threads. Its own methods for keys and values are those of its default
 * keyspace; {@link #keyspace} and {@link #createKeyspace} give others.
 *
 * <p>One process opens a database at a time, once.
 */
public final class Shingle extends Owner {
    private static final int MAY_EXIST = 2;

    /** The default keyspace, for the methods of the database: no program closes it. */
    final Keyspace keyspace;

    private Shingle(long handle, Path path) {
        super(handle, new FreeDatabase(handle, Native::closeDatabase, path));
        keyspace = openedOrClosed();
    }

    /** The default keyspace; without it the database must not stay open. */
    private Keyspace openedOrClosed() {
        try {
            return defaultKeyspace();
        } catch (RuntimeException | Error error) {
            super.close();
            throw error;
        }
    }

    /** Closing a forgotten database can take long, so it has a thread of its own. */
    static final class FreeDatabase extends Free {
        private final Path path;

        FreeDatabase(long handle, LongConsumer free, Path path) {
            super(handle, free);
            this.path = path;
        }

        @Override
        void forgotten() {
            if (isArmed()) {
                log(Level.WARNING, "the program forgot to close the database " + path, null);
                Thread closing = new Thread(this::runLogged, "shingle-close");
                closing.setDaemon(true);
                closing.start();
            }
        }
    }

    /**
     * Opens the database in a directory, and creates it where it does not exist.
     *
     * @param path the directory
     * @return the open database, to be closed
     * @throws ShingleException {@link ErrorKind#LOCKED}: it is open already.
     *     {@link ErrorKind#CORRUPTION}: its files are damaged
     */
    public static Shingle open(Path path) {
        return open(path, new Options());
    }

    /**
     * Opens the database in a directory.
     *
     * @param path the directory
     * @param options how it is opened
     * @return the open database, to be closed
     * @throws ShingleException {@link ErrorKind#LOCKED}: it is open already.
     *     {@link ErrorKind#NOT_FOUND}: it does not exist, and must not be created.
     *     {@link ErrorKind#CORRUPTION}: its files are damaged
     */
    public static Shingle open(Path path, Options options) {
        return new Shingle(options.open(nativePath(path)), path);
    }

    /**
     * Removes the database in a directory, and the directory where nothing else is in it. Files that
     * are not Shingle's stay.
     *
     * @param path the directory
     * @throws ShingleException {@link ErrorKind#LOCKED}: a process has it open. {@link
     *     ErrorKind#NOT_FOUND}: there is no database
     */
    public static void destroy(Path path) {
        Native.destroy(nativePath(path));
    }

    /** The library opens files itself, so it knows only the file system of the machine. */
    private static byte[] nativePath(Path path) {
        if (path.getFileSystem() != FileSystems.getDefault()) {
            throw new ShingleException(
                    ErrorKind.INVALID_ARGUMENT,
                    "the path " + path + " is of the file system "
                            + path.getFileSystem().provider().getScheme()
                            + ": a database must be in the default file system");
        }
        return pathBytes(path.toUri().getRawPath());
    }

    /**
     * The bytes of a path from those of its URI. They are those of the file system, of which the
     * text of the path can have lost some.
     */
    private static byte[] pathBytes(String encoded) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        int end = encoded.length();
        if (end > 1 && encoded.charAt(end - 1) == '/') {
            end--; // the URI of a directory
        }
        for (int at = 0; at < end; at++) {
            if (encoded.charAt(at) == '%') {
                bytes.write(Integer.parseInt(encoded.substring(at + 1, at + 3), 16));
                at += 2;
            } else {
                bytes.write(encoded.charAt(at));
            }
        }
        return bytes.toByteArray();
    }

    /**
     * Closes the database. Everything that was acknowledged survives a power loss when this
     * returns. Calls of other threads that are in the database end first, and later ones fail with
     * {@link ErrorKind#CLOSED}. Snapshots, cursors and iterators stay readable until they are
     * closed. A second close does nothing; in another thread it returns when the first one is done.
     *
     * @throws ShingleException the last flush or sync failed; the database is closed all the same
     */
    @Override
    public void close() {
        try {
            super.close();
        } finally {
            keyspace.close();
        }
    }

    /**
     * The keyspace that every database has. The methods of the database go on without it.
     *
     * @return the keyspace, to be closed: each call gives one of its own
     */
    public Keyspace defaultKeyspace() {
        return new Keyspace(this, Native.defaultKeyspace(this, handle()));
    }

    /**
     * The value of a key: see {@link Keyspace#get(byte[])}.
     *
     * @param key the key
     * @return the value, or null where there is none
     */
    public byte[] get(byte[] key) {
        return keyspace.get(key);
    }

    /**
     * The value of a key, in a buffer: see {@link Keyspace#get(ByteBuffer, ByteBuffer)}.
     *
     * @param key the key: the bytes from the buffer's position to its limit
     * @param value gets the value
     * @return the size of the whole value in bytes, or {@link Keyspace#NOT_FOUND}
     */
    public int get(ByteBuffer key, ByteBuffer value) {
        return keyspace.get(key, value);
    }

    /**
     * The values of several keys, read together.
     *
     * @param keys the keys
     * @return a value for each key, or null where there is none
     */
    public byte[][] multiGet(byte[]... keys) {
        return keyspace.multiGet(keys);
    }

    /**
     * Stores a value under a key.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        keyspace.put(key, value);
    }

    /**
     * Stores a value under a key.
     *
     * @param key the key
     * @param value the value
     * @param options how the write is done
     */
    public void put(byte[] key, byte[] value, WriteOptions options) {
        keyspace.put(key, value, options);
    }

    /**
     * Stores a value under a key: see {@link Keyspace#put(ByteBuffer, ByteBuffer)}.
     *
     * @param key the key: the bytes from the buffer's position to its limit
     * @param value the value, likewise
     */
    public void put(ByteBuffer key, ByteBuffer value) {
        keyspace.put(key, value);
    }

    /**
     * Removes a key; it need not exist.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        keyspace.delete(key);
    }

    /**
     * Removes the keys of a range: see {@link Keyspace#deleteRange(byte[], byte[])}.
     *
     * @param start the first key that is removed
     * @param end the first key that stays
     */
    public void deleteRange(byte[] start, byte[] end) {
        keyspace.deleteRange(start, end);
    }

    /**
     * A cursor over the keys of the default keyspace as they are now.
     *
     * @param options which keys, and how they are read
     * @return a cursor without a position, to be closed
     */
    public Cursor cursor(ReadOptions options) {
        return keyspace.cursor(options);
    }

    /**
     * Entries of the default keyspace as they are now, in the order of their keys.
     *
     * @param options which keys, and how they are read
     * @return an iterator, to be closed
     */
    public EntryIterator iterator(ReadOptions options) {
        return keyspace.iterator(options);
    }

    /**
     * Entries of the default keyspace as they are now, from the last key to the first one.
     *
     * @param options which keys, and how they are read
     * @return an iterator, to be closed
     */
    public EntryIterator reverseIterator(ReadOptions options) {
        return keyspace.reverseIterator(options);
    }

    /**
     * Writes a batch: all of it, or nothing.
     *
     * @param batch the batch; it stays as it is
     */
    public void write(WriteBatch batch) {
        write(batch, WriteOptions.DEFAULT);
    }

    /**
     * Writes a batch: all of it, or nothing.
     *
     * @param batch the batch; it stays as it is
     * @param options how the write is done
     * @throws ShingleException {@link ErrorKind#CLOSED}: a keyspace of the batch was closed
     */
    public void write(WriteBatch batch, WriteOptions options) {
        batch.checkOpen();
        Packer operations = batch.operations;
        Native.write(this, handle(), batch, operations.bytes, operations.used, options.flags);
    }

    /**
     * The state of all keyspaces as it is now, seen through the default keyspace;
     * {@link Snapshot#of} shows others.
     *
     * @return a snapshot, to be closed
     */
    public Snapshot snapshot() {
        return new Snapshot(this, Native.snapshot(this, handle()));
    }

    /**
     * Begins a transaction.
     *
     * @return a transaction, to be committed and closed
     */
    public Transaction begin() {
        return begin(TransactionOptions.DEFAULT);
    }

    /**
     * Begins a transaction.
     *
     * @param options how it is isolated
     * @return a transaction, to be committed and closed
     */
    public Transaction begin(TransactionOptions options) {
        long made = Native.begin(this, handle(), options.flags, options.lockTimeoutMillis);
        return new Transaction(this, made);
    }

    /**
     * Creates a keyspace.
     *
     * @param name its name
     * @param options its fixed properties
     * @return the keyspace, to be closed
     * @throws ShingleException {@link ErrorKind#ALREADY_EXISTS}: there is one of this name
     */
    public Keyspace createKeyspace(String name, KeyspaceOptions options) {
        return keyspace(name, options, 0);
    }

    /**
     * Opens a keyspace, and creates it where it does not exist.
     *
     * @param name its name
     * @param options its fixed properties; one that exists must have the same
     * @return the keyspace, to be closed
     */
    public Keyspace openKeyspace(String name, KeyspaceOptions options) {
        return keyspace(name, options, MAY_EXIST);
    }

    private Keyspace keyspace(String name, KeyspaceOptions options, int flags) {
        String operator = options.mergeOperator;
        long made =
                Native.createKeyspace(
                        this,
                        handle(),
                        Native.utf8(name),
                        operator == null ? null : Native.utf8(operator),
                        options.ttlMillis,
                        options.prefixBytes,
                        options.flags | flags);
        return new Keyspace(this, made);
    }

    /**
     * A keyspace that exists, with the properties that it has.
     *
     * @param name its name
     * @return the keyspace, to be closed
     * @throws ShingleException {@link ErrorKind#NOT_FOUND}: there is none of this name
     */
    public Keyspace keyspace(String name) {
        return new Keyspace(this, Native.findKeyspace(this, handle(), Native.utf8(name)));
    }

    /**
     * The names of all keyspaces.
     *
     * @return the names, with that of the default keyspace
     */
    public List<String> keyspaces() {
        return Several.texts(Native.keyspaces(this, handle()));
    }

    /**
     * Removes a keyspace with everything in it.
     *
     * @param name its name
     * @throws ShingleException {@link ErrorKind#NOT_FOUND}: there is none of this name
     */
    public void dropKeyspace(String name) {
        Native.dropKeyspace(this, handle(), Native.utf8(name));
    }

    /** Writes what is in memory to tables, and waits until they are there. */
    public void flush() {
        Native.flush(this, handle());
    }

    /**
     * Begins what {@link #flush} does, and does not wait for its end. An error of the flush comes
     * with a later write, or with the close.
     */
    public void beginFlush() {
        Native.beginFlush(this, handle());
    }

    /** Makes every earlier write safe from power loss, and waits until it is. */
    public void sync() {
        Native.sync(this, handle());
    }

    /** Compacts all keyspaces, and waits until it is done. */
    public void compact() {
        Native.compact(this, handle());
    }

    /** Waits until no background work is due. */
    public void waitIdle() {
        Native.waitIdle(this, handle());
    }

    /**
     * Waits until a write need not wait.
     *
     * @param bytes bytes of keys and values of the write
     * @param timeout how long at most; what is below zero is zero
     * @return whether such a write need not wait now
     */
    public boolean waitWritable(long bytes, Duration timeout) {
        return Native.waitWritable(this, handle(), bytes, Times.millis(timeout));
    }

    /**
     * Copies the database as it is now, by links where the file system has them.
     *
     * @param target a directory that does not exist
     * @throws ShingleException {@link ErrorKind#ALREADY_EXISTS}: the directory exists
     */
    public void checkpoint(Path target) {
        Native.checkpoint(this, handle(), nativePath(target));
    }

    /**
     * Changes an option of the open database.
     *
     * @param name the name, as for {@link Options#set}
     * @param value the value
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: there is no such option, the
     *     value is out of bounds, or the option is fixed while the database is open
     */
    public void setOption(String name, String value) {
        Native.setOption(this, handle(), Native.utf8(name), Native.utf8(value));
    }

    /**
     * Reads the whole database and compares it with its checksums.
     *
     * @return the problems, in words; nothing where there are none
     */
    public List<String> check() {
        return Several.texts(Native.check(this, handle()));
    }

    /**
     * The statistics.
     *
     * @return one object as JSON
     */
    public String statisticsJson() {
        return Native.text(Native.stats(this, handle()));
    }

    /**
     * The numbers of the statistics.
     *
     * @return each number by its path in {@link #statisticsJson}, such as {@code "cache_bytes"} or
     *     {@code "levels[0].files"}, in the order of the text
     */
    public Map<String, Double> statistics() {
        return JsonNumbers.of(statisticsJson());
    }

    /**
     * A property, by a name that RocksDB or LevelDB has.
     *
     * @param name the name, such as {@code "rocksdb.estimate-num-keys"}
     * @return its value, or null where there is none of this name
     */
    public String property(String name) {
        byte[] found = Native.property(this, handle(), Native.utf8(name));
        return found == null ? null : Native.text(found);
    }

    /**
     * A property that is a number, by a name that RocksDB or LevelDB has.
     *
     * @param name the name, such as {@code "rocksdb.num-snapshots"}
     * @return the number, or nothing where there is none of this name, or it is a text
     */
    public OptionalLong numericProperty(String name) {
        String found = property(name);
        try {
            return found == null ? OptionalLong.empty() : OptionalLong.of(Long.parseLong(found));
        } catch (NumberFormatException error) {
            return OptionalLong.empty();
        }
    }

    @Override
    String kindName() {
        return "database";
    }
}
