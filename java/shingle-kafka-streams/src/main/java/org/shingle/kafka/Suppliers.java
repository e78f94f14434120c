package org.shingle.kafka;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** What makes the stores. Kafka learns the format of a store's values from the supplier's type. */
final class Suppliers {
    /** What the tags of metrics begin with. */
    static final String KEY_VALUE_SCOPE = "shingle";

    static final String WINDOW_SCOPE = "shingle-window";
    static final String SESSION_SCOPE = "shingle-session";

    /** The minimum time that one segment of a windowed store has, as in Kafka's own stores. */
    private static final long SEGMENT_MS_MIN = 60_000;

    /**
     * The maximum number of segments of a store that emits at close. A segment of it has one window
     * size, because a cache above such a store gives windows in the order of their segments.
     */
    private static final long SEGMENTS_MAX = 256;

    /** An earlier version stays beyond its retention for at most one part in this many of it. */
    private static final long VERSIONED_SEGMENTS = 8;

    private static final long VERSIONED_SEGMENT_MS_MIN = 2_000;

    private Suppliers() {}

    /** What the values of a store begin with. */
    enum Format {
        PLAIN,
        TIMESTAMPED,
        HEADERS;

        /** The format that the DSL asks for; it is null where nothing is asked for. */
        static Format of(DslStoreFormat format) {
            if (format == null) {
                return TIMESTAMPED;
            }
            return switch (format) {
                case PLAIN -> PLAIN;
                case TIMESTAMPED -> TIMESTAMPED;
                case HEADERS -> HEADERS;
            };
        }

        /** The format that a store says it has, as Kafka learns it. */
        static Format ofStore(StateStore store) {
            if (store instanceof HeadersBytesStore) {
                return HEADERS;
            }
            return store instanceof TimestampedBytesStore ? TIMESTAMPED : PLAIN;
        }
    }

    static KeyValueBytesStoreSupplier keyValue(String name, Format format) {
        Objects.requireNonNull(name, "name cannot be null");
        boolean hasHeaders = format == Format.HEADERS;
        return hasHeaders ? new KeyValueWithHeaders(name) : new KeyValue(name, format);
    }

    static WindowBytesStoreSupplier window(
            String name,
            Duration retention,
            Duration size,
            boolean retainsDuplicates,
            Format format,
            boolean isAtClose) {
        Objects.requireNonNull(name, "name cannot be null");
        long retentionMs = millis(retention, "retentionPeriod");
        long sizeMs = millis(size, "windowSize");
        if (sizeMs > retentionMs) {
            throw new IllegalArgumentException(
                    "the retention of the window store " + name + ", " + retention
                            + ", is shorter than its windows, " + size);
        }
        long segmentMs = isAtClose
                ? Math.max(Math.max(sizeMs, 1), retentionMs / SEGMENTS_MAX)
                : segmentMs(retentionMs);
        WindowShape shape =
                new WindowShape(name, retentionMs, segmentMs, sizeMs, retainsDuplicates, isAtClose);
        boolean hasHeaders = format == Format.HEADERS;
        return hasHeaders ? new WindowWithHeaders(shape) : new Window(shape, format);
    }

    static SessionBytesStoreSupplier session(
            String name, Duration retention, Format format, boolean isAtClose) {
        Objects.requireNonNull(name, "name cannot be null");
        long retentionMs = millis(retention, "retentionPeriod");
        boolean hasHeaders = format == Format.HEADERS;
        return hasHeaders
                ? new SessionWithHeaders(name, retentionMs, isAtClose)
                : new Session(name, retentionMs, isAtClose);
    }

    /** A versioned store; {@code segment} is null for the usual length. */
    static VersionedBytesStoreSupplier versioned(
            String name, Duration retention, Duration segment) {
        Objects.requireNonNull(name, "name cannot be null");
        long retentionMs = millis(retention, "historyRetention");
        long segmentMs = segment == null
                ? Math.max(retentionMs / VERSIONED_SEGMENTS, VERSIONED_SEGMENT_MS_MIN)
                : millis(segment, "segmentInterval");
        if (segmentMs < 1) {
            throw new IllegalArgumentException("segmentInterval must be a millisecond or more");
        }
        return new Versioned(name, retentionMs, segmentMs);
    }

    private static long millis(Duration duration, String name) {
        Objects.requireNonNull(duration, name + " cannot be null");
        if (duration.isNegative()) {
            throw new IllegalArgumentException(name + " cannot be negative");
        }
        try {
            return duration.toMillis();
        } catch (ArithmeticException error) {
            throw new IllegalArgumentException(name + " is too long: " + duration, error);
        }
    }

    /** The time that one segment has. */
    private static long segmentMs(long retentionMs) {
        return Math.max(retentionMs / 2, SEGMENT_MS_MIN);
    }

    /** What a window store is like. */
    record WindowShape(
            String name,
            long retentionMs,
            long segmentMs,
            long sizeMs,
            boolean retainsDuplicates,
            boolean isAtClose) {}

    private static class KeyValue implements KeyValueBytesStoreSupplier {
        private final String name;
        private final Format format;

        KeyValue(String name, Format format) {
            this.name = name;
            this.format = format;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return switch (format) {
                case PLAIN -> new KeyValueBytesStore(name);
                case TIMESTAMPED -> new KeyValueBytesStore.Timestamped(name);
                case HEADERS -> new KeyValueBytesStore.WithHeaders(name);
            };
        }

        @Override
        public String metricsScope() {
            return KEY_VALUE_SCOPE;
        }
    }

    private static final class KeyValueWithHeaders extends KeyValue
            implements HeadersBytesStoreSupplier {
        KeyValueWithHeaders(String name) {
            super(name, Format.HEADERS);
        }
    }

    private record Versioned(String name, long historyRetentionMs, long segmentMs)
            implements VersionedBytesStoreSupplier {
        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return KafkaInternals.adapted(new VersionedStore(name, historyRetentionMs, segmentMs));
        }

        @Override
        public String metricsScope() {
            return KEY_VALUE_SCOPE;
        }
    }

    private static class Window implements WindowBytesStoreSupplier {
        private final WindowShape shape;
        private final Format format;

        Window(WindowShape shape, Format format) {
            this.shape = shape;
            this.format = format;
        }

        @Override
        public String name() {
            return shape.name();
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return switch (format) {
                case PLAIN -> new WindowBytesStore(shape);
                case TIMESTAMPED -> new WindowBytesStore.Timestamped(shape);
                case HEADERS -> new WindowBytesStore.WithHeaders(shape);
            };
        }

        @Override
        public String metricsScope() {
            return WINDOW_SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return shape.segmentMs();
        }

        @Override
        public long windowSize() {
            return shape.sizeMs();
        }

        @Override
        public boolean retainDuplicates() {
            return shape.retainsDuplicates();
        }

        @Override
        public long retentionPeriod() {
            return shape.retentionMs();
        }
    }

    private static final class WindowWithHeaders extends Window
            implements HeadersBytesStoreSupplier {
        WindowWithHeaders(WindowShape shape) {
            super(shape, Format.HEADERS);
        }
    }

    private static class Session implements SessionBytesStoreSupplier {
        final String name;
        final long retentionMs;
        final boolean isAtClose;

        Session(String name, long retentionMs, boolean isAtClose) {
            this.name = name;
            this.retentionMs = retentionMs;
            this.isAtClose = isAtClose;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return new SessionBytesStore(name, retentionMs, segmentIntervalMs(), isAtClose);
        }

        @Override
        public String metricsScope() {
            return SESSION_SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return segmentMs(retentionMs);
        }

        @Override
        public long retentionPeriod() {
            return retentionMs;
        }
    }

    private static final class SessionWithHeaders extends Session
            implements HeadersBytesStoreSupplier {
        SessionWithHeaders(String name, long retentionMs, boolean isAtClose) {
            super(name, retentionMs, isAtClose);
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return new SessionBytesStore.WithHeaders(
                    name, retentionMs, segmentIntervalMs(), isAtClose);
        }
    }
}
