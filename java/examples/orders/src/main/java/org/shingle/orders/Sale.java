package org.shingle.orders;

import java.nio.ByteBuffer;

/**
 * An order with what its region has to know.
 *
 * @param source the partition of the topic of orders
 * @param number the number of the order; from one source the numbers only grow
 * @param cents what the order costs
 */
public record Sale(int source, long number, long cents) {
    /** As the value of a record. */
    public byte[] bytes() {
        return ByteBuffer.allocate(20).putInt(source).putLong(number).putLong(cents).array();
    }

    /** From the value of a record. */
    public static Sale of(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Sale(buffer.getInt(), buffer.getLong(), buffer.getLong());
    }
}
