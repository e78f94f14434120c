package org.shingle;

import java.util.Arrays;
import java.util.ConcurrentModificationException;

/**
 * A position in the keys of a keyspace or a snapshot, which moves both ways.
 *
 * <p>A cursor shows the keys as they were when it was made, whatever is written since. It has no
 * position until a seek. It fetches entries in chunks, which grow while it goes on in one
 * direction: so most moves do not call the native library, and a change of direction does.
 *
 * <p>Where a movement fails, {@link #isValid} and all movements but seeks throw the same error
 * again. The entries before the error are shown first; in reverse, one less. Damage is an error of
 * seeks too, so a scan behind it needs another cursor.
 *
 * <p>A cursor is for one thread at a time. It keeps old data from being removed, so it should be
 * closed soon. It stays readable when its database is closed.
 */
public final class Cursor extends Owner {
    private static final int FORWARD = 0;
    private static final int IN_REVERSE = 1;
    private static final int FIRST = 2;
    private static final int LAST = 3;
    private static final int SEEK = 4;
    private static final int SEEK_FOR_PREV = 5;
    private static final int AFTER = 6;
    private static final int BEFORE = 7;

    /** Bytes of the first chunk after a seek, enough for short scans, and of the largest one. */
    private static final int CHUNK_MIN = 2 << 10;

    private static final int CHUNK_MAX = 64 << 10;

    /** Space for the last entry of a chunk, which may go beyond its bytes. */
    private static final int CHUNK_SLACK = 1 << 10;

    private final Object parent;
    private byte[] chunk = new byte[CHUNK_MIN + CHUNK_SLACK];
    private int used;
    private int at;
    private int keyBytes;
    private int valueBytes;
    private int chunkBytes = CHUNK_MIN;
    private boolean isReverse;
    private boolean isScan;

    /** The error of the last movement. It stays until a seek succeeds. */
    private Throwable failure;

    /** The parent lives as long as the cursor, so that the collector does not close it. */
    Cursor(Object parent, long handle) {
        super(handle, Native::closeCursor);
        this.parent = parent;
    }

    /** What an iterator of a transaction uses: it has no seeks, and begins at either end. */
    static Cursor ofScan(Object parent, long handle) {
        Cursor cursor = new Cursor(parent, handle);
        cursor.isScan = true;
        return cursor;
    }

    /** Goes to the first key, or to the last one. */
    void begin(boolean inReverse) {
        if (isScan) {
            seek(inReverse ? IN_REVERSE : FORWARD, null, inReverse);
        } else if (inReverse) {
            seekToLast();
        } else {
            seekToFirst();
        }
    }

    /** Goes to the first key. */
    public void seekToFirst() {
        seek(FIRST, null, false);
    }

    /** Goes to the last key. */
    public void seekToLast() {
        seek(LAST, null, true);
    }

    /**
     * Goes to a key, or the first one behind it.
     *
     * @param key the key
     */
    public void seek(byte[] key) {
        seek(SEEK, key.clone(), false);
    }

    /**
     * Goes to a key, or the last one before it.
     *
     * @param key the key
     */
    public void seekForPrev(byte[] key) {
        seek(SEEK_FOR_PREV, key.clone(), true);
    }

    /**
     * Whether the cursor is at a key.
     *
     * @return false before the first seek, and behind either end
     * @throws ShingleException the last movement failed, and this is its error again: so a scan
     *     that failed never looks finished. {@link ErrorKind#CLOSED}: the cursor was closed
     */
    public boolean isValid() {
        if (isClosed()) {
            throw closedError();
        }
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure != null) {
            throw (RuntimeException) failure;
        }
        return at < used;
    }

    /**
     * Goes to the next key; behind the last one the cursor is not valid.
     *
     * @throws IllegalStateException the cursor is at no key
     */
    public void next() {
        checkValid();
        if (isReverse) {
            seek(AFTER, key(), false);
        } else {
            advance(FORWARD);
        }
    }

    /**
     * Goes to the key before; before the first one the cursor is not valid.
     *
     * @throws IllegalStateException the cursor is at no key
     */
    public void prev() {
        checkValid();
        if (isReverse) {
            advance(IN_REVERSE);
        } else {
            seek(BEFORE, key(), true);
        }
    }

    /**
     * The key.
     *
     * @return the key, in an array of its own
     * @throws IllegalStateException the cursor is at no key
     */
    public byte[] key() {
        checkValid();
        return copied(at + Packer.SIZES, keyBytes);
    }

    /**
     * The value.
     *
     * @return the value, in an array of its own
     * @throws IllegalStateException the cursor is at no key
     */
    public byte[] value() {
        checkValid();
        return copied(at + Packer.SIZES + keyBytes, valueBytes);
    }

    /** Bytes of the chunk. They are inside it, unless another thread moves the cursor. */
    private byte[] copied(int start, int count) {
        if (start < 0 || count < 0 || count > used - start) {
            throw new ConcurrentModificationException("two threads use one cursor");
        }
        return Arrays.copyOfRange(chunk, start, start + count);
    }

    /** Frees the cursor, and what it keeps from being removed. A second call does nothing. */
    @Override
    public void close() {
        super.close();
    }

    private void checkValid() {
        if (!isValid()) {
            throw new IllegalStateException("the cursor is at no key: seek, and ask isValid()");
        }
    }

    /** Goes to the next entry of the chunk, or fetches the chunk behind it. */
    private void advance(int movement) {
        at += Packer.SIZES + keyBytes + valueBytes;
        if (at < used) {
            enter();
        } else {
            chunkBytes = Math.min(chunkBytes * 4, CHUNK_MAX);
            fetch(movement, null);
        }
    }

    private void seek(int movement, byte[] key, boolean goesReverse) {
        isReverse = goesReverse;
        chunkBytes = CHUNK_MIN;
        fetch(movement, key);
    }

    /** Fetches the entries behind a movement. */
    private void fetch(int movement, byte[] key) {
        used = 0;
        at = 0;
        try {
            used = filled(movement, key);
            failure = null;
        } catch (RuntimeException | Error error) {
            failure = error;
            throw error;
        }
        if (used > 0) {
            enter();
        }
    }

    /** Fetches the chunk, and gives its bytes. */
    private int filled(int movement, byte[] key) {
        int usual = chunkBytes + CHUNK_SLACK;
        if (chunk.length < usual || chunk.length > CHUNK_MAX * 16) {
            chunk = new byte[usual]; // An array that one large value needed is not kept.
        }
        int bytes = Native.fill(this, handle(), movement, key, chunkBytes, chunk);
        if (bytes > chunk.length) {
            chunk = new byte[bytes];
            Native.chunk(this, handle(), chunk);
        }
        return bytes;
    }

    private void enter() {
        keyBytes = Packer.getInt(chunk, at);
        valueBytes = Packer.getInt(chunk, at + 4);
    }
}
