package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * A window store. The key in the changelog, and so in the database, is the key, the start of the
 * window, and a number that tells duplicates apart.
 */
class WindowBytesStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private static final int SUFFIX_BYTES = Long.BYTES + Integer.BYTES;

    private final long sizeMs;
    private final boolean retainsDuplicates;

    /** A cache above needs the order of segments, which it has itself. */
    private boolean isCached;

    /** The number of the last duplicate. */
    private int number;

    WindowBytesStore(Suppliers.WindowShape shape) {
        super(
                shape.name(),
                Suppliers.WINDOW_SCOPE,
                shape.retentionMs(),
                shape.segmentMs(),
                shape.isAtClose() ? new TimeOrder(Long.BYTES, Integer.BYTES) : null);
        sizeMs = shape.sizeMs();
        retainsDuplicates = shape.retainsDuplicates();
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        isCached = KafkaInternals.isCachedWindowStore(root);
        super.init(context, root);
    }

    @Override
    Shape.Kind kind() {
        return Shape.Kind.WINDOW;
    }

    @Override
    long time(byte[] key) {
        return start(key);
    }

    /**
     * A window that is emitted when it closes is shown one moment longer: it closes when its
     * retention has just ended.
     */
    @Override
    long firstShown() {
        return hasTimes() ? super.firstShown() - 1 : super.firstShown();
    }

    @Override
    public void put(Bytes key, byte[] value, long windowStart) {
        if (retainsDuplicates) {
            if (value == null) {
                return; // It would have to say which duplicate.
            }
            number = (number + 1) & Integer.MAX_VALUE;
        }
        putEntry(stored(key.get(), windowStart, number), value);
    }

    @Override
    public byte[] fetch(Bytes key, long time) {
        return getEntry(stored(key.get(), time, number));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return times(key, from, to, false);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return times(key, from, to, true);
    }

    private WindowStoreIterator<byte[]> times(Bytes key, long from, long to, boolean isReverse) {
        long shown = Math.max(from, firstShown());
        KeyValueIterator<Bytes, byte[]> found = Iterators.empty();
        if (to >= shown) {
            byte[] first = stored(key.get(), Math.max(0, shown), 0);
            byte[] last = stored(key.get(), to, Integer.MAX_VALUE);
            Predicate<byte[]> isShown =
                    bytes -> bytes.length == first.length && isBetween(bytes, shown, to);
            found = entries(shown, to, first, last, isShown, isReverse);
        }
        return new Iterators.Timed<>(found, bytes -> start(bytes.get()));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(
            Bytes keyFrom, Bytes keyTo, long from, long to) {
        return windows(keyFrom, keyTo, from, to, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo, long from, long to) {
        return windows(keyFrom, keyTo, from, to, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long from, long to) {
        return windows(null, null, from, to, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long from, long to) {
        return windows(null, null, from, to, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return windows(null, null, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return windows(null, null, 0, Long.MAX_VALUE, true);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> windows(
            Bytes keyFrom, Bytes keyTo, long from, long to, boolean isReverse) {
        long shown = Math.max(from, firstShown());
        boolean isInverted = keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0;
        if (isInverted || to < shown) {
            return Iterators.empty();
        }
        if (keyFrom == null && keyTo == null && hasTimes() && !isCached) {
            KeyValueIterator<Bytes, byte[]> byTime = entriesByTime(shown, to, isReverse);
            return new Iterators.Keyed<>(byTime, bytes -> windowed(bytes.get()));
        }
        byte[] first = keyFrom == null ? null : keyFrom.get();
        byte[] last = keyTo == null ? null : upperBound(keyTo.get(), suffix(to));
        Predicate<byte[]> isShown =
                bytes -> isBetween(bytes, shown, to) && isBetween(bytes, keyFrom, keyTo);
        KeyValueIterator<Bytes, byte[]> found =
                entries(shown, to, first, last, isShown, isReverse);
        return new Iterators.Keyed<>(found, bytes -> windowed(bytes.get()));
    }

    private static boolean isBetween(byte[] stored, long from, long to) {
        long start = start(stored);
        return start >= from && start <= to;
    }

    private static boolean isBetween(byte[] stored, Bytes keyFrom, Bytes keyTo) {
        int bytes = stored.length - SUFFIX_BYTES;
        return (keyFrom == null || compared(stored, bytes, keyFrom.get()) >= 0)
                && (keyTo == null || compared(stored, bytes, keyTo.get()) <= 0);
    }

    private static int compared(byte[] stored, int bytes, byte[] key) {
        return Arrays.compareUnsigned(stored, 0, bytes, key, 0, key.length);
    }

    private Windowed<Bytes> windowed(byte[] stored) {
        long start = start(stored);
        long end = start + sizeMs;
        Bytes key = Bytes.wrap(Arrays.copyOf(stored, stored.length - SUFFIX_BYTES));
        return new Windowed<>(key, new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }

    private static long start(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX_BYTES);
    }

    private static byte[] stored(byte[] key, long start, int number) {
        return ByteBuffer.allocate(key.length + SUFFIX_BYTES)
                .put(key)
                .putLong(start)
                .putInt(number)
                .array();
    }

    private static byte[] suffix(long to) {
        return stored(new byte[0], to, Integer.MAX_VALUE);
    }

    /** Its values begin with their times. */
    static final class Timestamped extends WindowBytesStore implements TimestampedBytesStore {
        Timestamped(Suppliers.WindowShape shape) {
            super(shape);
        }
    }

    /** Its values begin with their headers and times. */
    static final class WithHeaders extends WindowBytesStore
            implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(Suppliers.WindowShape shape) {
            super(shape);
        }
    }
}
