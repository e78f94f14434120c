package org.shingle.kafka;

import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.shingle.Cursor;
import org.shingle.ShingleException;

/** Entries of a keyspace, as they were when it was made. */
final class StoreIterator implements Entries {
    private final Cursor cursor;
    private final boolean isReverse;
    private final Consumer<Entries> onClose;

    /** Turns errors of the database into those that Kafka acts on. */
    private final Function<ShingleException, RuntimeException> errors;

    /** The cursor is at an entry that was given, and moves when the next one is asked for. */
    private boolean isGiven;

    private volatile boolean isClosed;

    StoreIterator(
            Cursor cursor,
            boolean isReverse,
            Consumer<Entries> onClose,
            Function<ShingleException, RuntimeException> errors) {
        this.cursor = cursor;
        this.isReverse = isReverse;
        this.onClose = onClose;
        this.errors = errors;
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
        return calling(this::findNext);
    }

    private boolean findNext() {
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
        byte[] value = calling(cursor::value);
        isGiven = true;
        return KeyValue.pair(key, value);
    }

    @Override
    public Bytes peekNextKey() {
        checkNext();
        return Bytes.wrap(calling(cursor::key));
    }

    @Override
    public void skip() {
        checkNext();
        isGiven = true;
    }

    /** The store may close, or a file turn out to be damaged, while the iterator is read. */
    private <T> T calling(Supplier<T> work) {
        try {
            return work.get();
        } catch (ShingleException error) {
            throw errors.apply(error);
        }
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
