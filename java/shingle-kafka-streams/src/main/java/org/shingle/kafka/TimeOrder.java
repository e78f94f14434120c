package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.NoSuchElementException;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * Turns keys of a changelog so that they are in the order of their times: the times of a key move
 * to its beginning.
 *
 * @param bytes how many bytes are moved
 * @param bytesBehind how many bytes of the key are behind those
 */
record TimeOrder(int bytes, int bytesBehind) {
    /** What the turned keys of a time begin with. Times are not below zero. */
    static byte[] start(long time) {
        return ByteBuffer.allocate(Long.BYTES).putLong(time).array();
    }

    /** The turned key of a key. */
    byte[] timeKey(byte[] key) {
        int before = key.length - bytes - bytesBehind;
        return ByteBuffer.allocate(key.length)
                .put(key, before, bytes)
                .put(key, 0, before)
                .put(key, before + bytes, bytesBehind)
                .array();
    }

    /** The key of a turned key. */
    byte[] key(byte[] timeKey) {
        int before = timeKey.length - bytes - bytesBehind;
        return ByteBuffer.allocate(timeKey.length)
                .put(timeKey, bytes, before)
                .put(timeKey, 0, bytes)
                .put(timeKey, bytes + before, bytesBehind)
                .array();
    }

    /** Entries in the order of their turned keys, with their values where there still is one. */
    KeyValueIterator<Bytes, byte[]> entries(Entries times, UnaryOperator<byte[]> value) {
        return new ByTime(times, value);
    }

    private final class ByTime implements KeyValueIterator<Bytes, byte[]> {
        private final Entries times;
        private final UnaryOperator<byte[]> value;
        private KeyValue<Bytes, byte[]> next;
        private boolean isClosed;

        ByTime(Entries times, UnaryOperator<byte[]> value) {
            this.times = times;
            this.value = value;
        }

        @Override
        public boolean hasNext() {
            if (isClosed) {
                return false;
            }
            while (next == null && times.hasNext()) {
                byte[] key = key(times.next().key.get());
                byte[] found = value.apply(key);
                next = found == null ? null : KeyValue.pair(Bytes.wrap(key), found);
            }
            return next != null;
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            peekNextKey();
            KeyValue<Bytes, byte[]> found = next;
            next = null;
            return found;
        }

        @Override
        public Bytes peekNextKey() {
            if (!hasNext()) {
                throw new NoSuchElementException("there are no more entries");
            }
            return next.key;
        }

        @Override
        public void close() {
            isClosed = true;
            times.close();
        }
    }
}
