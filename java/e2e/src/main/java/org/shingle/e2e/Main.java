package org.shingle.e2e;

import java.time.Duration;
import java.util.Locale;
import org.shingle.orders.Cluster;

/**
 * Kafka Streams end to end: three brokers and three instances of the example, which are killed
 * while orders come, and at the end every count is compared. README.md has the options.
 */
public final class Main {
    private static final int BROKERS = 3;

    private Main() {}

    /** Runs it. The status is 0 when everything was right. */
    public static void main(String[] arguments) {
        boolean isRight = false;
        try {
            isRight = run(Settings.of(arguments));
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage());
        } catch (Exception error) {
            error.printStackTrace();
        }
        System.exit(isRight ? 0 : 1);
    }

    private static boolean run(Settings settings) throws Exception {
        endAfter(settings.limit());
        Outcome outcome = new Outcome(settings);
        long began = System.nanoTime();
        try (Cluster cluster = Cluster.start(settings.folder(), BROKERS)) {
            System.err.printf("%d brokers after %.1f s%n", BROKERS, seconds(began));
            for (String guarantee : settings.guarantees()) {
                new Scenario(settings, cluster, guarantee, outcome).run();
            }
        } catch (Exception error) {
            outcome.problem(error.toString());
            outcome.finish();
            throw error;
        }
        outcome.note(String.format(Locale.ROOT, "the run took %.0f s", seconds(began)));
        return outcome.finish();
    }

    /** Ends the process, and with it all others, when a step hangs. */
    private static void endAfter(Duration limit) {
        Thread watch = new Thread(() -> {
            try {
                Thread.sleep(limit.toMillis());
                System.err.println("the run was ended after " + limit.toSeconds() + " s");
                System.exit(1);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }, "limit");
        watch.setDaemon(true);
        watch.start();
    }

    private static double seconds(long since) {
        return (System.nanoTime() - since) / 1e9;
    }
}
