package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.CachingWindowStore;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/**
 * All that the stores use of Kafka's internal classes. Kafka may change these in any release, so a
 * change of its version begins here.
 */
final class KafkaInternals {
    private KafkaInternals() {}

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

    /** Counts records that come after their retention. */
    static Sensor droppedRecords(StateStoreContext context) {
        return TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(),
                context.taskId().toString(),
                ProcessorContextUtils.metricsImpl(context));
    }
}
