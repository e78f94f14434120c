package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.LongConsumer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Writes to a store until it is killed. Each write has a number, and each key has its newest. Kafka
 * commits stores of a running active task under at-least-once alone.
 */
final class KilledProgram {
    static final int KEYS = 500;
    static final int COMMIT_EVERY = 997;

    /** How long windows, sessions and versions are kept: longer than the program runs. */
    static final Duration AGE = Duration.ofHours(1);

    private KilledProgram() {}

    static byte[] key(long number) {
        return ByteBuffer.allocate(4).putInt((int) (number % KEYS)).array();
    }

    /** A session of the key, of one moment. */
    static Windowed<Bytes> session(long number) {
        return new Windowed<>(Bytes.wrap(key(number)), new SessionWindow(number, number));
    }

    /** The number, and enough besides that memtables fill up between commits. */
    static byte[] value(long number) {
        return ByteBuffer.allocate(2000).putLong(number).array();
    }

    public static void main(String[] arguments) {
        String kind = arguments[1];
        boolean commits = kind.equals("restored") || arguments[2].equals("at_least_once");
        Task task = new Task(
                Path.of(arguments[0]), "processing.guarantee", arguments[2],
                "shingle.commit.interval.ms", arguments[3], "shingle.held.bytes", arguments[4]);
        task.hasChangelog = !kind.equals("unlogged");
        boolean isRestored = kind.equals("restored");
        LongConsumer write;
        StateStore store;
        switch (kind) {
            case "windows" -> {
                WindowStore<Bytes, byte[]> windows = task.open(Backend.SHINGLE.windowAtClose(AGE));
                store = windows;
                write = number ->
                        windows.put(Bytes.wrap(key(number)), value(number), number);
            }
            case "sessions" -> {
                SessionStore<Bytes, byte[]> sessions =
                        task.open(Backend.SHINGLE.sessionAtClose(AGE));
                store = sessions;
                write = number -> sessions.put(session(number), value(number));
            }
            case "versions" -> {
                VersionedBytesStore versions = task.open(Backend.SHINGLE.versioned(AGE));
                store = versions;
                write = number ->
                        versions.put(Bytes.wrap(key(number)), value(number), number);
            }
            default -> {
                boolean hasHeaders = kind.equals("headers");
                Backend backend = hasHeaders ? Backend.SHINGLE_HEADERS : Backend.SHINGLE;
                KeyValueStore<Bytes, byte[]> values = task.open(backend.keyValue("store"));
                store = values;
                write = number -> {
                    if (isRestored) {
                        task.restore(
                                List.of(Task.changelog(key(number), value(number), 0, null)));
                    } else {
                        values.put(Bytes.wrap(key(number)), value(number));
                    }
                };
            }
        }
        write(task, store, commits, write);
    }

    private static void write(Task task, StateStore store, boolean commits, LongConsumer write) {
        for (long number = 0; ; number++) {
            task.record("input", number);
            write.accept(number);
            if (number % COMMIT_EVERY == 0) {
                if (!task.hasChangelog) {
                    task.commitWithoutOffsets(store);
                } else if (commits || number == 0) {
                    task.commit(store, number);
                }
                System.out.println(number);
            }
        }
    }
}
