package org.shingle.kafka;

import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * A store whose entries have a time and end some time after it.
 *
 * <p>Time is divided into segments of equal length. The key of an entry in the database is the
 * number of its segment, eight bytes, and then the key that the changelog has. So one range
 * deletion ends a segment, and the entries of one key are together in each of the few segments that
 * are alive. The order of entries is that of Kafka's own segmented stores, on which its caches
 * depend: by segment, and by key within it.
 *
 * <p>A store whose windows are emitted when they close is also read by time alone, and then in the
 * order of time. Such a store keeps the keys of its entries in that order in a keyspace beside.
 *
 * <p>The time of the store is the latest time of an entry since it was opened. It decides which
 * entries are too late to be kept and which are too old to be shown.
 */
abstract class SegmentedStore extends ShingleStore {
    private static final long NO_TIME = -1;

    private final long retentionMs;
    private final Segments segments;
    private final TimeOrder timeOrder;
    private volatile long streamTime = NO_TIME;
    private Sensor droppedRecords;

    /**
     * Makes a store.
     *
     * @param timeOrder how keys are turned to be in the order of time; null: the store is not read
     *     in that order
     */
    SegmentedStore(
            String name, String scope, long retentionMs, long segmentMs, TimeOrder timeOrder) {
        super(name, scope);
        this.retentionMs = retentionMs;
        this.segments = new Segments(retentionMs, segmentMs);
        this.timeOrder = timeOrder;
    }

    /** The time of an entry, which decides its segment. */
    abstract long time(byte[] key);

    /** Whether it has windows or sessions. */
    abstract Shape.Kind kind();

    @Override
    final Shape shape() {
        return new Shape(kind(), Suppliers.Format.ofStore(this), segments.lengthMs(), hasTimes());
    }

    /** Whether the database has the keys of entries by their time too. */
    final boolean hasTimes() {
        return timeOrder != null;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        droppedRecords = KafkaInternals.droppedRecords(context);
        streamTime = NO_TIME;
        super.init(context, root);
    }

    @Override
    void opened(StoreDatabase database) {
        segments.find(database);
    }

    final void putEntry(byte[] key, byte[] value) {
        long time = time(key);
        streamTime = Math.max(streamTime, time);
        if (!segments.isLive(segments.of(time), streamTime)) {
            droppedRecords.record();
            return;
        }
        write(() -> {
            StoreDatabase.Batch batch = endedBatch(streamTime, false);
            segments.add(segments.of(time));
            putEntry(key, value, batch);
        });
    }

    /** Puts an entry with a batch, which may be null. */
    private void putEntry(byte[] key, byte[] value, StoreDatabase.Batch given) {
        if (given == null && timeOrder == null) {
            database().put(stored(key), value);
            return;
        }
        StoreDatabase.Batch batch = given == null ? database().batch(false) : given;
        put(key, value, batch);
        batch.write();
    }

    private void put(byte[] key, byte[] value, StoreDatabase.Batch batch) {
        batch.put(stored(key), value);
        if (timeOrder != null) {
            batch.putTime(timeOrder.timeKey(key), value != null);
        }
    }

    /** A deletion that Kafka does not count as a change of the position. */
    final void removeEntry(byte[] key) {
        long time = time(key);
        streamTime = Math.max(streamTime, time);
        if (segments.has(segments.of(time))) {
            run(() -> putEntry(key, null, null));
        }
    }

    /** A batch that deletes the segments that have ended; null where there are none. */
    private StoreDatabase.Batch endedBatch(long now, boolean isRestored) {
        Long first = segments.firstEnded(now);
        if (first == null) {
            return null;
        }
        long live = segments.firstLive(now);
        StoreDatabase.Batch batch = database().batch(isRestored);
        batch.deleteRange(Segments.start(first), Segments.start(live));
        if (timeOrder != null) {
            batch.deleteTimes(
                    TimeOrder.start(first * segments.lengthMs()),
                    TimeOrder.start(live * segments.lengthMs()));
        }
        segments.removeEnded(now);
        return batch;
    }

    @Override
    void restoreAll(Collection<ConsumerRecord<byte[], byte[]>> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            streamTime = Math.max(streamTime, time(record.key()));
        }
        StoreDatabase.Batch ended = endedBatch(streamTime, true);
        StoreDatabase.Batch batch = ended == null ? database().batch(true) : ended;
        for (ConsumerRecord<byte[], byte[]> record : records) {
            long segment = segments.of(time(record.key()));
            if (segments.isLive(segment, streamTime)) {
                restored(record);
                segments.add(segment);
                put(record.key(), record.value(), batch);
            }
        }
        batch.write();
    }

    /** The value of a key of the changelog, where it has not ended. */
    final byte[] getEntry(byte[] key) {
        long time = time(key);
        if (time < firstShown() || !segments.has(segments.of(time))) {
            return null;
        }
        return calling(() -> database().get(stored(key)));
    }

    /** The earliest time of an entry that is shown. */
    long firstShown() {
        return streamTime - retentionMs + 1;
    }

    /**
     * Entries of the segments of a time, those of each in the order of their keys.
     *
     * @param first the first key within each segment; null for no bound
     * @param last the last key within each segment; null for no bound
     * @param isShown which keys are shown
     */
    final KeyValueIterator<Bytes, byte[]> entries(
            long from,
            long to,
            byte[] first,
            byte[] last,
            Predicate<byte[]> isShown,
            boolean isReverse) {
        long start = segments.of(from);
        long end = segments.of(to);
        if (start > end) {
            return Iterators.empty();
        }
        NavigableSet<Long> found = segments.between(start, end);
        Iterator<Long> order = isReverse ? found.descendingIterator() : found.iterator();
        return new OfSegments(order, first, last, isShown, isReverse);
    }

    /** Entries from one time to another, both included, in the order of their times. */
    final KeyValueIterator<Bytes, byte[]> entriesByTime(long from, long to, boolean isReverse) {
        long first = Math.max(0, from);
        if (to < first) {
            return Iterators.empty();
        }
        byte[] end = to == Long.MAX_VALUE ? null : TimeOrder.start(to + 1);
        KeyRange range = new KeyRange(TimeOrder.start(first), end);
        Entries times = calling(() -> database().times(range, isReverse));
        return timeOrder.entries(times, key -> calling(() -> database().get(stored(key))));
    }

    /** Goes from segment to segment. Each has an iterator of its own, which it opens when due. */
    private final class OfSegments implements KeyValueIterator<Bytes, byte[]> {
        private final Iterator<Long> order;
        private final byte[] first;
        private final byte[] last;
        private final Predicate<byte[]> isShown;
        private final boolean isReverse;
        private Entries current;
        private Bytes key;
        private boolean isClosed;

        OfSegments(
                Iterator<Long> order,
                byte[] first,
                byte[] last,
                Predicate<byte[]> isShown,
                boolean isReverse) {
            this.order = order;
            this.first = first;
            this.last = last;
            this.isShown = isShown;
            this.isReverse = isReverse;
        }

        @Override
        public boolean hasNext() {
            return !isClosed && calling(this::findNext);
        }

        private boolean findNext() {
            while (key == null) {
                if (current != null && current.hasNext()) {
                    byte[] bytes = current.peekNextKey().get();
                    byte[] found = Arrays.copyOfRange(bytes, Long.BYTES, bytes.length);
                    if (isShown.test(found)) {
                        key = Bytes.wrap(found);
                    } else {
                        current.skip();
                    }
                } else if (order.hasNext()) {
                    closeCurrent();
                    current = opened(order.next());
                } else {
                    return false;
                }
            }
            return true;
        }

        private Entries opened(long segment) {
            byte[] start = Segments.start(segment);
            byte[] from = first == null ? start : Segments.joined(start, first);
            KeyRange range = last == null
                    ? new KeyRange(from, Segments.start(segment + 1))
                    : KeyRange.inclusive(from, Segments.joined(start, last));
            return database().iterator(range, isReverse);
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            Bytes found = peekNextKey();
            key = null;
            return KeyValue.pair(found, calling(current::next).value);
        }

        @Override
        public Bytes peekNextKey() {
            if (!hasNext()) {
                throw new NoSuchElementException("there are no more entries");
            }
            return key;
        }

        @Override
        public void close() {
            isClosed = true;
            closeCurrent();
        }

        private void closeCurrent() {
            if (current != null) {
                current.close();
            }
        }
    }

    private byte[] stored(byte[] key) {
        return Segments.stored(segments.of(time(key)), key);
    }

    /**
     * The last stored key that a key up to {@code last} can have, where a stored key is a key and a
     * suffix up to {@code suffix}. A key that {@code last} begins with can come behind {@code last}
     * with its suffix. Keys have at least one byte.
     */
    static byte[] upperBound(byte[] last, byte[] suffix) {
        byte[] upper = Segments.joined(last, suffix);
        for (int bytes = 1; bytes < last.length; bytes++) {
            boolean canBeBehind = (suffix[0] & 0xFF) >= (last[bytes] & 0xFF);
            if (canBeBehind) {
                byte[] shorter = Segments.joined(Arrays.copyOf(last, bytes), suffix);
                if (Arrays.compareUnsigned(shorter, upper) > 0) {
                    upper = shorter;
                }
            }
        }
        return upper;
    }
}
