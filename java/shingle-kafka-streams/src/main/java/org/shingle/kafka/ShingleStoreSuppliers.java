package org.shingle.kafka;

import java.time.Duration;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.shingle.kafka.Suppliers.Format;

/**
 * Stores of Shingle for single operators and processors: for {@code Materialized.as}, and for the
 * store builders of {@code org.apache.kafka.streams.state.Stores}. The methods are named like those
 * for the stores that Kafka has itself, and take the same arguments.
 */
public final class ShingleStoreSuppliers {
    private ShingleStoreSuppliers() {}

    /**
     * A key-value store.
     *
     * @param name the name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return Suppliers.keyValue(name, Format.PLAIN);
    }

    /**
     * A key-value store whose values have times. Operators of the DSL use it.
     *
     * @param name the name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return Suppliers.keyValue(name, Format.TIMESTAMPED);
    }

    /**
     * A key-value store whose values have times and headers.
     *
     * @param name the name of the store
     * @return its supplier
     */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStoreWithHeaders(String name) {
        return Suppliers.keyValue(name, Format.HEADERS);
    }

    /**
     * A key-value store that keeps earlier values.
     *
     * @param name the name of the store
     * @param historyRetention how long earlier values can be read, and how late records may come
     * @return its supplier
     */
    public static VersionedBytesStoreSupplier versionedKeyValueStore(
            String name, Duration historyRetention) {
        return Suppliers.versioned(name, historyRetention, null);
    }

    /**
     * A key-value store that keeps earlier values.
     *
     * @param name the name of the store
     * @param historyRetention how long earlier values can be read, and how late records may come
     * @param segmentInterval the time for which earlier values are deleted together
     * @return its supplier
     */
    public static VersionedBytesStoreSupplier versionedKeyValueStore(
            String name, Duration historyRetention, Duration segmentInterval) {
        return Suppliers.versioned(name, historyRetention, segmentInterval);
    }

    /**
     * A window store.
     *
     * @param name the name of the store
     * @param retentionPeriod how long a window can be read, from its start
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window has several values of one key
     * @return its supplier
     */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return Suppliers.window(
                name, retentionPeriod, windowSize, retainDuplicates, Format.PLAIN, false);
    }

    /**
     * A window store whose values have times. Operators of the DSL use it.
     *
     * @param name the name of the store
     * @param retentionPeriod how long a window can be read, from its start
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window has several values of one key
     * @return its supplier
     */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return Suppliers.window(
                name, retentionPeriod, windowSize, retainDuplicates, Format.TIMESTAMPED, false);
    }

    /**
     * A window store whose values have times and headers.
     *
     * @param name the name of the store
     * @param retentionPeriod how long a window can be read, from its start
     * @param windowSize the length of a window
     * @param retainDuplicates whether a window has several values of one key
     * @return its supplier
     */
    public static WindowBytesStoreSupplier timestampedWindowStoreWithHeaders(
            String name, Duration retentionPeriod, Duration windowSize, boolean retainDuplicates) {
        return Suppliers.window(
                name, retentionPeriod, windowSize, retainDuplicates, Format.HEADERS, false);
    }

    /**
     * A session store.
     *
     * @param name the name of the store
     * @param retentionPeriod how long a session can be read, from its end
     * @return its supplier
     */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retentionPeriod) {
        return Suppliers.session(name, retentionPeriod, Format.PLAIN, false);
    }

    /**
     * A session store whose values have headers.
     *
     * @param name the name of the store
     * @param retentionPeriod how long a session can be read, from its end
     * @return its supplier
     */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(
            String name, Duration retentionPeriod) {
        return Suppliers.session(name, retentionPeriod, Format.HEADERS, false);
    }
}
