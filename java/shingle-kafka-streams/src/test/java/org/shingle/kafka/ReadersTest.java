package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.bytes;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Threads of queries read while the thread of the task writes and commits. */
class ReadersTest {
    private static final int KEYS = 50;
    private static final int VERSIONS = 20_000;
    private static final int COMMIT_EVERY = 170;

    @TempDir Path folder;

    private static Bytes key(int number) {
        return bytes(String.format("key%02d", number));
    }

    private static long version(byte[] value) {
        return ByteBuffer.wrap(value).getLong();
    }

    /** Each key is there at all times, and its versions never go back. */
    private static long read(KeyValueStore<Bytes, byte[]> store, AtomicBoolean isOver) {
        long[] seen = new long[KEYS];
        long rounds = 0;
        while (!isOver.get()) {
            for (int number = 0; number < KEYS; number++) {
                seen[number] = later(seen[number], store.get(key(number)), number);
            }
            int number = 0;
            try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
                while (all.hasNext()) {
                    var entry = all.next();
                    assertEquals(key(number), entry.key);
                    seen[number] = later(seen[number], entry.value, number);
                    number++;
                }
            }
            assertEquals(KEYS, number);
            rounds++;
        }
        return rounds;
    }

    private static long later(long seen, byte[] value, int number) {
        assertTrue(value != null, "key " + number + " is missing");
        assertTrue(version(value) >= seen, "key " + number + " goes back from " + seen);
        return version(value);
    }

    @ParameterizedTest
    @EnumSource(names = {"SHINGLE", "SHINGLE_HELD", "SHINGLE_HELD_LITTLE"})
    void readersSeeEachKeyAtAllTimesAndNeverGoBack(Backend backend) throws Exception {
        Task task = backend.task(folder);
        KeyValueStore<Bytes, byte[]> store = task.open(backend.keyValue("store"));
        AtomicBoolean isOver = new AtomicBoolean();
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try {
            List<Future<Long>> readers = new ArrayList<>();
            for (long version = 0; version < VERSIONS; version++) {
                byte[] value = ByteBuffer.allocate(40).putLong(version).array();
                store.put(key((int) (version % KEYS)), value);
                if (version == KEYS) {
                    readers.add(threads.submit(() -> read(store, isOver)));
                    readers.add(threads.submit(() -> read(store, isOver)));
                }
                if (version % COMMIT_EVERY == 0) {
                    task.commit(store, version);
                }
            }
            isOver.set(true);
            for (Future<Long> reader : readers) {
                assertTrue(reader.get() > 0);
            }
        } finally {
            isOver.set(true);
            threads.shutdown();
            store.close();
        }
    }
}
