package org.shingle.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.query.Position;
import org.shingle.Cursor;
import org.shingle.Keyspace;
import org.shingle.KeyspaceOptions;
import org.shingle.ReadOptions;
import org.shingle.Shingle;
import org.shingle.ShingleException;
import org.shingle.WriteBatch;

/**
 * The database of a store: its entries, and in a second keyspace the changelog offsets, the
 * position, a mark and the shape of the entries. A third one can have the keys of the entries in
 * another order.
 *
 * <p>Invariants:
 * <ul>
 *   <li>No keyspace has a log, so all are flushed together, and what a crash leaves is a prefix of
 *       what was written: entries, offsets and position of one moment.
 *   <li>Writes that are held in memory for the commit are written with it, and before that only
 *       where they are too many. No write is held that the commit could not write.
 *   <li>The mark is written before the first entry after a commit that the changelog may not have,
 *       and removed with the next commit. A database without it has nothing beyond its offsets but
 *       records of the changelog.
 *   <li>The shape is written before the first entry. Entries without one are from a version of
 *       this module that wrote none.
 * </ul>
 */
final class StoreDatabase implements AutoCloseable {
    private static final KeyspaceOptions WITHOUT_LOG = KeyspaceOptions.DEFAULT.withoutWal(true);
    private static final byte[] POSITION = {'p'};
    private static final byte[] UNCOMMITTED = {'u'};
    private static final byte[] SHAPE = {'s'};
    private static final byte[] NOTHING = {};

    /** The limits of the database. */
    private static final int KEY_BYTES_MAX = 65_535;
    private static final int VALUE_BYTES_MAX = 1 << 30;

    /** Offsets are under this letter and the text of their partition. */
    private static final char OFFSET = 'o';

    private static final KeyRange OFFSETS =
            new KeyRange(new byte[] {OFFSET}, new byte[] {OFFSET + 1});

    private final Instance instance;
    private final Shingle database;
    private final Keyspace entries;
    private final Keyspace meta;

    /** Keys of entries by their time; null where the store does not ask for it. */
    private final Keyspace times;

    private final long commitIntervalNanos;

    /** Writes to {@code entries} and to {@code times} that wait for the commit. */
    private final HeldWrites heldEntries = new HeldWrites();
    private final HeldWrites heldTimes = new HeldWrites();

    /** At most this many bytes are held; 0: writes do not wait for the commit. */
    private final long heldBytesMax;

    /** Turns errors of the database into those that Kafka acts on. */
    private final Function<ShingleException, RuntimeException> errors;

    private final Set<Entries> iterators = ConcurrentHashMap.newKeySet();

    /** Iterators that are made from here on have to be closed by who makes them. */
    private volatile boolean isClosing;

    private boolean hasUncommitted;

    /** It was opened without entries and without a known offset, and nothing was written since. */
    private boolean isUntouched;

    private boolean hasPosition;
    private long lastFlushNanos;

    private StoreDatabase(
            Instance instance,
            Shingle database,
            ShingleConfig config,
            Shape shape,
            Function<ShingleException, RuntimeException> errors) {
        this.instance = instance;
        this.database = database;
        this.errors = errors;
        heldBytesMax = config.heldBytesMax();
        commitIntervalNanos = config.commitIntervalMs() * 1_000_000;
        lastFlushNanos = System.nanoTime() - commitIntervalNanos;
        entries = database.openKeyspace("entries", WITHOUT_LOG);
        meta = database.openKeyspace("meta", WITHOUT_LOG);
        try {
            hasUncommitted = meta.get(UNCOMMITTED) != null;
            hasPosition = meta.get(POSITION) != null;
            isUntouched = isEmpty() && !hasKnownOffset();
            putShape(shape);
        } catch (RuntimeException | Error error) {
            // An open keyspace keeps the threads that the stores share.
            closeAll(List.of(entries::close, meta::close));
            throw error;
        }
        times = shape.hasTimes() ? database.openKeyspace("times", WITHOUT_LOG) : null;
    }

    /** Before anything is made or written: a database of another shape stays as it is. */
    private void putShape(Shape shape) {
        byte[] stored = meta.get(SHAPE);
        boolean isOther = stored != null && !Arrays.equals(stored, shape.bytes());
        if (isOther && !isUntouched) {
            throw new OtherShapeException(stored, shape);
        }
        if (isOther || stored == null) {
            meta.put(SHAPE, shape.bytes());
        }
    }

    private boolean isEmpty() {
        try (Cursor cursor = cursor()) {
            cursor.seekToFirst();
            return !cursor.isValid();
        }
    }

    private boolean hasKnownOffset() {
        try (Cursor cursor = meta.cursor(OFFSETS.options())) {
            cursor.seekToFirst();
            while (cursor.isValid()) {
                if (ByteBuffer.wrap(cursor.value()).getLong() >= 0) {
                    return true;
                }
                cursor.next();
            }
            return false;
        }
    }

    /**
     * Opens the database in a directory, which exists.
     *
     * @param application what the instances of an application are known by
     * @param shape what the store takes its bytes for
     * @param errors turns errors that iterators meet into those that Kafka acts on
     * @throws OtherShapeException it has entries or offsets, and another shape
     */
    static StoreDatabase open(
            String store,
            Path path,
            Path application,
            ShingleConfig config,
            Shape shape,
            Function<ShingleException, RuntimeException> errors) {
        Instance instance = Instance.acquire(application, config);
        Shingle database = null;
        try {
            database = instance.open(path, config.options(store));
            return new StoreDatabase(instance, database, config, shape, errors);
        } catch (RuntimeException | Error error) {
            try {
                closeAll(database == null
                        ? List.of(instance::release)
                        : List.of(database::close, instance::release));
            } catch (RuntimeException closing) {
                error.addSuppressed(closing);
            }
            throw error;
        }
    }

    byte[] get(byte[] key) {
        return heldEntries.get(entries, key);
    }

    /** Puts a value, or removes the key where it is null. */
    void put(byte[] key, byte[] value) {
        isUntouched = false;
        if (heldBytesMax > 0) {
            refuseTooLong(entries, key, value);
            heldEntries.put(key, value);
            writeHeldIfMany();
            return;
        }
        mark();
        if (value == null) {
            entries.delete(key);
        } else {
            entries.put(key, value);
        }
    }

    /**
     * A batch.
     *
     * @param isRestored whether it has records of the changelog, or changes of the application
     */
    Batch batch(boolean isRestored) {
        return isRestored || heldBytesMax == 0 ? new ToDatabase(isRestored) : new ToMemory();
    }

    /** Writes that are made together. */
    interface Batch {
        /** Puts a value, or removes the key where it is null. */
        void put(byte[] key, byte[] value);

        void deleteRange(byte[] start, byte[] end);

        /** Puts the key of an entry by its time, or removes it. */
        void putTime(byte[] timeKey, boolean isPut);

        void deleteTimes(byte[] start, byte[] end);

        /** Writes it; it is used no more. */
        void write();
    }

    /** The writes become visible together. */
    private final class ToDatabase implements Batch {
        private final WriteBatch batch = new WriteBatch();
        private final boolean isRestored;

        ToDatabase(boolean isRestored) {
            this.isRestored = isRestored;
        }

        @Override
        public void put(byte[] key, byte[] value) {
            if (value == null) {
                batch.delete(entries, key);
            } else {
                batch.put(entries, key, value);
            }
        }

        @Override
        public void deleteRange(byte[] start, byte[] end) {
            batch.deleteRange(entries, start, end);
        }

        @Override
        public void putTime(byte[] timeKey, boolean isPut) {
            if (isPut) {
                batch.put(times, timeKey, NOTHING);
            } else {
                batch.delete(times, timeKey);
            }
        }

        @Override
        public void deleteTimes(byte[] start, byte[] end) {
            batch.deleteRange(times, start, end);
        }

        @Override
        public void write() {
            isUntouched = false;
            if (isRestored) {
                writeHeld();
            } else {
                mark();
            }
            database.write(batch);
        }
    }

    /**
     * Fails with the error of the database where it refuses the write. At the commit that would be
     * too late: the changelog has the write by then, and cannot be restored.
     */
    private static void refuseTooLong(Keyspace keyspace, byte[] key, byte[] value) {
        if (key.length > KEY_BYTES_MAX) {
            keyspace.delete(key);
        } else if (value != null && value.length > VALUE_BYTES_MAX) {
            keyspace.put(key, value);
        }
    }

    /** The writes wait for the commit: all of them, or none where one is refused. */
    private final class ToMemory implements Batch {
        private final List<Runnable> writes = new ArrayList<>();

        @Override
        public void put(byte[] key, byte[] value) {
            refuseTooLong(entries, key, value);
            writes.add(() -> heldEntries.put(key, value));
        }

        @Override
        public void deleteRange(byte[] start, byte[] end) {
            writes.add(() -> heldEntries.removeRange(new KeyRange(start, end)));
        }

        @Override
        public void putTime(byte[] timeKey, boolean isPut) {
            refuseTooLong(times, timeKey, NOTHING);
            writes.add(() -> heldTimes.put(timeKey, isPut ? NOTHING : null));
        }

        @Override
        public void deleteTimes(byte[] start, byte[] end) {
            writes.add(() -> heldTimes.removeRange(new KeyRange(start, end)));
        }

        @Override
        public void write() {
            isUntouched = false;
            writes.forEach(Runnable::run);
            writeHeldIfMany();
        }
    }

    /** Memory is limited, so writes may have to go to the database before their commit. */
    private void writeHeldIfMany() {
        if (heldEntries.bytes() + heldTimes.bytes() > heldBytesMax) {
            writeHeld();
        }
    }

    private void writeHeld() {
        WriteBatch batch = new WriteBatch();
        addHeld(batch);
        if (batch.count() > 0) {
            mark();
            database.write(batch);
            heldEntries.clear();
            heldTimes.clear();
        }
    }

    private void addHeld(WriteBatch batch) {
        heldEntries.addTo(batch, entries);
        if (times != null) {
            heldTimes.addTo(batch, times);
        }
    }

    /** Says that from here on the database has what the changelog may not have. */
    private void mark() {
        if (!hasUncommitted) {
            meta.put(UNCOMMITTED, NOTHING);
            hasUncommitted = true;
        }
    }

    /** Whether the database may have writes that the changelog does not have. */
    boolean hasUncommitted() {
        return hasUncommitted;
    }

    /**
     * Whether it is as it was made, so that no offset can be right. Kafka gives such a store the
     * offsets of another one where it finds an old checkpoint file.
     */
    boolean isUntouched() {
        return isUntouched;
    }

    /**
     * Stores offsets and position behind the entries that they belong to. {@link #flushIfDue} makes
     * all of it durable.
     *
     * @param offsets as of {@code StateStore.commit}: empty removes all and the position, null
     *     removes one
     */
    void commit(Map<TopicPartition, Long> offsets, Position position) {
        WriteBatch batch = new WriteBatch();
        addHeld(batch);
        if (offsets.isEmpty()) {
            batch.deleteRange(meta, OFFSETS.start(), OFFSETS.end());
            batch.delete(meta, POSITION);
        } else {
            batch.put(meta, POSITION, KafkaInternals.bytesOf(position));
        }
        offsets.forEach((partition, offset) -> {
            if (offset == null) {
                batch.delete(meta, offsetKey(partition));
            } else {
                byte[] bytes = ByteBuffer.allocate(Long.BYTES).putLong(offset).array();
                batch.put(meta, offsetKey(partition), bytes);
            }
        });
        if (hasUncommitted) {
            batch.delete(meta, UNCOMMITTED);
        }
        database.write(batch);
        heldEntries.clear();
        heldTimes.clear();
        hasUncommitted = false;
        hasPosition = !offsets.isEmpty();
    }

    /** Stores the position where a commit without offsets has removed it. */
    void putPosition(Position position) {
        if (!hasPosition) {
            meta.put(POSITION, KafkaInternals.bytesOf(position));
            hasPosition = true;
        }
    }

    /**
     * Has everything made durable, unless that was done a short time ago. A store that flushes with
     * each commit waits, and so does one without a changelog. The others lose commits to a kill in
     * any case, and the changelog has what they lose.
     */
    void flushIfDue(boolean hasChangelog) {
        if (System.nanoTime() - lastFlushNanos >= commitIntervalNanos) {
            if (commitIntervalNanos == 0 || !hasChangelog) {
                database.flush();
            } else {
                database.beginFlush();
            }
            lastFlushNanos = System.nanoTime();
        }
    }

    Long committedOffset(TopicPartition partition) {
        byte[] bytes = meta.get(offsetKey(partition));
        return bytes == null ? null : ByteBuffer.wrap(bytes).getLong();
    }

    /** The position at the last commit. */
    Position position() {
        byte[] bytes = meta.get(POSITION);
        return bytes == null ? Position.emptyPosition() : KafkaInternals.positionOf(bytes);
    }

    /** Entries as they are now; the caller closes the iterator, or the close of the database. */
    Entries iterator(KeyRange range, boolean isReverse) {
        return iterator(entries, heldEntries, range, isReverse);
    }

    /** Keys of entries by their time, as {@link #iterator}. */
    Entries times(KeyRange range, boolean isReverse) {
        return iterator(times, heldTimes, range, isReverse);
    }

    private Entries iterator(
            Keyspace keyspace, HeldWrites held, KeyRange range, boolean isReverse) {
        Supplier<StoreIterator> below = () ->
                new StoreIterator(
                        keyspace.cursor(range.options()), isReverse, iterators::remove, errors);
        Entries iterator = heldBytesMax == 0
                ? below.get()
                : held.over(range, isReverse, below, iterators::remove);
        iterators.add(iterator);
        if (isClosing) {
            iterator.close();
            throw new InvalidStateStoreException("the store is closed");
        }
        return iterator;
    }

    /** A cursor over all entries, to be closed. */
    Cursor cursor() {
        return entries.cursor(ReadOptions.DEFAULT);
    }

    long approximateEntries() {
        return entries.approximateSize() + heldEntries.count();
    }

    Shingle shingle() {
        return database;
    }

    private static byte[] offsetKey(TopicPartition partition) {
        return (OFFSET + partition.toString()).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        isClosing = true;
        List<Runnable> steps = new ArrayList<>();
        iterators.forEach(iterator -> steps.add(iterator::close));
        steps.add(database::close);
        steps.add(entries::close);
        steps.add(meta::close);
        if (times != null) {
            steps.add(times::close);
        }
        steps.add(instance::release);
        closeAll(steps);
    }

    /** Takes each step, also where one before it failed, and throws the first error. */
    private static void closeAll(List<Runnable> steps) {
        RuntimeException first = null;
        for (Runnable step : steps) {
            try {
                step.run();
            } catch (RuntimeException error) {
                if (first == null) {
                    first = error;
                } else {
                    first.addSuppressed(error);
                }
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
