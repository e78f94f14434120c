package org.shingle.orders;

import java.nio.ByteBuffer;

/**
 * An order of a customer. The customer is the key of its record.
 *
 * @param number the number among all orders; in a partition it only grows
 * @param sequence the number among the orders of its customer, without gaps
 * @param cents what the order costs
 */
public record Order(long number, long sequence, long cents) {
    /** As the value of a record. */
    public byte[] bytes() {
        return ByteBuffer.allocate(24).putLong(number).putLong(sequence).putLong(cents).array();
    }

    /** From the value of a record. */
    public static Order of(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Order(buffer.getLong(), buffer.getLong(), buffer.getLong());
    }
}
