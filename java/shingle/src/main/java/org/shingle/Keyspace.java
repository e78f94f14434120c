package org.shingle;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Instant;
import java.util.Arrays;
import java.util.Objects;
import java.util.Optional;

/**
 * Keys and values with an order of their own inside a database. Keyspaces share the log of the
 * database, so a {@link WriteBatch} may write to several of them at once.
 *
 * <p>Safe for use by several threads. Closing frees what the program holds; the keyspace stays in
 * the database. After its database was closed, every method fails with {@link ErrorKind#CLOSED}.
 */
public final class Keyspace extends Owner {
    /** What {@link #get(ByteBuffer, ByteBuffer)} gives for a missing key. */
    public static final int NOT_FOUND = -1;

    private static final int EXPIRY_BYTES = 8;
    private static final long NEVER = -1;

    private final Object parent;

    /** The parent lives as long as the keyspace, so that the collector does not close it. */
    Keyspace(Object parent, long handle) {
        super(handle, Native::closeKeyspace);
        this.parent = parent;
    }

    /**
     * The name of the keyspace.
     *
     * @return the name in the database
     */
    public String name() {
        return Native.text(Native.keyspaceName(this, handle()));
    }

    /**
     * The value of a key.
     *
     * @param key the key
     * @return the value, or null where there is none
     */
    public byte[] get(byte[] key) {
        return Native.get(this, handle(), Objects.requireNonNull(key, "key"));
    }

    /**
     * The value of a key, in a buffer. With direct buffers nothing is allocated; others are copied.
     * A buffer's {@code Arena} must not be closed before or during the call.
     *
     * @param key the key: the bytes from the buffer's position to its limit
     * @param value gets the value, from its position on and as far as its limit allows. Its limit
     *     is then the end of these bytes; its position stays.
     * @return the size of the whole value in bytes, also where the buffer is smaller; or
     *     {@link #NOT_FOUND}
     */
    public int get(ByteBuffer key, ByteBuffer value) {
        if (value.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (!key.isDirect() || !value.isDirect()) {
            return getCopied(key, value);
        }
        int space = value.remaining();
        long size =
                Native.getDirect(
                        this,
                        handle(),
                        key,
                        key.position(),
                        key.remaining(),
                        value,
                        value.position(),
                        space);
        if (size >= 0) {
            value.limit(value.position() + (int) Math.min(size, space));
        }
        return (int) size;
    }

    private int getCopied(ByteBuffer key, ByteBuffer value) {
        byte[] found = get(bytes(key));
        if (found == null) {
            return NOT_FOUND;
        }
        int count = Math.min(found.length, value.remaining());
        value.put(value.position(), found, 0, count);
        value.limit(value.position() + count);
        return found.length;
    }

    /**
     * The value of a key, and when it ends.
     *
     * @param key the key
     * @return the value, or null where there is none
     */
    public ExpiringValue getWithExpiry(byte[] key) {
        Objects.requireNonNull(key, "key");
        byte[] packed = Native.getWithExpiry(this, handle(), key);
        if (packed == null) {
            return null;
        }
        long millis = Packer.getLong(packed, 0);
        byte[] value = Arrays.copyOfRange(packed, EXPIRY_BYTES, packed.length);
        Instant expiry = millis == NEVER ? null : Instant.ofEpochMilli(millis);
        return new ExpiringValue(value, Optional.ofNullable(expiry));
    }

    /**
     * The values of several keys, read together.
     *
     * @param keys the keys
     * @return a value for each key, or null where there is none
     */
    public byte[][] multiGet(byte[]... keys) {
        byte[] packed = Native.multiGet(this, handle(), Several.packed(keys));
        return Several.values(packed, keys.length);
    }

    /**
     * Stores a value under a key.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        put(key, value, WriteOptions.DEFAULT);
    }

    /**
     * Stores a value under a key.
     *
     * @param key the key
     * @param value the value
     * @param options how the write is done
     */
    public void put(byte[] key, byte[] value, WriteOptions options) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        Native.put(this, handle(), key, value, options.flags);
    }

    /**
     * Stores a value under a key. With direct buffers nothing is allocated; others are copied. The
     * program must not change the buffers during the call. A buffer's {@code Arena} must not be
     * closed before or during the call: the library would use memory that was given back.
     *
     * @param key the key: the bytes from the buffer's position to its limit
     * @param value the value, likewise
     */
    public void put(ByteBuffer key, ByteBuffer value) {
        put(key, value, WriteOptions.DEFAULT);
    }

    /**
     * Stores a value under a key: see {@link #put(ByteBuffer, ByteBuffer)}.
     *
     * @param key the key: the bytes from the buffer's position to its limit
     * @param value the value, likewise
     * @param options how the write is done
     */
    public void put(ByteBuffer key, ByteBuffer value, WriteOptions options) {
        if (!key.isDirect() || !value.isDirect()) {
            put(bytes(key), bytes(value), options);
            return;
        }
        Native.putDirect(
                this,
                handle(),
                key,
                key.position(),
                key.remaining(),
                value,
                value.position(),
                value.remaining(),
                options.flags);
    }

    /**
     * Stores a value that ends.
     *
     * @param key the key
     * @param value the value
     * @param expiry the moment from which the key is missing, to a millisecond
     * @param options how the write is done
     */
    public void putExpiring(byte[] key, byte[] value, Instant expiry, WriteOptions options) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long millis = Times.epochMillis(expiry);
        Native.putExpiring(this, handle(), key, value, millis, options.flags);
    }

    /**
     * Removes a key; it need not exist.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        delete(key, WriteOptions.DEFAULT);
    }

    /**
     * Removes a key; it need not exist.
     *
     * @param key the key
     * @param options how the write is done
     */
    public void delete(byte[] key, WriteOptions options) {
        Native.delete(this, handle(), Objects.requireNonNull(key, "key"), options.flags);
    }

    /**
     * Removes the keys of a range. It takes the same time whatever the number of keys.
     *
     * @param start the first key that is removed
     * @param end the first key that stays
     * @throws ShingleException {@link ErrorKind#INVALID_ARGUMENT}: the end is before the start
     */
    public void deleteRange(byte[] start, byte[] end) {
        deleteRange(start, end, WriteOptions.DEFAULT);
    }

    /**
     * Removes the keys of a range: see {@link #deleteRange(byte[], byte[])}.
     *
     * @param start the first key that is removed
     * @param end the first key that stays
     * @param options how the write is done
     */
    public void deleteRange(byte[] start, byte[] end, WriteOptions options) {
        Objects.requireNonNull(start, "start");
        Objects.requireNonNull(end, "end");
        Native.deleteRange(this, handle(), start, end, options.flags);
    }

    /**
     * Applies an operand to the value of a key, by the keyspace's merge operator.
     *
     * @param key the key
     * @param operand what the merge operator takes
     * @throws ShingleException the keyspace has no merge operator
     */
    public void merge(byte[] key, byte[] operand) {
        merge(key, operand, WriteOptions.DEFAULT);
    }

    /**
     * Applies an operand to the value of a key: see {@link #merge(byte[], byte[])}.
     *
     * @param key the key
     * @param operand what the merge operator takes
     * @param options how the write is done
     */
    public void merge(byte[] key, byte[] operand, WriteOptions options) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        Native.merge(this, handle(), key, operand, options.flags);
    }

    /**
     * A cursor over the keys as they are now.
     *
     * @param options which keys, and how they are read
     * @return a cursor without a position, to be closed
     */
    public Cursor cursor(ReadOptions options) {
        long made =
                Native.cursor(
                        this, handle(), options.start, options.end, options.prefix, options.flags);
        return new Cursor(this, made);
    }

    /**
     * Entries as they are now, in the order of their keys.
     *
     * @param options which keys, and how they are read
     * @return an iterator, to be closed
     */
    public EntryIterator iterator(ReadOptions options) {
        return new EntryIterator(cursor(options), false);
    }

    /**
     * Entries as they are now, from the last key to the first one.
     *
     * @param options which keys, and how they are read
     * @return an iterator, to be closed
     */
    public EntryIterator reverseIterator(ReadOptions options) {
        return new EntryIterator(cursor(options), true);
    }

    /**
     * Compacts the keys of a range, and waits until it is done.
     *
     * @param start the first key; null for no bound
     * @param end the first key behind the range; null for no bound
     */
    public void compactRange(byte[] start, byte[] end) {
        Native.compactRange(this, handle(), start, end);
    }

    /**
     * An estimate of the number of keys. It reads no data. It is exact where no key was written
     * twice, deleted or expired.
     *
     * @return about how many keys there are
     */
    public long approximateSize() {
        return Native.approximateSize(this, handle());
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }
}
