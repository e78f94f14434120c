package org.shingle.kafka;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.shingle.Keyspace;
import org.shingle.WriteBatch;

/**
 * Writes to a keyspace that wait in memory for the commit of their task. Reads see them.
 *
 * <p>One thread writes, and others read at the same time. A reader that looks here first and in the
 * keyspace then misses nothing, because writes are in the keyspace before they leave.
 */
final class HeldWrites {
    /** In place of a value: the key is removed. Known by its identity. */
    private static final byte[] REMOVED = {};

    /** What an entry takes beside its bytes. */
    private static final int ENTRY_BYTES = 100;

    private final NavigableMap<byte[], byte[]> writes =
            new ConcurrentSkipListMap<>(Arrays::compareUnsigned);

    /** Ranges that are removed in the keyspace below. */
    private final List<KeyRange> removed = new CopyOnWriteArrayList<>();

    private long bytes;

    /** How many values there are, and how many removals. */
    private int count;

    int count() {
        return count;
    }

    /** About how much memory the writes take. */
    long bytes() {
        return bytes;
    }

    /** Puts a value, or removes the key where it is null. */
    void put(byte[] key, byte[] value) {
        byte[] before = writes.put(key, value == null ? REMOVED : value);
        bytes += value == null ? 0 : value.length;
        bytes += before == null ? key.length + ENTRY_BYTES : -before.length;
        if (before == null) {
            count++;
        }
    }

    /** What is removed counts until the commit. */
    void removeRange(KeyRange range) {
        removed.add(range);
        inside(range).clear();
    }

    private NavigableMap<byte[], byte[]> inside(KeyRange range) {
        NavigableMap<byte[], byte[]> found = writes;
        found = range.start() == null ? found : found.tailMap(range.start(), true);
        return range.end() == null ? found : found.headMap(range.end(), false);
    }

    private boolean isRemoved(byte[] key) {
        for (KeyRange range : removed) {
            if (range.contains(key)) {
                return true;
            }
        }
        return false;
    }

    byte[] get(Keyspace below, byte[] key) {
        byte[] found = writes.get(key);
        if (found != null) {
            return found == REMOVED ? null : found;
        }
        return isRemoved(key) ? null : below.get(key);
    }

    /** Moves the writes into a batch; {@link #clear} forgets them when it was written. */
    void addTo(WriteBatch batch, Keyspace below) {
        removed.forEach(range -> batch.deleteRange(below, range.start(), range.end()));
        writes.forEach((key, value) -> {
            if (value == REMOVED) {
                batch.delete(below, key);
            } else {
                batch.put(below, key, value);
            }
        });
    }

    void clear() {
        writes.clear();
        removed.clear();
        bytes = 0;
        count = 0;
    }

    /**
     * The writes of a range as they are now, over an iterator of the keyspace.
     *
     * @param below makes that iterator, after the writes were looked at
     */
    Entries over(
            KeyRange range,
            boolean isReverse,
            java.util.function.Supplier<StoreIterator> below,
            Consumer<Entries> onClose) {
        NavigableMap<byte[], byte[]> found = new TreeMap<>(Arrays::compareUnsigned);
        found.putAll(inside(range));
        List<KeyRange> gone = new ArrayList<>(removed);
        Map<byte[], byte[]> ordered = isReverse ? found.descendingMap() : found;
        Iterator<Map.Entry<byte[], byte[]>> held = ordered.entrySet().iterator();
        return new Merged(held, gone, below.get(), isReverse, onClose);
    }

    private static final class Merged implements Entries {
        private final Iterator<Map.Entry<byte[], byte[]>> held;
        private final List<KeyRange> gone;
        private final StoreIterator below;
        private final boolean isReverse;
        private final Consumer<Entries> onClose;
        private Map.Entry<byte[], byte[]> nextHeld;
        private boolean isClosed;

        Merged(
                Iterator<Map.Entry<byte[], byte[]>> held,
                List<KeyRange> gone,
                StoreIterator below,
                boolean isReverse,
                Consumer<Entries> onClose) {
            this.held = held;
            this.gone = gone;
            this.below = below;
            this.isReverse = isReverse;
            this.onClose = onClose;
            nextHeld = taken();
        }

        private Map.Entry<byte[], byte[]> taken() {
            return held.hasNext() ? held.next() : null;
        }

        /** Passes by what is removed, and what is below of keys that were written. */
        @Override
        public boolean hasNext() {
            if (isClosed) {
                throw new InvalidStateStoreException("the iterator was closed, or its store");
            }
            while (true) {
                boolean hasBelow = below.hasNext();
                if (hasBelow && isGone(below.peekNextKey().get())) {
                    below.skip();
                } else if (nextHeld == null) {
                    return hasBelow;
                } else {
                    int order = hasBelow ? order(below.peekNextKey().get()) : 1;
                    if (order == 0) {
                        below.skip();
                    } else if (order < 0 || nextHeld.getValue() != REMOVED) {
                        return true;
                    } else {
                        nextHeld = taken();
                    }
                }
            }
        }

        private boolean isGone(byte[] key) {
            return gone.stream().anyMatch(range -> range.contains(key));
        }

        /** Below zero: the entry below comes before that which is held. */
        private int order(byte[] keyBelow) {
            int order = Arrays.compareUnsigned(keyBelow, nextHeld.getKey());
            return isReverse ? -order : order;
        }

        private boolean isHeldNext() {
            if (!hasNext()) {
                throw new NoSuchElementException("there are no more entries");
            }
            return nextHeld != null
                    && (!below.hasNext() || order(below.peekNextKey().get()) > 0);
        }

        @Override
        public Bytes peekNextKey() {
            return isHeldNext() ? Bytes.wrap(nextHeld.getKey()) : below.peekNextKey();
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            if (!isHeldNext()) {
                return below.next();
            }
            KeyValue<Bytes, byte[]> next =
                    KeyValue.pair(Bytes.wrap(nextHeld.getKey()), nextHeld.getValue());
            nextHeld = taken();
            return next;
        }

        @Override
        public void skip() {
            next();
        }

        @Override
        public void close() {
            isClosed = true;
            below.close();
            onClose.accept(this);
        }
    }
}
