package org.shingle.kafka;

import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;

/** The stores that must keep the contract. */
enum Backend {
    ROCKSDB(true, false),
    SHINGLE(false, false),
    /** Writes wait for the commit in memory. */
    SHINGLE_HELD(false, false, "shingle.held.bytes", 1 << 20),
    /** And there is so little memory that some do not. */
    SHINGLE_HELD_LITTLE(false, false, "shingle.held.bytes", 2_000),
    /** Values begin with the headers of their records. */
    ROCKSDB_HEADERS(true, true),
    SHINGLE_HEADERS(false, true);

    static final Duration SIZE = Duration.ofSeconds(10);
    private static final EmitStrategy AT_CLOSE = EmitStrategy.onWindowClose();

    private final boolean isRocksDb;
    private final boolean hasHeaders;
    private final Object[] settings;

    Backend(boolean isRocksDb, boolean hasHeaders, Object... settings) {
        this.isRocksDb = isRocksDb;
        this.hasHeaders = hasHeaders;
        this.settings = settings;
    }

    boolean hasHeaders() {
        return hasHeaders;
    }

    /** Those of RocksDB with headers know no queries in Kafka 4.3.1. */
    boolean knowsQueries() {
        return !(isRocksDb && hasHeaders);
    }

    Task task(Path folder, Object... more) {
        return new Task(
                folder, Stream.of(settings, more).flatMap(Stream::of).toArray(Object[]::new));
    }

    KeyValueStore<Bytes, byte[]> keyValue(String name) {
        return dsl().keyValueStore(new DslKeyValueParams(name, format())).get();
    }

    WindowStore<Bytes, byte[]> window(Duration retention, boolean duplicates) {
        return window(retention, duplicates, EmitStrategy.onWindowUpdate());
    }

    SessionStore<Bytes, byte[]> session(Duration retention) {
        return session(retention, EmitStrategy.onWindowUpdate());
    }

    /** The stores of operators that emit when windows and sessions close. */
    WindowStore<Bytes, byte[]> windowAtClose(Duration retention) {
        return window(retention, false, AT_CLOSE);
    }

    SessionStore<Bytes, byte[]> sessionAtClose(Duration retention) {
        return session(retention, AT_CLOSE);
    }

    private WindowStore<Bytes, byte[]> window(
            Duration retention, boolean duplicates, EmitStrategy emits) {
        boolean isSliding = false;
        return dsl().windowStore(new DslWindowParams(
                "w", retention, SIZE, duplicates, emits, isSliding, format())).get();
    }

    private SessionStore<Bytes, byte[]> session(Duration retention, EmitStrategy emits) {
        DslStoreFormat format = hasHeaders ? DslStoreFormat.HEADERS : DslStoreFormat.PLAIN;
        return dsl().sessionStore(new DslSessionParams("s", retention, emits, format)).get();
    }

    private DslStoreFormat format() {
        return hasHeaders ? DslStoreFormat.HEADERS : DslStoreFormat.TIMESTAMPED;
    }

    private DslStoreSuppliers dsl() {
        return isRocksDb ? new RocksDBDslStoreSuppliers() : new ShingleDslStoreSuppliers();
    }

    VersionedBytesStore versioned(Duration retention) {
        Duration segment = Duration.ofSeconds(20);
        return (VersionedBytesStore) (isRocksDb
                ? Stores.persistentVersionedKeyValueStore("v", retention, segment).get()
                : ShingleStoreSuppliers.versionedKeyValueStore("v", retention, segment).get());
    }
}
