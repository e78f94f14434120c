package org.shingle.kafka;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
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
 * while the store closes. The lock on the position makes an entry and its position one write: a
 * thread that holds it reads both as of the same record.
 *
 * <p>A store with a damaged file is built anew from its changelog. Kafka removes the directory of
 * the task under exactly-once only, so the store removes its own: when the damage shows at its
 * opening, or when it closes after that. Files of a store of another {@link Shape} are as good as
 * damaged.
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

    /** Of the database. */
    private Path directory;

    /** Its files are damaged, and the changelog has what was in them. */
    private volatile boolean isDamaged;

    /** Why records of the changelog were not applied; null where all were. */
    private ShingleException restoreError;

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
        directory = directory();
        isDamaged = false;
        restoreError = null;
        run(() -> {
            try {
                open(config);
            } catch (OtherShapeException error) {
                if (!isInChangelog()) {
                    throw otherShape(error);
                }
                removeDirectory(error.getMessage());
                open(config);
            } catch (ShingleException error) {
                if (!isLost(error)) {
                    throw error;
                }
                removeDirectory("its files are damaged");
                open(config);
            }
            try {
                context.register(
                        root, KafkaInternals.restoring(this::restore), this::putPosition);
            } catch (RuntimeException | Error error) {
                closeAfter(error);
                throw error;
            }
        });
    }

    private ProcessorStateException otherShape(OtherShapeException error) {
        String remedy = isGlobal()
                ? "A global store is not built anew by itself: go back to the earlier settings, or "
                        + "delete the directory, and the store is filled from its topic"
                : "It has no changelog to be built anew from: go back to the earlier settings, or "
                        + "delete the directory and with it the entries";
        return new ProcessorStateException(
                "store " + name + " in " + directory + ": " + error.getMessage() + ". " + remedy,
                error);
    }

    /** What the bytes of the database mean. */
    abstract Shape shape();

    /** Called between the opening of the database and the first use of the store. */
    void opened(StoreDatabase opened) {}

    /** The directory of the database, which is one in that of all stores of the task. */
    private Path directory() {
        Path stores = context.stateDir().toPath().toAbsolutePath().resolve(DIRECTORY).normalize();
        try {
            Path path = stores.resolve(name).normalize();
            if (stores.equals(path.getParent()) && path.endsWith(name)) {
                return path;
            }
        } catch (InvalidPathException error) {
            // as below
        }
        throw new IllegalArgumentException(
                "store \"" + name + "\": its name cannot be that of a directory in " + stores
                        + "; give it a name without \"/\"");
    }

    /** Opens the database; leaves nothing open where it fails. */
    private void open(ShingleConfig config) {
        try {
            Files.createDirectories(directory);
        } catch (IOException error) {
            throw new ProcessorStateException(
                    "store " + name + ": the directory " + directory + " cannot be made", error);
        }
        Path application = context.stateDir().toPath().toAbsolutePath().getParent();
        StoreDatabase opened = StoreDatabase.open(
                name, directory, application, config, shape(), this::kafkaError);
        database = opened;
        try {
            if (opened.hasUncommitted() && config.isExactlyOnce() && !isGlobal()) {
                throw corrupted(new ProcessorStateException(
                        "store " + name + " in " + directory + " has writes that were not "
                                + "committed when its process ended: under exactly-once it is "
                                + "built anew from its changelog"));
            }
            position = opened.position();
            opened(opened);
            metrics = StoreMetrics.add(context, scope, name, opened);
        } catch (RuntimeException | Error error) {
            closeAfter(error);
            throw error;
        }
    }

    private void closeAfter(Throwable error) {
        try {
            close();
        } catch (RuntimeException closing) {
            error.addSuppressed(closing);
        }
    }

    private void removeDirectory(String why) {
        try (Stream<Path> files = Files.walk(directory)) {
            List<Path> inOrder = files.sorted(Comparator.reverseOrder()).toList();
            for (Path file : inOrder) {
                Files.delete(file);
            }
        } catch (IOException | UncheckedIOException error) {
            throw new ProcessorStateException(
                    "store " + name + ": " + why + ". The directory " + directory
                            + " cannot be removed: remove it by hand, then the store is built "
                            + "anew from its changelog",
                    error);
        }
    }

    /** A global store is filled from a topic, which has committed records alone. */
    private boolean isGlobal() {
        TaskId task = context.taskId();
        return task == null || task.partition() < 0;
    }

    private TaskCorruptedException corrupted(ProcessorStateException cause) {
        return new TaskCorruptedException(Set.of(context.taskId()), cause);
    }

    /**
     * Applies records of the changelog, in their order. Kafka takes every error of this for one that
     * ends the thread, so the next commit tells that the store is damaged.
     */
    private void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (restoreError != null) {
            return;
        }
        synchronized (position) {
            try {
                restoreAll(records);
            } catch (ShingleException error) {
                if (!isLost(error)) {
                    throw kafkaError(error);
                }
                restoreError = error;
                isDamaged = true;
            }
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
        StoreDatabase open = database;
        boolean isGivenUp = isDamaged && offsets.isEmpty(); // its files go when it closes
        if (open == null || isGivenUp) {
            return;
        }
        if (restoreError != null) {
            throw kafkaError(restoreError);
        }
        synchronized (position) {
            run(() -> open.commit(open.isUntouched() ? unknown(offsets) : offsets, position));
        }
        if (!offsets.isEmpty()) {
            flushIfDue(open);
        }
    }

    /** Offsets of a store that has nothing of its changelog. A global one has no sign for that. */
    private Map<TopicPartition, Long> unknown(Map<TopicPartition, Long> offsets) {
        Map<TopicPartition, Long> unknown = new HashMap<>();
        Long stored = isGlobal() ? null : KafkaInternals.OFFSET_UNKNOWN;
        offsets.keySet().forEach(partition -> unknown.put(partition, stored));
        return unknown;
    }

    /** Called after each commit but that of a store that Kafka builds anew. */
    private void putPosition() {
        StoreDatabase open = database;
        if (open != null) {
            synchronized (position) {
                run(() -> open.putPosition(position));
            }
            flushIfDue(open);
        }
    }

    /** Without the lock of the position: queries do not wait for a flush. */
    private void flushIfDue(StoreDatabase open) {
        run(() -> open.flushIfDue(KafkaInternals.hasChangelog(context, name)));
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
        if (closing == null) {
            return;
        }
        if (metrics != null) {
            metrics.remove();
            metrics = null;
        }
        RuntimeException failure = null;
        try {
            run(closing::close);
        } catch (RuntimeException error) {
            failure = error;
            if (!isDamaged) {
                throw error;
            }
        } finally {
            if (isDamaged) {
                removeDamaged(failure);
            }
        }
    }

    /**
     * Removes the damaged files, and with them what their close may have failed with. Otherwise
     * the store would not be built anew.
     */
    private void removeDamaged(RuntimeException closing) {
        try {
            removeDirectory("its files are damaged");
        } catch (ProcessorStateException error) {
            if (closing != null) {
                error.addSuppressed(closing);
            }
            throw error;
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
        if (!isLost(error)) {
            return told;
        }
        isDamaged = true;
        return corrupted(told);
    }

    /** Whether the error says that stored data is lost, and the changelog still has it. */
    private boolean isLost(ShingleException error) {
        return error.kind() == ErrorKind.CORRUPTION && isInChangelog();
    }

    /** Whether Kafka fills the store from its changelog where it is opened without an offset. */
    private boolean isInChangelog() {
        return !isGlobal() && KafkaInternals.hasChangelog(context, name);
    }
}
