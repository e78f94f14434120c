package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Writes to a store until it is killed. Each write has a number, and each key has its newest. Kafka
 * commits stores of a running active task under at-least-once alone.
 */
final class KilledProgram {
    static final int KEYS = 500;
    static final int COMMIT_EVERY = 997;

    private KilledProgram() {}

    static byte[] key(long number) {
        return ByteBuffer.allocate(4).putInt((int) (number % KEYS)).array();
    }

    /** The number, and enough besides that memtables fill up between commits. */
    static byte[] value(long number) {
        return ByteBuffer.allocate(2000).putLong(number).array();
    }

    public static void main(String[] arguments) {
        boolean isRestored = arguments[1].equals("restored");
        boolean commits = isRestored || arguments[2].equals("at_least_once");
        Task task = new Task(
                Path.of(arguments[0]), "processing.guarantee", arguments[2],
                "shingle.commit.interval.ms", arguments[3], "shingle.held.bytes", arguments[4]);
        KeyValueStore<Bytes, byte[]> store =
                task.open(ShingleStoreSuppliers.keyValueStore("store").get());
        for (long number = 0; ; number++) {
            task.record("input", number);
            if (isRestored) {
                task.restore(List.of(Task.changelog(key(number), value(number), 0, null)));
            } else {
                store.put(Bytes.wrap(key(number)), value(number));
            }
            if (number % COMMIT_EVERY == 0) {
                if (commits || number == 0) {
                    task.commit(store, number);
                }
                System.out.println(number);
            }
        }
    }
}
