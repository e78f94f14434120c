package org.shingle.orders;

import java.nio.ByteBuffer;

/**
 * The orders of a region, right also when records are delivered again.
 *
 * <p>The numbers from one source only grow, so a number that is not above the highest one of its
 * source came again: whatever delivered the highest one had delivered all below it before.
 *
 * @param count the number of different orders
 * @param cents their sum
 * @param replays how many records came again
 * @param highest the highest number from each source; never changed
 */
public record Sales(long count, long cents, long replays, long[] highest) {
    /** No orders yet. */
    public static final Sales EMPTY = new Sales(0, 0, 0, new long[0]);

    /** These sales with one more. */
    public Sales add(Sale sale) {
        int sources = Math.max(highest.length, sale.source() + 1);
        long[] now = new long[sources];
        java.util.Arrays.fill(now, -1);
        System.arraycopy(highest, 0, now, 0, highest.length);
        if (sale.number() <= now[sale.source()]) {
            return new Sales(count, cents, replays + 1, highest);
        }
        now[sale.source()] = sale.number();
        return new Sales(count + 1, cents + sale.cents(), replays, now);
    }

    byte[] bytes() {
        ByteBuffer buffer = ByteBuffer.allocate(24 + 8 * highest.length);
        buffer.putLong(count).putLong(cents).putLong(replays).asLongBuffer().put(highest);
        return buffer.array();
    }

    static Sales of(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        long count = buffer.getLong();
        long cents = buffer.getLong();
        long replays = buffer.getLong();
        long[] highest = new long[buffer.remaining() / 8];
        buffer.asLongBuffer().get(highest);
        return new Sales(count, cents, replays, highest);
    }
}
