package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

/**
 * A session store. The key in the changelog, and so in the database, is the key, the end of the
 * session and its start. Sessions belong to the segments of their ends.
 */
class SessionBytesStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    private static final int SUFFIX_BYTES = 2 * Long.BYTES;

    SessionBytesStore(String name, long retentionMs, long segmentMs, boolean isAtClose) {
        super(
                name,
                Suppliers.SESSION_SCOPE,
                retentionMs,
                segmentMs,
                isAtClose ? new TimeOrder(SUFFIX_BYTES, 0) : null);
    }

    @Override
    Shape.Kind kind() {
        return Shape.Kind.SESSION;
    }

    @Override
    long time(byte[] key) {
        return end(key);
    }

    @Override
    public void put(Windowed<Bytes> session, byte[] aggregate) {
        putEntry(stored(session), aggregate);
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        removeEntry(stored(session));
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        return getEntry(stored(key.get(), start, end));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return ofKeys(keyFrom, keyTo, earliestEnd, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return ofKeys(keyFrom, keyTo, earliestEnd, latestStart, true);
    }

    /**
     * Sessions of all keys by their ends, in the order of these, for operators that emit at close.
     * A session closes when its retention ends, so what has ended is shown too.
     */
    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            long earliestEnd, long latestEnd) {
        if (!hasTimes()) {
            return SessionStore.super.findSessions(earliestEnd, latestEnd);
        }
        if (latestEnd < earliestEnd) {
            return Iterators.empty();
        }
        KeyValueIterator<Bytes, byte[]> found = entriesByTime(earliestEnd, latestEnd, false);
        return new Iterators.Keyed<>(found, bytes -> windowed(bytes.get()));
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKey(
            Bytes key, long earliestEnd, long latestStart, boolean isReverse) {
        long shown = Math.max(earliestEnd, firstShown());
        byte[] first = stored(key.get(), 0, Math.max(0, shown));
        byte[] last = stored(key.get(), latestStart, Long.MAX_VALUE);
        Predicate<byte[]> isShown =
                bytes -> bytes.length == first.length && overlaps(bytes, shown, latestStart);
        return sessions(shown, first, last, isShown, isReverse);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKeys(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart, boolean isReverse) {
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            return Iterators.empty();
        }
        long shown = Math.max(earliestEnd, firstShown());
        byte[] first = keyFrom == null ? null : keyFrom.get();
        byte[] suffix = stored(new byte[0], latestStart, Long.MAX_VALUE);
        byte[] last = keyTo == null ? null : upperBound(keyTo.get(), suffix);
        Predicate<byte[]> isShown = bytes -> overlaps(bytes, shown, latestStart)
                && isBetween(bytes, keyFrom, keyTo);
        return sessions(shown, first, last, isShown, isReverse);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> sessions(
            long shown, byte[] first, byte[] last, Predicate<byte[]> isShown, boolean isReverse) {
        KeyValueIterator<Bytes, byte[]> found =
                entries(shown, Long.MAX_VALUE, first, last, isShown, isReverse);
        return new Iterators.Keyed<>(found, bytes -> windowed(bytes.get()));
    }

    private static boolean overlaps(byte[] stored, long earliestEnd, long latestStart) {
        return end(stored) >= earliestEnd && start(stored) <= latestStart;
    }

    private static boolean isBetween(byte[] stored, Bytes keyFrom, Bytes keyTo) {
        int bytes = stored.length - SUFFIX_BYTES;
        return (keyFrom == null || compared(stored, bytes, keyFrom.get()) >= 0)
                && (keyTo == null || compared(stored, bytes, keyTo.get()) <= 0);
    }

    private static int compared(byte[] stored, int bytes, byte[] key) {
        return Arrays.compareUnsigned(stored, 0, bytes, key, 0, key.length);
    }

    private static Windowed<Bytes> windowed(byte[] stored) {
        Bytes key = Bytes.wrap(Arrays.copyOf(stored, stored.length - SUFFIX_BYTES));
        return new Windowed<>(key, new SessionWindow(start(stored), end(stored)));
    }

    private static long end(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX_BYTES);
    }

    private static long start(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - Long.BYTES);
    }

    private static byte[] stored(Windowed<Bytes> session) {
        return stored(session.key().get(), session.window().start(), session.window().end());
    }

    private static byte[] stored(byte[] key, long start, long end) {
        return ByteBuffer.allocate(key.length + SUFFIX_BYTES)
                .put(key)
                .putLong(end)
                .putLong(start)
                .array();
    }

    /** Its values begin with their headers. */
    static final class WithHeaders extends SessionBytesStore implements HeadersBytesStore {
        WithHeaders(String name, long retentionMs, long segmentMs, boolean isAtClose) {
            super(name, retentionMs, segmentMs, isAtClose);
        }
    }
}
