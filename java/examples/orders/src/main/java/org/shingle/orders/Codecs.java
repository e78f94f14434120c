package org.shingle.orders;

import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Utils;

/** How the values of the topology become bytes. */
public final class Codecs {
    /** Customers, regions and numbers of orders. */
    public static final Serde<String> TEXT = Serdes.String();

    /** Orders. */
    public static final Serde<Order> ORDER = of(Order::bytes, Order::of);

    /** Payments. */
    public static final Serde<Payment> PAYMENT = of(Payment::bytes, Payment::of);

    static final Serde<Sale> SALE = of(Sale::bytes, Sale::of);
    static final Serde<Sales> SALES = of(Sales::bytes, Sales::of);
    static final Serde<Tally> TALLY = of(Tally::bytes, Tally::of);

    private Codecs() {}

    /** The partition of a key, of so many, as Kafka's default partitioner has it. */
    public static int partition(String key, int partitions) {
        byte[] bytes = TEXT.serializer().serialize(null, key);
        return Utils.toPositive(Utils.murmur2(bytes)) % partitions;
    }

    private static <T> Serde<T> of(Function<T, byte[]> write, Function<byte[], T> read) {
        return Serdes.serdeFrom(
                (topic, value) -> value == null ? null : write.apply(value),
                (topic, bytes) -> bytes == null ? null : read.apply(bytes));
    }
}
