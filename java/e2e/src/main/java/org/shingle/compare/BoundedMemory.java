package org.shingle.compare;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.WriteBufferManager;

/**
 * Bounds the memory of RocksDB, as Kafka's documentation shows it: one cache for blocks, indexes,
 * filters and write buffers.
 */
public final class BoundedMemory implements RocksDBConfigSetter {
    /** A property: the bound in bytes. */
    static final String BYTES = "compare.memory.bytes";

    private Cache cache;
    private WriteBufferManager buffers;

    @Override
    public void setConfig(String store, Options options, Map<String, Object> properties) {
        long bytes = Long.parseLong(properties.get(BYTES).toString());
        cache = new LRUCache(bytes);
        buffers = new WriteBufferManager(bytes / 2, cache);
        BlockBasedTableConfig tables = (BlockBasedTableConfig) options.tableFormatConfig();
        tables.setBlockCache(cache);
        tables.setCacheIndexAndFilterBlocks(true);
        tables.setPinTopLevelIndexAndFilter(true);
        options.setWriteBufferManager(buffers);
        options.setTableFormatConfig(tables);
    }

    @Override
    public void close(String store, Options options) {
        buffers.close();
        cache.close();
    }
}
