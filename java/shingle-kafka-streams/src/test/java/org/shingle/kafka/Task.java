package org.shingle.kafka;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.CommitCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;

/** What a task of Kafka Streams is to its stores: it opens, restores and commits them. */
final class Task {
    static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);

    final Properties properties = new Properties();
    private final MockProcessorContext<Void, Void> mock;
    private final StateStoreContext context;
    private RecordBatchingStateRestoreCallback restore;
    private CommitCallback onCommit = () -> {};

    /** Whether the stores are logged. */
    boolean hasChangelog = true;

    /** What the next registration of a store fails with. */
    RuntimeException refusal;

    Task(Path folder, Object... settings) {
        this(new TaskId(0, 3), folder, settings);
    }

    Task(TaskId id, Path folder, Object... settings) {
        folder.toFile().mkdirs();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        properties.put("shingle.memory.bytes", "16M");
        for (int at = 0; at < settings.length; at += 2) {
            properties.put(settings[at], settings[at + 1]);
        }
        mock = new MockProcessorContext<>(properties, id, folder.toFile());
        StateStoreContext inner = mock.getStateStoreContext();
        Class<?>[] kinds = {InternalProcessorContext.class, StateStoreContext.class};
        context = (StateStoreContext) Proxy.newProxyInstance(
                Task.class.getClassLoader(), kinds, (proxy, method, arguments) -> {
                    if (method.getName().equals("register")) {
                        if (refusal != null) {
                            throw refusal;
                        }
                        restore = (RecordBatchingStateRestoreCallback) arguments[1];
                        onCommit = arguments.length > 2 ? (CommitCallback) arguments[2] : () -> {};
                    }
                    if (method.getName().equals("changelogFor")) {
                        return hasChangelog ? CHANGELOG.topic() : null;
                    }
                    try {
                        return method.invoke(inner, arguments);
                    } catch (InvocationTargetException error) {
                        throw error.getCause();
                    }
                });
    }

    <T extends StateStore> T open(T store) {
        store.init(context, store);
        return store;
    }

    /** The next record that the task processes. */
    void record(String topic, long offset) {
        mock.setRecordMetadata(topic, 3, offset);
    }

    /** A commit of a store whose changelog does not have what it needs: it is built anew. */
    static void giveUp(StateStore store) {
        store.commit(java.util.Map.of());
    }

    /** A commit of a store without a changelog. */
    void commitWithoutOffsets(StateStore store) {
        store.commit(java.util.Map.of());
        committed();
    }

    void commit(StateStore store, Long offset) {
        java.util.Map<TopicPartition, Long> offsets = new java.util.HashMap<>();
        offsets.put(CHANGELOG, offset);
        store.commit(offsets);
        committed();
    }

    private void committed() {
        try {
            onCommit.onCommit();
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    java.util.Map<org.apache.kafka.common.MetricName, ? extends org.apache.kafka.common.Metric>
            metrics() {
        return context.metrics().metrics();
    }

    void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        restore.restoreBatch(records);
    }

    /** A record of the changelog, with the position of the store in its headers. */
    static ConsumerRecord<byte[], byte[]> changelog(
            byte[] key, byte[] value, long time, Position position) {
        RecordHeaders headers = new RecordHeaders();
        if (position != null) {
            headers.add("v", new byte[] {0});
            headers.add("c", KafkaInternals.bytesOf(position));
        }
        return new ConsumerRecord<>(
                "changelog", 3, 0, time, TimestampType.CREATE_TIME, 0, 0, key, value, headers,
                java.util.Optional.empty());
    }

    static Bytes bytes(String text) {
        return text == null ? null : Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    static byte[] value(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** What an iterator has, as text; it is closed. */
    static List<String> all(KeyValueIterator<?, byte[]> iterator) {
        List<String> found = new ArrayList<>();
        try (iterator) {
            while (iterator.hasNext()) {
                Object peeked = iterator.peekNextKey();
                KeyValue<?, byte[]> next = iterator.next();
                if (!peeked.equals(next.key)) {
                    throw new AssertionError(peeked + " is not " + next.key);
                }
                found.add(next.key + "=" + text(next.value));
            }
        }
        return found;
    }
}
