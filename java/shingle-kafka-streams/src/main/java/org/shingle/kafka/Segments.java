package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.NavigableSet;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.shingle.Cursor;

/**
 * Time divided into segments of equal length, and which of them may have entries. What a database
 * stores of a segment begins with its number, eight bytes, so one range deletion ends it.
 */
final class Segments {
    /** The number of no segment: what begins with it does not end. */
    static final long NONE = Long.MIN_VALUE;

    private final long retentionMs;
    private final long lengthMs;
    private final NavigableSet<Long> numbers = new ConcurrentSkipListSet<>();

    Segments(long retentionMs, long lengthMs) {
        this.retentionMs = retentionMs;
        this.lengthMs = lengthMs;
    }

    long lengthMs() {
        return lengthMs;
    }

    /** The segment of a time. */
    long of(long time) {
        return time / lengthMs;
    }

    /** The first segment that is alive at a time. */
    long firstLive(long now) {
        return of(now - retentionMs);
    }

    boolean isLive(long segment, long now) {
        return segment >= firstLive(now);
    }

    void add(long segment) {
        numbers.add(segment);
    }

    boolean has(long segment) {
        return numbers.contains(segment);
    }

    /**
     * Segments with entries, from one to another, both included. A copy, so that an iterator does
     * not go on to segments that are made while it is used.
     */
    NavigableSet<Long> between(long first, long last) {
        return new TreeSet<>(numbers.subSet(first, true, last, true));
    }

    /** The first segment where it has ended; null where none has. */
    Long firstEnded(long now) {
        long live = firstLive(now);
        return numbers.isEmpty() || numbers.first() >= live ? null : numbers.first();
    }

    /** Forgets the segments that have ended. */
    void removeEnded(long now) {
        numbers.headSet(firstLive(now)).clear();
    }

    /** Finds the segments of a database, by one seek for each. */
    void find(StoreDatabase database) {
        numbers.clear();
        try (Cursor cursor = database.cursor()) {
            cursor.seek(start(NONE + 1));
            while (cursor.isValid()) {
                long segment = turned(ByteBuffer.wrap(cursor.key()).getLong());
                numbers.add(segment);
                if (segment == Long.MAX_VALUE) {
                    return;
                }
                cursor.seek(start(segment + 1));
            }
        }
    }

    /** What the keys of a segment begin with. Numbers below zero are before the others. */
    static byte[] start(long segment) {
        return ByteBuffer.allocate(Long.BYTES).putLong(turned(segment)).array();
    }

    private static long turned(long segment) {
        return segment ^ Long.MIN_VALUE;
    }

    /** The key of an entry of a segment. */
    static byte[] stored(long segment, byte[] key) {
        return joined(start(segment), key);
    }

    static byte[] joined(byte[] start, byte[] end) {
        byte[] joined = Arrays.copyOf(start, start.length + end.length);
        System.arraycopy(end, 0, joined, start.length, end.length);
        return joined;
    }
}
