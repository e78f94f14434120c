package org.shingle.orders;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * An instance of the application: the topology, and a server for queries.
 *
 * <p>The argument is a file with the properties of Kafka Streams. The server listens at {@code
 * application.server}.
 */
public final class Application {
    /** A property: what the names of the topics begin with. */
    public static final String TOPIC_PREFIX = "orders.topic.prefix";

    /** A property: how many partitions each topic has. */
    public static final String PARTITIONS = "orders.partitions";

    private static final Duration CLOSE = Duration.ofSeconds(15);

    private Application() {}

    /** Runs it until the process is asked to end. */
    public static void main(String[] arguments) throws Exception {
        Child.endWithParent();
        Properties properties = new Properties();
        try (var file = Files.newInputStream(Path.of(arguments[0]))) {
            properties.load(file);
        }
        AtomicInteger failures = new AtomicInteger();
        String prefix = properties.getProperty(TOPIC_PREFIX, "");
        KafkaStreams streams = new KafkaStreams(OrdersTopology.build(prefix), properties);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            failures.incrementAndGet();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        QueryServer server = server(properties, streams, failures);
        CountDownLatch end = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            // Without a member that left, the others would wait for the session to time out.
            boolean isClosed = streams.close(CloseOptions.timeout(CLOSE)
                    .withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
            server.close();
            if (!isClosed) {
                System.err.println("the application did not close in " + CLOSE.toSeconds() + " s");
                Runtime.getRuntime().halt(1);
            }
            end.countDown();
        }, "end"));
        server.start();
        streams.start();
        end.await();
    }

    private static QueryServer server(
            Properties properties, KafkaStreams streams, AtomicInteger failures)
            throws IOException {
        String address = properties.getProperty(StreamsConfig.APPLICATION_SERVER_CONFIG);
        int port = Integer.parseInt(address.substring(address.indexOf(':') + 1));
        Path state = Path.of(properties.getProperty(StreamsConfig.STATE_DIR_CONFIG));
        int partitions = Integer.parseInt(properties.getProperty(PARTITIONS));
        Queries queries = new Queries(streams, partitions);
        return new QueryServer(port, streams, queries, state, Restores.of(streams), failures);
    }
}
