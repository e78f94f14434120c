package org.shingle.kafka;

import java.util.NoSuchElementException;
import java.util.function.Function;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** Iterators made of others. */
final class Iterators {
    private Iterators() {}

    /** No entries. */
    static <K, V> KeyValueIterator<K, V> empty() {
        return new KeyValueIterator<>() {
            @Override
            public boolean hasNext() {
                return false;
            }

            @Override
            public KeyValue<K, V> next() {
                throw new NoSuchElementException("there are no entries");
            }

            @Override
            public K peekNextKey() {
                throw new NoSuchElementException("there are no entries");
            }

            @Override
            public void close() {}
        };
    }

    /** The entries of an iterator, each with a key that is made of its own. */
    static class Keyed<K, L, V> implements KeyValueIterator<L, V> {
        private final KeyValueIterator<K, V> inner;
        private final Function<K, L> key;

        Keyed(KeyValueIterator<K, V> inner, Function<K, L> key) {
            this.inner = inner;
            this.key = key;
        }

        @Override
        public boolean hasNext() {
            return inner.hasNext();
        }

        @Override
        public KeyValue<L, V> next() {
            KeyValue<K, V> next = inner.next();
            return KeyValue.pair(key.apply(next.key), next.value);
        }

        @Override
        public L peekNextKey() {
            return key.apply(inner.peekNextKey());
        }

        @Override
        public void close() {
            inner.close();
        }
    }

    /** The same for the windows of one key, which are known by their times. */
    static final class Timed<K, V> extends Keyed<K, Long, V> implements WindowStoreIterator<V> {
        Timed(KeyValueIterator<K, V> inner, Function<K, Long> time) {
            super(inner, time);
        }
    }
}
