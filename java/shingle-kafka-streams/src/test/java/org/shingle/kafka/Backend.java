package org.shingle.kafka;

import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;

/** The stores that must keep the contract. */
enum Backend {
    ROCKSDB {
        @Override
        KeyValueStore<Bytes, byte[]> keyValue(String name) {
            return Stores.persistentTimestampedKeyValueStore(name).get();
        }

        @Override
        WindowStore<Bytes, byte[]> window(Duration retention, boolean duplicates) {
            return Stores.persistentTimestampedWindowStore("w", retention, SIZE, duplicates).get();
        }

        @Override
        SessionStore<Bytes, byte[]> session(Duration retention) {
            return Stores.persistentSessionStore("s", retention).get();
        }

        @Override
        VersionedBytesStore versioned(Duration retention) {
            return (VersionedBytesStore) Stores.persistentVersionedKeyValueStore(
                    "v", retention, Duration.ofSeconds(20)).get();
        }
    },
    SHINGLE {
        @Override
        KeyValueStore<Bytes, byte[]> keyValue(String name) {
            return ShingleStoreSuppliers.timestampedKeyValueStore(name).get();
        }

        @Override
        WindowStore<Bytes, byte[]> window(Duration retention, boolean duplicates) {
            return ShingleStoreSuppliers.timestampedWindowStore("w", retention, SIZE, duplicates)
                    .get();
        }

        @Override
        SessionStore<Bytes, byte[]> session(Duration retention) {
            return ShingleStoreSuppliers.sessionStore("s", retention).get();
        }

        @Override
        VersionedBytesStore versioned(Duration retention) {
            return (VersionedBytesStore) ShingleStoreSuppliers.versionedKeyValueStore(
                    "v", retention, Duration.ofSeconds(20)).get();
        }
    };

    static final Duration SIZE = Duration.ofSeconds(10);

    abstract KeyValueStore<Bytes, byte[]> keyValue(String name);

    abstract WindowStore<Bytes, byte[]> window(Duration retention, boolean duplicates);

    abstract SessionStore<Bytes, byte[]> session(Duration retention);

    abstract VersionedBytesStore versioned(Duration retention);
}
