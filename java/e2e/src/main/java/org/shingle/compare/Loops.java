package org.shingle.compare;

import java.nio.ByteBuffer;
import org.HdrHistogram.Histogram;

/**
 * Loops that use no store and last as long as a put: what such a loop takes longer at times, the
 * machine takes from every call of this length.
 *
 * <p>One loop asks for the time and does nothing else. The other one also counts up words at random
 * places of a block of memory, because a put uses memory too: where the memory of a machine is
 * slow at times, the first loop does not show it.
 */
final class Loops {
    private static final int UPDATES_PER_LOOP = 16;
    private static final int UPDATES_PER_LENGTH = 16 * 1024;

    final Histogram ofTime = new Histogram(3);
    final Histogram ofMemory = new Histogram(3);

    private final ByteBuffer block;
    private long nanos;
    private long random = 88_172_645_463_325_252L;
    private long word;
    private long takenNanos;

    /**
     * @param blockBytes the size of the block of memory, a multiple of 8
     * @param nanos how long a loop lasts at first
     */
    Loops(int blockBytes, long nanos) {
        this.block = ByteBuffer.allocateDirect(blockBytes);
        this.nanos = nanos;
        for (int at = 0; at < blockBytes; at += Long.BYTES) {
            block.putLong(at, at);
        }
    }

    /** Loops after some of the updates, as long as the median of these puts. */
    void afterUpdate(long update, Histogram puts) {
        if (update % UPDATES_PER_LENGTH == 0) {
            nanos = puts.getValueAtPercentile(50);
        }
        if (update % UPDATES_PER_LOOP == 0) {
            takenNanos += askTime();
        }
        if (update % UPDATES_PER_LOOP == UPDATES_PER_LOOP / 2) {
            takenNanos += useMemory();
        }
    }

    /** What all loops took. */
    double seconds() {
        return takenNanos / 1e9;
    }

    private long askTime() {
        long began = System.nanoTime();
        long passed;
        do {
            passed = System.nanoTime() - began;
        } while (passed < nanos);
        ofTime.recordValue(passed);
        return passed;
    }

    private long useMemory() {
        long began = System.nanoTime();
        long passed;
        do {
            random ^= random << 13;
            random ^= random >>> 7;
            random ^= random << 17;
            // The place depends on the last word, as in a search through a list.
            long number = Long.remainderUnsigned(random + word, block.capacity() / Long.BYTES);
            int at = (int) number * Long.BYTES;
            word = block.getLong(at) + 1;
            block.putLong(at, word);
            passed = System.nanoTime() - began;
        } while (passed < nanos);
        ofMemory.recordValue(passed);
        return passed;
    }
}
