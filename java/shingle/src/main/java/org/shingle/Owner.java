package org.shingle;

import java.lang.System.Logger.Level;
import java.lang.ref.Cleaner;
import java.util.Locale;
import java.util.function.LongConsumer;

/**
 * Owns a handle of the native library, and frees it once: when it is closed, or some time after the
 * garbage collector has found that nothing refers to it.
 *
 * <p>A closed owner gives its handle to no call, so a call does not depend on what the library does
 * with the number later. A close that comes between is found by the library.
 */
abstract class Owner implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final Free free;
    private final Cleaner.Cleanable cleanable;
    private volatile boolean isClosed;

    Owner(long handle, LongConsumer free) {
        this(handle, new Free(handle, free));
    }

    Owner(long handle, Free free) {
        this.handle = handle;
        this.free = free;
        this.cleanable = CLEANER.register(this, free::forgotten);
    }

    /** The handle, for a call. */
    final long handle() {
        if (isClosed) {
            throw closedError();
        }
        return handle;
    }

    /** Whether it was closed. */
    final boolean isClosed() {
        return isClosed;
    }

    /** What a use after the close throws. */
    final ShingleException closedError() {
        return new ShingleException(ErrorKind.CLOSED, "the " + kindName() + " was closed");
    }

    /** What it is, for messages. */
    String kindName() {
        return getClass().getSimpleName().toLowerCase(Locale.ROOT);
    }

    /**
     * Closes the owner for a call that frees the handle itself. One caller gets the handle.
     *
     * @throws ShingleException {@link ErrorKind#CLOSED}: it was closed
     */
    final long release() {
        isClosed = true;
        long released = free.disarm();
        cleanable.clean();
        if (released == 0) {
            throw closedError();
        }
        return released;
    }

    /** Closes it. A second call does nothing, and returns when the first one is done. */
    @Override
    public void close() {
        isClosed = true;
        try {
            free.run();
        } finally {
            cleanable.clean();
        }
    }

    /** What is left to do when the owner is gone; so it must not know the owner. */
    static class Free {
        private final LongConsumer free;

        /** Zero, which is no handle, after it was freed or given away. */
        private long handle;

        Free(long handle, LongConsumer free) {
            this.handle = handle;
            this.free = free;
        }

        /** Frees the handle. The lock makes a second caller wait until that is done. */
        final synchronized void run() {
            long freed = disarm();
            if (freed != 0) {
                free.accept(freed);
            }
        }

        final synchronized long disarm() {
            long armed = handle;
            handle = 0;
            return armed;
        }

        final synchronized boolean isArmed() {
            return handle != 0;
        }

        /**
         * The program forgot the owner. It runs on the collector's thread, which all forgotten
         * things share, so it must be short.
         */
        void forgotten() {
            runLogged();
        }

        /** There is no caller to throw an error at. */
        final void runLogged() {
            try {
                run();
            } catch (RuntimeException | Error error) {
                log(Level.ERROR, "a thing that the program did not close failed to close", error);
            }
        }

        static void log(Level level, String message, Throwable error) {
            System.getLogger("org.shingle").log(level, message, error);
        }
    }
}
