package org.shingle.kafka;

import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Gives the operators of an application stores of Shingle, where the application names no other
 * store for an operator. The property {@code dsl.store.suppliers.class} names this class.
 */
public final class ShingleDslStoreSuppliers implements DslStoreSuppliers {
    /** Kafka makes it. */
    public ShingleDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return Suppliers.keyValue(params.name(), Suppliers.Format.of(params.dslStoreFormat()));
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return Suppliers.window(
                params.name(),
                params.retentionPeriod(),
                params.windowSize(),
                params.retainDuplicates(),
                Suppliers.Format.of(params.dslStoreFormat()),
                isAtClose(params.emitStrategy()));
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return Suppliers.session(
                params.name(),
                params.retentionPeriod(),
                Suppliers.Format.of(params.storeFormat()),
                isAtClose(params.emitStrategy()));
    }

    private static boolean isAtClose(EmitStrategy strategy) {
        return strategy.type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
    }
}
