package org.shingle.bench;

import java.nio.file.Path;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.shingle.Cursor;
import org.shingle.Options;
import org.shingle.ReadOptions;
import org.shingle.Shingle;
import org.shingle.WriteBatch;

/** A store under measurement. Both have the same budgets, no compression, and a log without sync. */
interface Store extends AutoCloseable {
    long WRITE_BUFFER = 64L << 20;
    long CACHE = 256L << 20;
    int FILTER_BITS = 10;

    void put(byte[] key, byte[] value) throws Exception;

    byte[] get(byte[] key) throws Exception;

    /** Writes entries together. */
    void write(byte[][] keys, byte[] value) throws Exception;

    /** Reads every entry in order, and gives the sum of the sizes. */
    long scan() throws Exception;

    /** Seeks a key, and reads this many entries from there on. */
    long range(byte[] key, int count) throws Exception;

    /** Waits until compaction is done. */
    void settle() throws Exception;

    static Store open(String name, Path path) throws Exception {
        return name.equals("shingle") ? new OfShingle(path) : new OfRocks(path);
    }

    /** Shingle. */
    final class OfShingle implements Store {
        private final Shingle database;
        private final WriteBatch batch = new WriteBatch();

        OfShingle(Path path) {
            database = Shingle.open(
                    path,
                    new Options()
                            .memoryBytes(WRITE_BUFFER * 2 + CACHE + (64 << 20))
                            .writeBufferBytes(WRITE_BUFFER)
                            .cacheBytes(CACHE)
                            .compression("none")
                            .set("filter_bits_per_key", Integer.toString(FILTER_BITS))
                            .backgroundThreads(2));
        }

        @Override
        public void put(byte[] key, byte[] value) {
            database.put(key, value);
        }

        @Override
        public byte[] get(byte[] key) {
            return database.get(key);
        }

        @Override
        public void write(byte[][] keys, byte[] value) {
            batch.clear();
            for (byte[] key : keys) {
                batch.put(key, value);
            }
            database.write(batch);
        }

        @Override
        public long scan() {
            long sum = 0;
            try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
                for (cursor.seekToFirst(); cursor.isValid(); cursor.next()) {
                    sum += cursor.key().length + cursor.value().length;
                }
            }
            return sum;
        }

        @Override
        public long range(byte[] key, int count) {
            long sum = 0;
            try (Cursor cursor = database.cursor(ReadOptions.DEFAULT)) {
                cursor.seek(key);
                for (int n = 0; n < count && cursor.isValid(); n++, cursor.next()) {
                    sum += cursor.key().length + cursor.value().length;
                }
            }
            return sum;
        }

        @Override
        public void settle() {
            database.flush();
            database.waitIdle();
        }

        @Override
        public void close() {
            database.close();
        }
    }

    /** RocksDB. */
    final class OfRocks implements Store {
        static {
            RocksDB.loadLibrary();
        }

        private final org.rocksdb.Options options;
        private final org.rocksdb.WriteOptions writes = new org.rocksdb.WriteOptions();
        private final org.rocksdb.WriteBatch batch = new org.rocksdb.WriteBatch();
        private final LRUCache cache = new LRUCache(CACHE);
        private final BloomFilter filter = new BloomFilter(FILTER_BITS);
        private final RocksDB database;

        OfRocks(Path path) throws RocksDBException {
            BlockBasedTableConfig table = new BlockBasedTableConfig();
            table.setBlockCache(cache).setFilterPolicy(filter);
            options = new org.rocksdb.Options()
                    .setCreateIfMissing(true)
                    .setWriteBufferSize(WRITE_BUFFER)
                    .setCompressionType(CompressionType.NO_COMPRESSION)
                    .setMaxBackgroundJobs(2)
                    .setTableFormatConfig(table);
            database = RocksDB.open(options, path.toString());
        }

        @Override
        public void put(byte[] key, byte[] value) throws RocksDBException {
            database.put(writes, key, value);
        }

        @Override
        public byte[] get(byte[] key) throws RocksDBException {
            return database.get(key);
        }

        @Override
        public void write(byte[][] keys, byte[] value) throws RocksDBException {
            batch.clear();
            for (byte[] key : keys) {
                batch.put(key, value);
            }
            database.write(writes, batch);
        }

        @Override
        public long scan() {
            long sum = 0;
            try (RocksIterator entries = database.newIterator()) {
                for (entries.seekToFirst(); entries.isValid(); entries.next()) {
                    sum += entries.key().length + entries.value().length;
                }
            }
            return sum;
        }

        @Override
        public long range(byte[] key, int count) {
            long sum = 0;
            try (RocksIterator entries = database.newIterator()) {
                entries.seek(key);
                for (int n = 0; n < count && entries.isValid(); n++, entries.next()) {
                    sum += entries.key().length + entries.value().length;
                }
            }
            return sum;
        }

        @Override
        public void settle() throws Exception {
            try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
                database.flush(flush);
            }
            while (database.getLongProperty("rocksdb.num-running-compactions") > 0
                    || database.getLongProperty("rocksdb.compaction-pending") > 0) {
                Thread.sleep(10);
            }
        }

        @Override
        public void close() {
            database.close();
            options.close();
            batch.close();
            writes.close();
            cache.close();
            filter.close();
        }
    }
}
