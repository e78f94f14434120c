package org.shingle.kafka;

import java.util.NoSuchElementException;
import java.util.function.Consumer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.shingle.Cursor;

/** Entries of a keyspace, as they were when it was made. */
final class StoreIterator implements Entries {
    private final Cursor cursor;
    private final boolean isReverse;
    private final Consumer<Entries> onClose;

    /** The cursor is at an entry that was given, and moves when the next one is asked for. */
    private boolean isGiven;

    private volatile boolean isClosed;

    StoreIterator(Cursor cursor, boolean isReverse, Consumer<Entries> onClose) {
        this.cursor = cursor;
        this.isReverse = isReverse;
        this.onClose = onClose;
        try {
            if (isReverse) {
                cursor.seekToLast();
            } else {
                cursor.seekToFirst();
            }
        } catch (RuntimeException error) {
            cursor.close();
            throw error;
        }
    }

    @Override
    public boolean hasNext() {
        if (isClosed) {
            throw new InvalidStateStoreException("the iterator was closed, or its store");
        }
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
    public KeyValue<Bytes, byte[]> next() {
        Bytes key = peekNextKey();
        byte[] value = cursor.value();
        isGiven = true;
        return KeyValue.pair(key, value);
    }

    @Override
    public Bytes peekNextKey() {
        checkNext();
        return Bytes.wrap(cursor.key());
    }

    @Override
    public void skip() {
        checkNext();
        isGiven = true;
    }

    private void checkNext() {
        if (!hasNext()) {
            throw new NoSuchElementException("there are no more entries");
        }
    }

    @Override
    public void close() {
        isClosed = true;
        cursor.close();
        onClose.accept(this);
    }
}
