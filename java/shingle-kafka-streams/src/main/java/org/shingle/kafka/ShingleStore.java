package org.shingle.kafka;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.shingle.ErrorKind;
import org.shingle.ShingleException;

/**
 * What all stores have in common: their database, their life, offsets, position and queries.
 *
 * <p>The thread of the task writes. Threads of interactive queries read at the same time, also
 * while the store closes. Whoever holds the lock on the position sees it beside the entries that it
 * belongs to.
 */
abstract class ShingleStore implements StateStore {
    /** The directory in that of the task with the databases of its stores. */
    private static final String DIRECTORY = "shingle";

    private final String name;

    /** What the tag of the store's name begins with, in metrics. */
    private final String scope;

    private StateStoreContext context;
    private StoreMetrics metrics;
    private volatile Position position = Position.emptyPosition();
    private volatile StoreDatabase database;
    private boolean hasPositionsInChangelog;

    ShingleStore(String name, String scope) {
        this.name = name;
        this.scope = scope;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final boolean persistent() {
        return true;
    }

    @Override
    public final boolean isOpen() {
        return database != null;
    }

    @Override
    public void init(StateStoreContext storeContext, StateStore root) {
        context = storeContext;
        ShingleConfig config = new ShingleConfig(storeContext.appConfigs());
        hasPositionsInChangelog = config.hasPositionsInChangelog();
        database = opened(config);
        position = database.position();
        opened(database);
        metrics = StoreMetrics.add(storeContext, scope, name, database.shingle());
        storeContext.register(root, KafkaInternals.restoring(this::restore));
    }

    /** Whether the database has the keys of entries by their time too. */
    boolean hasTimes() {
        return false;
    }

    /** Called between the opening of the database and the first use of the store. */
    void opened(StoreDatabase opened) {}

    private StoreDatabase opened(ShingleConfig config) {
        Path tasks = context.stateDir().toPath().toAbsolutePath();
        Path path = tasks.resolve(DIRECTORY).resolve(name);
        StoreDatabase opened = calling(() -> {
            try {
                Files.createDirectories(path);
            } catch (IOException error) {
                throw new ProcessorStateException(
                        "store " + name + ": the directory " + path + " cannot be made", error);
            }
            return StoreDatabase.open(name, path, tasks.getParent(), config, hasTimes());
        });
        if (opened.hasUncommitted() && config.isExactlyOnce() && !isGlobal()) {
            opened.close();
            throw corrupted(new ProcessorStateException(
                    "store " + name + " in " + path + " has writes that were not committed when "
                            + "its process ended: under exactly-once it is built anew from its "
                            + "changelog"));
        }
        return opened;
    }

    /** A global store is filled from a topic, which has committed records alone. */
    private boolean isGlobal() {
        TaskId task = context.taskId();
        return task == null || task.partition() < 0;
    }

    private TaskCorruptedException corrupted(ProcessorStateException cause) {
        return new TaskCorruptedException(Set.of(context.taskId()), cause);
    }

    /** Applies records of the changelog, in their order. */
    private void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        synchronized (position) {
            run(() -> restoreAll(records));
        }
    }

    /** Applies records of the changelog, in their order, and tells {@link #restored} of each. */
    abstract void restoreAll(Collection<ConsumerRecord<byte[], byte[]>> records);

    /** Moves the position to that of a record of the changelog. */
    final void restored(ConsumerRecord<byte[], byte[]> record) {
        KafkaInternals.advance(position, record, hasPositionsInChangelog);
    }

    /** Writes, and moves the position to the record that the task processes. */
    final void write(Runnable writing) {
        synchronized (position) {
            run(writing);
            KafkaInternals.advance(position, context);
        }
    }

    @Override
    public final void commit(Map<TopicPartition, Long> offsets) {
        synchronized (position) {
            StoreDatabase open = database;
            if (open != null) {
                run(() -> open.commit(offsets, position));
            }
        }
    }

    @Override
    public final Long committedOffset(TopicPartition partition) {
        return calling(() -> database().committedOffset(partition));
    }

    @Override
    @Deprecated
    public final boolean managesOffsets() {
        return true;
    }

    @Override
    public final Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return KafkaInternals.query(this, query, bound, config, position, context);
    }

    @Override
    public void close() {
        StoreDatabase closing = database;
        database = null;
        if (closing != null) {
            metrics.remove();
            run(closing::close);
        }
    }

    final StateStoreContext context() {
        return context;
    }

    /** The open database. */
    final StoreDatabase database() {
        StoreDatabase open = database;
        if (open == null) {
            throw new InvalidStateStoreException("store " + name + " is closed");
        }
        return open;
    }

    final void run(Runnable work) {
        calling(() -> {
            work.run();
            return null;
        });
    }

    /** Calls the database, and turns its errors into those that Kafka acts on. */
    final <T> T calling(Supplier<T> work) {
        try {
            return work.get();
        } catch (ShingleException error) {
            throw kafkaError(error);
        }
    }

    private RuntimeException kafkaError(ShingleException error) {
        String message = "store " + name + ": " + error.getMessage();
        if (error.kind() == ErrorKind.CLOSED) {
            return new InvalidStateStoreException(message, error);
        }
        ProcessorStateException told = new ProcessorStateException(message, error);
        // Kafka removes the directory of the task, and the changelog has what was in it.
        boolean isLost = error.kind() == ErrorKind.CORRUPTION && !isGlobal();
        return isLost ? corrupted(told) : told;
    }
}
