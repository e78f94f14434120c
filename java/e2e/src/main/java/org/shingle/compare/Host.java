package org.shingle.compare;

import java.io.File;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.CommitCallback;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.StateRestoreCallbackAdapter;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/** What a task gives its store, without a task: a directory, properties, and the current record. */
final class Host implements StateStoreContext {
    private static final String TOPIC = "input";

    private final Map<String, Object> properties;
    private final File directory;
    private final StreamsMetricsImpl metrics =
            new StreamsMetricsImpl(new Metrics(), "compare", Time.SYSTEM);
    private final RecordMetadata record = new Record();
    private StateRestoreCallback restore;
    private CommitCallback commit = () -> {};
    private long offset;

    Host(Map<String, Object> properties, File directory) {
        this.properties = new HashMap<>(properties);
        this.directory = directory;
    }

    /** The next record of the input, which the next puts belong to. */
    void nextRecord() {
        offset++;
    }

    RecordBatchingStateRestoreCallback restore() {
        return StateRestoreCallbackAdapter.adapt(restore);
    }

    /** Tells the store that its commit is done. */
    void committed() throws IOException {
        commit.onCommit();
    }

    @Override
    public String applicationId() {
        return "compare";
    }

    @Override
    public TaskId taskId() {
        return new TaskId(0, 0);
    }

    @Override
    public Optional<RecordMetadata> recordMetadata() {
        return Optional.of(record);
    }

    @Override
    public Serde<?> keySerde() {
        return Serdes.ByteArray();
    }

    @Override
    public Serde<?> valueSerde() {
        return Serdes.ByteArray();
    }

    @Override
    public File stateDir() {
        return directory;
    }

    @Override
    public StreamsMetricsImpl metrics() {
        return metrics;
    }

    @Override
    public void register(StateStore store, StateRestoreCallback callback) {
        restore = callback;
    }

    @Override
    public void register(StateStore store, StateRestoreCallback callback, CommitCallback then) {
        restore = callback;
        commit = then;
    }

    @Override
    public Map<String, Object> appConfigs() {
        return properties;
    }

    @Override
    public Map<String, Object> appConfigsWithPrefix(String prefix) {
        Map<String, Object> some = new HashMap<>();
        properties.forEach((name, value) -> {
            if (name.startsWith(prefix)) {
                some.put(name.substring(prefix.length()), value);
            }
        });
        return some;
    }

    private final class Record implements RecordMetadata {
        @Override
        public String topic() {
            return TOPIC;
        }

        @Override
        public int partition() {
            return 0;
        }

        @Override
        public long offset() {
            return offset;
        }
    }
}
