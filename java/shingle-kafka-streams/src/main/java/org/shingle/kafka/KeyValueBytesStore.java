package org.shingle.kafka;

import java.util.Collection;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A key-value store: each entry of the store is an entry of the database. */
class KeyValueBytesStore extends ShingleStore implements KeyValueStore<Bytes, byte[]> {
    KeyValueBytesStore(String name) {
        super(name, Suppliers.KEY_VALUE_SCOPE);
    }

    @Override
    final Shape shape() {
        return new Shape(Shape.Kind.KEY_VALUE, Suppliers.Format.ofStore(this), 0, false);
    }

    @Override
    public void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        write(() -> database().put(key.get(), value));
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] before = get(key);
        if (before == null && value != null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        write(() -> {
            StoreDatabase.Batch batch = database().batch(false);
            for (KeyValue<Bytes, byte[]> entry : entries) {
                Objects.requireNonNull(entry.key, "key cannot be null");
                batch.put(entry.key.get(), entry.value);
            }
            batch.write();
        });
    }

    @Override
    public byte[] delete(Bytes key) {
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        return calling(() -> database().get(key.get()));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, true);
    }

    /** Both bounds are in the range, and null is no bound. */
    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean isReverse) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            return Iterators.empty();
        }
        byte[] first = from == null ? null : from.get();
        return iterator(KeyRange.inclusive(first, to == null ? null : to.get()), isReverse);
    }

    @Override
    public <P extends Serializer<T>, T> KeyValueIterator<Bytes, byte[]> prefixScan(
            T prefix, P serializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        return iterator(KeyRange.prefix(serializer.serialize(null, prefix)), false);
    }

    private KeyValueIterator<Bytes, byte[]> iterator(KeyRange range, boolean isReverse) {
        return calling(() -> database().iterator(range, isReverse));
    }

    @Override
    public long approximateNumEntries() {
        return calling(() -> database().approximateEntries());
    }

    @Override
    void restoreAll(Collection<ConsumerRecord<byte[], byte[]>> records) {
        StoreDatabase.Batch batch = database().batch(true);
        for (ConsumerRecord<byte[], byte[]> record : records) {
            restored(record);
            batch.put(record.key(), record.value());
        }
        batch.write();
    }

    /** Its values begin with their times. */
    static final class Timestamped extends KeyValueBytesStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name);
        }
    }

    /** Its values begin with their headers and times. */
    static final class WithHeaders extends KeyValueBytesStore
            implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name) {
            super(name);
        }
    }
}
