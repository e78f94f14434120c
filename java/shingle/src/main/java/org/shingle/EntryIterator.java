package org.shingle;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Entries in the order of their keys, or in reverse.
 *
 * <p>An iterator shows the keys as they were when it was made. It is for one thread at a time, and
 * should be closed soon: see {@link Cursor}.
 *
 * <p>Where the store fails, every method throws the same error again, after the entries before the
 * error were given: so a scan that failed never looks finished. After the close every method throws
 * a {@link ShingleException} with the kind {@link ErrorKind#CLOSED}.
 */
public final class EntryIterator implements Iterator<Entry>, AutoCloseable {
    private final Cursor cursor;
    private final boolean isReverse;

    /** The cursor is at an entry that was given, and moves when the next one is asked for. */
    private boolean isGiven;

    EntryIterator(Cursor cursor, boolean isReverse) {
        this.cursor = cursor;
        this.isReverse = isReverse;
        try {
            cursor.begin(isReverse);
        } catch (RuntimeException | Error error) {
            cursor.close();
            throw error;
        }
    }

    @Override
    public boolean hasNext() {
        if (isGiven && cursor.isValid()) {
            isGiven = false;
            if (isReverse) {
                cursor.prev();
            } else {
                cursor.next();
            }
        }
        return cursor.isValid();
    }

    @Override
    public Entry next() {
        checkNext();
        Entry entry = new Entry(cursor.key(), cursor.value());
        isGiven = true;
        return entry;
    }

    /**
     * The key of the entry that {@link #next} gives.
     *
     * @return the key
     * @throws NoSuchElementException there are no more entries
     */
    public byte[] peekKey() {
        checkNext();
        return cursor.key();
    }

    /** Frees the iterator. A second call does nothing. */
    @Override
    public void close() {
        cursor.close();
    }

    private void checkNext() {
        if (!hasNext()) {
            throw new NoSuchElementException("there are no more entries");
        }
    }
}
