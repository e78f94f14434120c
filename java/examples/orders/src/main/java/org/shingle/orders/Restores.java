package org.shingle.orders;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;

/**
 * What an instance takes from changelogs: for each store, the offset where it began, and the end of
 * the changelog at that time. The first one is what the instance still had on its disk.
 */
final class Restores implements StateRestoreListener, StandbyUpdateListener {
    private final Map<TopicPartition, Span> first = new ConcurrentHashMap<>();
    private final Map<TopicPartition, Long> standbyStarts = new ConcurrentHashMap<>();

    /**
     * From an offset to the end of a changelog.
     *
     * @param store the name of the store
     * @param from the offset where the store began to read
     * @param to the end of the changelog at that time
     */
    record Span(String store, long from, long to) {}

    static Restores of(KafkaStreams streams) {
        Restores restores = new Restores();
        streams.setGlobalStateRestoreListener(restores);
        streams.setStandbyUpdateListener(restores);
        return restores;
    }

    /** The first span of each changelog since the start of the instance. */
    Map<String, Span> first() {
        Map<String, Span> spans = new TreeMap<>();
        first.forEach((changelog, span) -> spans.put(changelog.toString(), span));
        return spans;
    }

    @Override
    public void onRestoreStart(TopicPartition changelog, String store, long from, long to) {
        first.putIfAbsent(changelog, new Span(store, from, to));
    }

    @Override
    public void onBatchRestored(TopicPartition changelog, String store, long end, long count) {}

    @Override
    public void onRestoreEnd(TopicPartition changelog, String store, long count) {}

    @Override
    public void onUpdateStart(TopicPartition changelog, String store, long from) {
        standbyStarts.putIfAbsent(changelog, Math.max(0, from));
    }

    @Override
    public void onBatchLoaded(TopicPartition changelog, String store, TaskId task,
            long batchEnd, long count, long end) {
        Long from = standbyStarts.get(changelog);
        if (from != null) {
            first.putIfAbsent(changelog, new Span(store, from, Math.max(end, batchEnd)));
        }
    }

    @Override
    public void onUpdateSuspended(TopicPartition changelog, String store, long offset, long end,
            SuspendReason reason) {}
}
