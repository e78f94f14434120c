package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.function.Consumer;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.internals.CachingWindowStore;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/**
 * All that the stores use of Kafka's internal classes. Kafka may change these in any release, so a
 * change of its version begins here.
 */
final class KafkaInternals {
    /** In place of an offset: it is not known, and the changelog is read from its beginning. */
    static final long OFFSET_UNKNOWN = OffsetCheckpoint.OFFSET_UNKNOWN;

    private KafkaInternals() {}

    /** Whether there is a changelog from which a store can be built anew. */
    static boolean hasChangelog(StateStoreContext context, String store) {
        return !(context instanceof InternalProcessorContext<?, ?> internal)
                || internal.changelogFor(store) != null;
    }

    /** A callback that gets records of the changelog with their headers and times. */
    static StateRestoreCallback restoring(
            Consumer<Collection<ConsumerRecord<byte[], byte[]>>> restore) {
        return (RecordBatchingStateRestoreCallback) restore::accept;
    }

    /** Moves a position forward to that in the headers of a record of the changelog. */
    static void advance(
            Position position, ConsumerRecord<byte[], byte[]> record, boolean hasPositions) {
        ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(
                record, hasPositions, position);
    }

    /** Moves a position forward to the record that is being processed. */
    static void advance(Position position, StateStoreContext context) {
        StoreQueryUtils.updatePosition(position, context);
    }

    static byte[] bytesOf(Position position) {
        return PositionSerde.serialize(position).array();
    }

    static Position positionOf(byte[] bytes) {
        return PositionSerde.deserialize(ByteBuffer.wrap(bytes));
    }

    /** Answers the queries that every store of its kind answers. */
    static <R> QueryResult<R> query(
            StateStore store,
            Query<R> query,
            PositionBound bound,
            QueryConfig config,
            Position position,
            StateStoreContext context) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, store, position, context);
    }

    /** Answers a query as {@link #query} does, where Kafka knows no handler for it. */
    static <R> QueryResult<R> answered(
            StateStore store,
            Query<R> query,
            PositionBound bound,
            QueryConfig config,
            Position position,
            StateStoreContext context,
            Supplier<R> answer) {
        long begin = System.nanoTime();
        QueryResult<R> result;
        synchronized (position) {
            int partition = context.taskId().partition();
            if (!StoreQueryUtils.isPermitted(position, bound, partition)) {
                result = QueryResult.notUpToBound(position, bound, partition);
            } else {
                try {
                    result = QueryResult.forResult(answer.get());
                } catch (RuntimeException error) {
                    result = QueryResult.forFailure(
                            FailureReason.STORE_EXCEPTION, store.name() + ": " + error);
                }
            }
            result.setPosition(position.copy());
        }
        if (config.isCollectExecutionInfo()) {
            long nanos = System.nanoTime() - begin;
            result.addExecutionInfo("Handled in " + store.getClass() + " in " + nanos + "ns");
        }
        return result;
    }

    /** A versioned store as the suppliers of Kafka give it. */
    static KeyValueStore<Bytes, byte[]> adapted(VersionedKeyValueStore<Bytes, byte[]> store) {
        return new VersionedKeyValueToBytesStoreAdapter(store);
    }

    /** Whether a cache of a window store is above the innermost store of these. */
    static boolean isCachedWindowStore(StateStore root) {
        StateStore store = root;
        while (store instanceof WrappedStateStore<?, ?, ?> wrapped) {
            if (store instanceof CachingWindowStore) {
                return true;
            }
            store = wrapped.wrapped();
        }
        return false;
    }

    /**
     * Adds a metric of a store, which is asked for its value when somebody reads it.
     *
     * @param scope what the tag of the store's name begins with
     * @return removes it
     */
    static Runnable addMetric(
            StateStoreContext context,
            String scope,
            String store,
            String name,
            String description,
            DoubleSupplier value) {
        StreamsMetricsImpl metrics = ProcessorContextUtils.metricsImpl(context);
        MetricName added = metrics.addStoreLevelMutableMetric(
                context.taskId().toString(),
                scope,
                store,
                name,
                description,
                Sensor.RecordingLevel.INFO,
                (config, now) -> value.getAsDouble());
        return () -> metrics.removeMetric(added);
    }

    /** Counts records that come after their retention. */
    static Sensor droppedRecords(StateStoreContext context) {
        return TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(),
                context.taskId().toString(),
                ProcessorContextUtils.metricsImpl(context));
    }
}
