package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/**
 * A store that keeps earlier values of a key for a time.
 *
 * <p>The latest value of a key is under no segment and does not end. An earlier version is in the
 * segment of the time at which another one took its place, so it ends with that segment. Its key is
 * the key and the time from which it was valid; it has the time up to which it was.
 *
 * <p>Invariants: the versions of a key do not overlap. A deletion is a version without a value. If
 * nothing came after it, it is valid up to its own time: it is there because an earlier record that
 * comes late is valid up to it.
 */
final class VersionedStore extends ShingleStore implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final long NO_TIME = -1;

    private final long retentionMs;
    private final Segments segments;
    private volatile long streamTime = NO_TIME;
    private Sensor droppedRecords;

    VersionedStore(String name, long retentionMs, long segmentMs) {
        super(name, Suppliers.KEY_VALUE_SCOPE);
        this.retentionMs = retentionMs;
        this.segments = new Segments(retentionMs, segmentMs);
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        droppedRecords = KafkaInternals.droppedRecords(context);
        streamTime = NO_TIME;
        super.init(context, root);
    }

    @Override
    Shape shape() {
        return new Shape(
                Shape.Kind.VERSIONED, Suppliers.Format.ofStore(this), segments.lengthMs(), false);
    }

    @Override
    void opened(StoreDatabase database) {
        segments.find(database);
    }

    /** A version; without a value it says that there is none. */
    private record Version(long from, long to, byte[] value) {
        boolean isValidAt(long time) {
            return from <= time && time < to;
        }

        byte[] bytes() {
            int valueBytes = value == null ? 0 : 1 + value.length;
            ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES + valueBytes);
            bytes.putLong(to);
            if (value != null) {
                bytes.put((byte) 1).put(value);
            }
            return bytes.array();
        }

        static Version of(long from, byte[] stored) {
            ByteBuffer bytes = ByteBuffer.wrap(stored);
            long to = bytes.getLong();
            byte[] value = null;
            if (bytes.hasRemaining()) {
                bytes.get();
                value = new byte[bytes.remaining()];
                bytes.get(value);
            }
            return new Version(from, to, value);
        }

        VersionedRecord<byte[]> record() {
            return to == Long.MAX_VALUE
                    ? new VersionedRecord<>(value, from)
                    : new VersionedRecord<>(value, from, to);
        }
    }

    @Override
    public long put(Bytes key, byte[] value, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        long[] validTo = {PUT_RETURN_CODE_NOT_PUT};
        write(() -> {
            if (isTooLate(timestamp)) {
                droppedRecords.record();
                return;
            }
            StoreDatabase.Batch batch = database().batch(false);
            validTo[0] = put(key.get(), value, timestamp, batch);
            batch.write();
        });
        return validTo[0];
    }

    private boolean isTooLate(long time) {
        return time < streamTime - retentionMs;
    }

    /**
     * Puts a version, and gives the time up to which it is valid. The batch has no other version of
     * the key yet, because the versions that are there are read from the store.
     */
    private long put(byte[] key, byte[] value, long time, StoreDatabase.Batch batch) {
        streamTime = Math.max(streamTime, time);
        removeEnded(batch);
        Version latest = latest(key);
        long validTo = latest == null || time < latest.from
                ? putEarlier(key, new Version(time, Long.MAX_VALUE, value), latest, batch)
                : putLatest(key, new Version(time, Long.MAX_VALUE, value), latest, batch);
        return validTo == Long.MAX_VALUE ? PUT_RETURN_CODE_VALID_TO_UNDEFINED : validTo;
    }

    /** Puts a version that is not before the latest one. */
    private long putLatest(byte[] key, Version version, Version before, StoreDatabase.Batch batch) {
        if (before.from < version.from) {
            putHistory(key, new Version(before.from, version.from, before.value), batch);
        }
        putEnd(key, version, batch);
        return version.to;
    }

    /** Puts a version behind all others. */
    private void putEnd(byte[] key, Version version, StoreDatabase.Batch batch) {
        byte[] value = version.value;
        byte[] stored = value == null
                ? null
                : ByteBuffer.allocate(Long.BYTES + value.length)
                        .putLong(version.from)
                        .put(value)
                        .array();
        batch.put(Segments.stored(Segments.NONE, key), stored);
        if (value == null) {
            putHistory(key, new Version(version.from, version.from, null), batch);
        }
    }

    /** Puts a version before the latest one, or where there is no latest one. */
    private long putEarlier(
            byte[] key, Version version, Version latest, StoreDatabase.Batch batch) {
        long time = version.from;
        long validTo = latest == null ? Long.MAX_VALUE : latest.from;
        for (Version other : history(key, time, Long.MAX_VALUE)) {
            if (other.from > time) {
                validTo = Math.min(validTo, other.from);
            } else if (other.to > time) {
                // It was valid at this time: it ends here, or this takes its place.
                validTo = other.to;
                removeHistory(key, other, batch);
                if (other.from < time) {
                    putHistory(key, new Version(other.from, time, other.value), batch);
                }
                break;
            } else if (other.from == time) {
                removeHistory(key, other, batch); // a deletion at this very time
            }
        }
        if (validTo == Long.MAX_VALUE) {
            putEnd(key, version, batch);
        } else {
            putHistory(key, new Version(time, validTo, version.value), batch);
        }
        return validTo;
    }

    private void putHistory(byte[] key, Version version, StoreDatabase.Batch batch) {
        long segment = segments.of(version.to);
        if (segments.isLive(segment, streamTime)) {
            segments.add(segment);
            batch.put(stored(key, version), version.bytes());
        }
    }

    private void removeHistory(byte[] key, Version version, StoreDatabase.Batch batch) {
        batch.put(stored(key, version), null);
    }

    private byte[] stored(byte[] key, Version version) {
        return stored(segments.of(version.to), key, version.from);
    }

    private static byte[] stored(long segment, byte[] key, long from) {
        return Segments.stored(segment, Segments.joined(key, TimeOrder.start(from)));
    }

    private void removeEnded(StoreDatabase.Batch batch) {
        Long first = segments.firstEnded(streamTime);
        if (first != null) {
            batch.deleteRange(
                    Segments.start(first), Segments.start(segments.firstLive(streamTime)));
            segments.removeEnded(streamTime);
        }
    }

    private Version latest(byte[] key) {
        byte[] stored = database().get(Segments.stored(Segments.NONE, key));
        if (stored == null) {
            return null;
        }
        ByteBuffer bytes = ByteBuffer.wrap(stored);
        long from = bytes.getLong();
        byte[] value = new byte[bytes.remaining()];
        bytes.get(value);
        return new Version(from, Long.MAX_VALUE, value);
    }

    /** Earlier versions that were valid in a time, and deletions in it, by their ends. */
    private List<Version> history(byte[] key, long from, long to) {
        List<Version> found = new ArrayList<>();
        for (long segment : segments.between(segments.of(from), Long.MAX_VALUE)) {
            KeyRange range =
                    KeyRange.inclusive(stored(segment, key, 0), stored(segment, key, to));
            int bytes = Long.BYTES + key.length + Long.BYTES;
            try (Entries entries = database().iterator(range, false)) {
                while (entries.hasNext()) {
                    byte[] stored = entries.peekNextKey().get();
                    if (stored.length == bytes) {
                        long validFrom = ByteBuffer.wrap(stored).getLong(bytes - Long.BYTES);
                        Version version = Version.of(validFrom, entries.next().value);
                        if (version.to >= from) {
                            found.add(version);
                        }
                    } else {
                        entries.skip();
                    }
                }
            }
        }
        return found;
    }

    @Override
    public VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        if (isTooLate(timestamp)) {
            droppedRecords.record();
            return null;
        }
        VersionedRecord<byte[]> before = get(key, timestamp);
        put(key, null, timestamp);
        return before;
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        Version latest = calling(() -> latest(key.get()));
        return latest == null ? null : latest.record();
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOf) {
        Objects.requireNonNull(key, "key cannot be null");
        return calling(() -> {
            Version latest = latest(key.get());
            if (latest != null && latest.from <= asOf) {
                return latest.record();
            }
            if (isTooLate(asOf)) {
                return null;
            }
            return history(key.get(), asOf, asOf).stream()
                    .filter(version -> version.isValidAt(asOf) && version.value != null)
                    .map(Version::record)
                    .findFirst()
                    .orElse(null);
        });
    }

    @Override
    @SuppressWarnings("unchecked") // the type of the result is that of the query
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        if (!(query instanceof MultiVersionedKeyQuery)) {
            return super.query(query, bound, config);
        }
        MultiVersionedKeyQuery<Bytes, byte[]> versions =
                (MultiVersionedKeyQuery<Bytes, byte[]>) query;
        return KafkaInternals.answered(
                this, query, bound, config, getPosition(), context(),
                () -> (R) new Versions(versions(versions)));
    }

    private List<VersionedRecord<byte[]>> versions(MultiVersionedKeyQuery<Bytes, byte[]> query) {
        byte[] key = query.key().get();
        long from = query.fromTime().orElseThrow().toEpochMilli();
        long to = query.toTime().orElseThrow().toEpochMilli();
        boolean isAscending = query.resultOrder() == ResultOrder.ASCENDING;
        List<Version> versions = new ArrayList<>();
        if (to >= Math.max(0, streamTime - retentionMs)) {
            versions.addAll(calling(() -> history(key, Math.max(0, from), to)));
        }
        Version latest = calling(() -> latest(key));
        if (latest != null && latest.from <= to) {
            versions.add(latest);
        }
        versions.removeIf(version ->
                version.value == null || version.to <= from || version.from > to);
        Comparator<Version> order = Comparator.comparingLong(Version::from);
        versions.sort(isAscending ? order : order.reversed());
        return versions.stream().map(Version::record).toList();
    }

    /** Versions that were found. */
    private static final class Versions implements VersionedRecordIterator<byte[]> {
        private Iterator<VersionedRecord<byte[]>> rest;
        private boolean isClosed;

        Versions(List<VersionedRecord<byte[]>> found) {
            rest = found.iterator();
        }

        @Override
        public boolean hasNext() {
            if (isClosed) {
                throw new IllegalStateException("the iterator was closed");
            }
            return rest.hasNext();
        }

        @Override
        public VersionedRecord<byte[]> next() {
            hasNext();
            return rest.next();
        }

        @Override
        public void close() {
            isClosed = true;
            rest = Collections.emptyIterator();
        }
    }

    @Override
    void restoreAll(Collection<ConsumerRecord<byte[], byte[]>> records) {
        StoreDatabase.Batch batch = database().batch(true);
        Set<Bytes> keys = new HashSet<>(); // those of the batch
        for (ConsumerRecord<byte[], byte[]> record : records) {
            Bytes key = Bytes.wrap(record.key());
            if (keys.contains(key)) {
                batch.write();
                batch = database().batch(true);
                keys.clear();
            }
            if (!isTooLate(record.timestamp())) {
                keys.add(key);
                put(record.key(), record.value(), record.timestamp(), batch);
            }
            restored(record);
        }
        batch.write();
    }
}
