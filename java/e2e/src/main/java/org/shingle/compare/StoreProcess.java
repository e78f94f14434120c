package org.shingle.compare;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.shingle.orders.Child;

/**
 * A process with one store, which does one phase and writes what it measured to a file.
 *
 * <ul>
 *   <li>{@code fill}: puts every key, then gets and puts random keys as an aggregate does; at the
 *       end it waits to be killed
 *   <li>{@code reopen}: opens what the killed process left, and reads it all
 *   <li>{@code restore}: gives an empty store every key through its restore callback
 * </ul>
 */
public final class StoreProcess implements AutoCloseable {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final int BATCH = 1000;
    private static final int UNCOMMITTED = 10_000;

    /** About what memtables have of the memory of a store. */
    private static final int LOOP_BLOCK_SHARE = 5;
    private static final Duration QUIET = Duration.ofSeconds(3);
    private static final Duration LONGEST_QUIET = Duration.ofMinutes(5);

    private final Plan plan;
    private final Work work;
    private final Host host;
    private final KeyValueStore<Bytes, byte[]> store;
    private final Map<String, Object> measured = new LinkedHashMap<>();
    private long offset;

    /** The memory of {@link Loops}, which is not the store's. */
    private int loopBytes;

    private StoreProcess(Plan plan) throws ReflectiveOperationException {
        this.plan = plan;
        this.work = new Work(plan.valueBytes());
        Contender contender = new Contender(plan.store());
        Path directory = Path.of(plan.folder());
        this.host = new Host(
                contender.properties(plan.memoryBytes(), plan.more()), directory.toFile());
        this.store = contender.supplier().get();
        long began = System.nanoTime();
        store.init(host, store);
        measured.put("open-ms", (System.nanoTime() - began) / 1e6);
    }

    /** The argument is a file with the plan. */
    public static void main(String[] arguments) throws Exception {
        Child.endWithParent();
        ObjectMapper json = new ObjectMapper();
        Plan plan = json.readValue(Path.of(arguments[0]).toFile(), Plan.class);
        try (StoreProcess process = new StoreProcess(plan)) {
            switch (plan.phase()) {
                case "fill" -> process.fill();
                case "reopen" -> process.reopen();
                case "restore" -> process.restore();
                default -> throw new IllegalArgumentException("unknown phase " + plan.phase());
            }
            long loopBytes = process.loopBytes;
            process.measured.put("memory-bytes", Kernel.memoryBytes() - loopBytes);
            process.measured.put("most-memory-bytes", Kernel.mostMemoryBytes() - loopBytes);
            // The parent waits for the name, and kills a process that filled.
            Path result = Path.of(plan.result());
            Path unfinished = Path.of(plan.result() + ".unfinished");
            json.writeValue(unfinished.toFile(), process.measured);
            Files.move(unfinished, result);
            if (plan.phase().equals("fill")) {
                Thread.sleep(Long.MAX_VALUE);
            }
        }
    }

    @Override
    public void close() {
        store.close();
    }

    private void fill() throws Exception {
        long before = Kernel.writtenBytes();
        Histogram loads = histogram();
        long began = System.nanoTime();
        for (long number = 0; number < plan.keys(); number++) {
            put(number, 0, loads);
        }
        measured.put("load-seconds", seconds(began));
        measured.put("load-written-bytes", Kernel.writtenBytes() - before);
        Histogram puts = histogram();
        Histogram gets = histogram();
        loopBytes = Math.toIntExact(plan.memoryBytes() / LOOP_BLOCK_SHARE) & -Long.BYTES;
        // A put after a get takes longer than one of the load, so the length is taken anew.
        Loops loops = new Loops(loopBytes, loads.getValueAtPercentile(50));
        SplittableRandom random = History.keys();
        began = System.nanoTime();
        for (long update = 1; update <= plan.updates(); update++) {
            long number = random.nextLong(plan.keys());
            long asked = System.nanoTime();
            byte[] value = store.get(Bytes.wrap(Work.key(number)));
            gets.recordValue(System.nanoTime() - asked);
            if (!work.isValue(number, value)) {
                throw new AssertionError("key " + number + " has a wrong value");
            }
            put(number, update, puts);
            loops.afterUpdate(update, puts);
        }
        measured.put("update-seconds", seconds(began) - loops.seconds());
        commit();
        measured.put("written-bytes-when-done", Kernel.writtenBytes() - before);
        settle();
        measured.put("written-bytes", Kernel.writtenBytes() - before);
        latencies("load-put", loads);
        latencies("put", puts);
        latencies("get", gets);
        latencies("loop", loops.ofTime);
        latencies("memory-loop", loops.ofMemory);
        for (int update = 1; update <= UNCOMMITTED; update++) {
            put(random.nextLong(plan.keys()), plan.updates() + update, puts);
        }
        measured.put("offset", offset);
    }

    private void reopen() throws IOException {
        Long committed = store.committedOffset(CHANGELOG);
        measured.put("committed-offset", committed == null ? -1 : committed);
        int[] versions = readAll();
        // The first commit of Shingle always begins a flush, which has ended when the store has
        // settled. RocksDB flushes when memory is full.
        History history = new History(plan);
        boolean isDurable = new Contender(plan.store()).isShingle();
        long first = Math.min(plan.commitRecords(), plan.keys() + plan.updates());
        history.check(versions, committed, isDurable ? first : 0);
    }

    private void restore() throws Exception {
        long before = Kernel.writtenBytes();
        var callback = host.restore();
        long began = System.nanoTime();
        List<ConsumerRecord<byte[], byte[]>> batch = new ArrayList<>(BATCH);
        for (long number = 0; number < plan.keys(); number++) {
            byte[] value = work.value(number, 0);
            batch.add(new ConsumerRecord<>(
                    CHANGELOG.topic(), 0, offset++, Work.key(number), value));
            if (batch.size() == BATCH || number + 1 == plan.keys()) {
                callback.restoreBatch(batch);
                batch.clear();
            }
        }
        commit();
        measured.put("restore-seconds", seconds(began));
        settle();
        measured.put("restore-settled-seconds", seconds(began) - QUIET.toSeconds());
        measured.put("restore-written-bytes", Kernel.writtenBytes() - before);
        int[] expected = new History(plan).versions(plan.keys());
        if (!Arrays.equals(readAll(), expected)) {
            throw new AssertionError(measured.get("entries") + " of " + plan.keys()
                    + " entries were restored, or some with wrong versions");
        }
    }

    /** Reads all entries and gives the version of each key. */
    private int[] readAll() {
        int[] versions = new int[Math.toIntExact(plan.keys())];
        Arrays.fill(versions, History.ABSENT);
        long began = System.nanoTime();
        long entries = 0;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                var entry = all.next();
                long number = java.nio.ByteBuffer.wrap(entry.key.get()).getLong(Long.BYTES);
                if (!work.isValue(number, entry.value)) {
                    throw new AssertionError("key " + number + " has a wrong value");
                }
                versions[Math.toIntExact(number)] = Math.toIntExact(Work.version(entry.value));
                entries++;
            }
        }
        measured.put("entries", entries);
        measured.put("read-all-seconds", seconds(began));
        return versions;
    }

    private void put(long number, long version, Histogram latencies) throws IOException {
        Bytes key = Bytes.wrap(Work.key(number));
        byte[] value = work.value(number, version);
        host.nextRecord();
        long began = System.nanoTime();
        store.put(key, value);
        latencies.recordValue(System.nanoTime() - began);
        offset++;
        if (offset % plan.commitRecords() == 0) {
            commit();
        }
    }

    /** What a task does at a commit. */
    private void commit() throws IOException {
        long began = System.nanoTime();
        store.commit(Map.of(CHANGELOG, offset));
        host.committed();
        double millis = (System.nanoTime() - began) / 1e6;
        measured.merge("longest-commit-ms", millis, (one, other) ->
                Math.max((double) one, (double) other));
    }

    /** Waits until the store writes nothing by itself. */
    private void settle() throws Exception {
        long end = System.nanoTime() + LONGEST_QUIET.toNanos();
        long quietSince = System.nanoTime();
        long written = Kernel.writtenBytes();
        while (System.nanoTime() - quietSince < QUIET.toNanos() && System.nanoTime() < end) {
            Thread.sleep(200);
            long now = Kernel.writtenBytes();
            if (now != written) {
                written = now;
                quietSince = System.nanoTime();
            }
        }
    }

    private void latencies(String name, Histogram histogram) {
        measured.put(name + "-p50-us", histogram.getValueAtPercentile(50) / 1e3);
        measured.put(name + "-p99-us", histogram.getValueAtPercentile(99) / 1e3);
        measured.put(name + "-p99.9-us", histogram.getValueAtPercentile(99.9) / 1e3);
        measured.put(name + "-max-us", histogram.getMaxValue() / 1e3);
    }

    private static Histogram histogram() {
        return new Histogram(3);
    }

    private static double seconds(long since) {
        return (System.nanoTime() - since) / 1e9;
    }
}
