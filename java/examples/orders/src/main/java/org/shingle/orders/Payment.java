package org.shingle.orders;

import java.nio.ByteBuffer;

/**
 * The payment of an order. The customer is the key of its record.
 *
 * @param order the number of the order
 * @param sequence the number among the payments of the customer, without gaps
 * @param cents what was paid
 */
public record Payment(long order, long sequence, long cents) {
    /** As the value of a record. */
    public byte[] bytes() {
        return ByteBuffer.allocate(24).putLong(order).putLong(sequence).putLong(cents).array();
    }

    /** From the value of a record. */
    public static Payment of(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        return new Payment(buffer.getLong(), buffer.getLong(), buffer.getLong());
    }
}
