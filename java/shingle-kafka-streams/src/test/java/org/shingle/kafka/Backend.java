package org.shingle.kafka;

import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;
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
    ROCKSDB,
    SHINGLE,
    /** Writes wait for the commit in memory. */
    SHINGLE_HELD("shingle.held.bytes", 1 << 20),
    /** And there is so little memory that some do not. */
    SHINGLE_HELD_LITTLE("shingle.held.bytes", 2_000);

    static final Duration SIZE = Duration.ofSeconds(10);
    private static final EmitStrategy AT_CLOSE = EmitStrategy.onWindowClose();

    private final Object[] settings;

    Backend(Object... settings) {
        this.settings = settings;
    }

    Task task(Path folder, Object... more) {
        return new Task(
                folder, Stream.of(settings, more).flatMap(Stream::of).toArray(Object[]::new));
    }

    KeyValueStore<Bytes, byte[]> keyValue(String name) {
        return this == ROCKSDB
                ? Stores.persistentTimestampedKeyValueStore(name).get()
                : ShingleStoreSuppliers.timestampedKeyValueStore(name).get();
    }

    WindowStore<Bytes, byte[]> window(Duration retention, boolean duplicates) {
        return this == ROCKSDB
                ? Stores.persistentTimestampedWindowStore("w", retention, SIZE, duplicates).get()
                : ShingleStoreSuppliers.timestampedWindowStore("w", retention, SIZE, duplicates)
                        .get();
    }

    SessionStore<Bytes, byte[]> session(Duration retention) {
        return this == ROCKSDB
                ? Stores.persistentSessionStore("s", retention).get()
                : ShingleStoreSuppliers.sessionStore("s", retention).get();
    }

    /** The stores of operators that emit when windows and sessions close. */
    WindowStore<Bytes, byte[]> windowAtClose(Duration retention) {
        boolean isSliding = false;
        return dsl().windowStore(new DslWindowParams(
                "w", retention, SIZE, false, AT_CLOSE, isSliding, DslStoreFormat.TIMESTAMPED)).get();
    }

    SessionStore<Bytes, byte[]> sessionAtClose(Duration retention) {
        return dsl().sessionStore(new DslSessionParams(
                "s", retention, AT_CLOSE, DslStoreFormat.PLAIN)).get();
    }

    private DslStoreSuppliers dsl() {
        return this == ROCKSDB ? new RocksDBDslStoreSuppliers() : new ShingleDslStoreSuppliers();
    }

    VersionedBytesStore versioned(Duration retention) {
        Duration segment = Duration.ofSeconds(20);
        return (VersionedBytesStore) (this == ROCKSDB
                ? Stores.persistentVersionedKeyValueStore("v", retention, segment).get()
                : ShingleStoreSuppliers.versionedKeyValueStore("v", retention, segment).get());
    }
}
