package org.shingle.orders;

import java.nio.ByteBuffer;
import java.util.BitSet;

/**
 * A count and a sum of numbered records that stay right when records are delivered again.
 *
 * <p>With the guarantee at-least-once, Kafka Streams may process a record twice after a failure. A
 * tally remembers which sequence numbers it has: all from {@code first} up to {@code next}, and
 * those in {@code later}, counted from {@code next}. A record that it has changes {@code replays}
 * alone. Records arrive nearly in order, so {@code later} is small.
 *
 * @param first the lowest sequence number
 * @param next the lowest one after {@code first} that is missing
 * @param cents the sum
 * @param replays how many records came again
 * @param later the sequence numbers above {@code next}; never changed
 */
public record Tally(long first, long next, long cents, long replays, BitSet later) {
    /** A tally without records. */
    public static final Tally EMPTY = new Tally(0, 0, 0, 0, new BitSet());

    /** The number of different records. */
    public long count() {
        return next - first + later.cardinality();
    }

    /** This tally with one more record. */
    public Tally add(long sequence, long amount) {
        if (next == first) {
            return new Tally(sequence, sequence + 1, cents + amount, replays, new BitSet());
        }
        if (has(sequence)) {
            return new Tally(first, next, cents, replays + 1, later);
        }
        Tally tally = sequence < first ? startingAt(sequence) : with(sequence);
        return new Tally(tally.first, tally.next, cents + amount, replays, tally.later);
    }

    /** The records of two tallies that have none in common. */
    public Tally and(Tally other) {
        if (next == first || other.next == other.first) {
            return next == first ? other : this;
        }
        Tally all = this;
        for (long sequence = other.first; sequence < other.next; sequence++) {
            all = all.add(sequence, 0);
        }
        for (int bit = other.later.nextSetBit(0); bit >= 0; bit = other.later.nextSetBit(bit + 1)) {
            all = all.add(other.next + bit, 0);
        }
        long replayed = all.replays + other.replays;
        return new Tally(all.first, all.next, all.cents + other.cents, replayed, all.later);
    }

    private boolean has(long sequence) {
        return sequence >= first
                && (sequence < next || later.get(Math.toIntExact(sequence - next)));
    }

    private Tally with(long sequence) {
        BitSet bits = (BitSet) later.clone();
        bits.set(Math.toIntExact(sequence - next));
        int filled = bits.nextClearBit(0);
        return new Tally(first, next + filled, cents, replays, bits.get(filled, bits.length()));
    }

    private Tally startingAt(long sequence) {
        BitSet bits = new BitSet();
        bits.set(Math.toIntExact(first - sequence - 1), Math.toIntExact(next - sequence - 1));
        int shift = Math.toIntExact(next - sequence - 1);
        later.stream().forEach(bit -> bits.set(bit + shift));
        int filled = bits.nextClearBit(0);
        BitSet above = bits.get(filled, bits.length());
        return new Tally(sequence, sequence + 1 + filled, cents, replays, above);
    }

    byte[] bytes() {
        byte[] bits = later.toByteArray();
        return ByteBuffer.allocate(32 + bits.length)
                .putLong(first).putLong(next).putLong(cents).putLong(replays).put(bits).array();
    }

    static Tally of(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Tally(buffer.getLong(), buffer.getLong(), buffer.getLong(), buffer.getLong(),
                BitSet.valueOf(buffer));
    }
}
