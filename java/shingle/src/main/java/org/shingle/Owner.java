package org.shingle;

import java.lang.ref.Cleaner;
import java.util.function.LongConsumer;

/**
 * Owns a handle of the native library, and frees it once: when it is closed, or some time after the
 * garbage collector has found that nothing refers to it.
 */
abstract class Owner implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    /** The handle. It stays after the close, and the library refuses it then. */
    final long handle;

    private final Cleaner.Cleanable cleanable;

    Owner(long handle, LongConsumer free) {
        this.handle = handle;
        this.cleanable = CLEANER.register(this, new Free(handle, free));
    }

    /** What is left to do when the owner is gone; so it must not know the owner. */
    private record Free(long handle, LongConsumer free) implements Runnable {
        @Override
        public void run() {
            free.accept(handle);
        }
    }

    /** Closes it. A second call does nothing. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
