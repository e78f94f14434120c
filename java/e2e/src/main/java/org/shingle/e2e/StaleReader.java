package org.shingle.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.shingle.orders.OrdersTopology;
import org.shingle.orders.Positions;

/**
 * Reads one key from its standby while the owner is gone, as an application does that prefers old
 * answers to none.
 */
final class StaleReader implements AutoCloseable {
    private static final String STORE = OrdersTopology.BY_CUSTOMER;
    private static final long PERIOD_MILLIS = 20;
    private static final long FAR = 1_000_000_000;

    private final Instance standby;
    private final String key;
    private final int customer;
    private final Load load;
    private final String bound;
    private final long countBefore;
    private final long since;
    private final Thread thread = new Thread(this::read, "stale reads");
    private Report report;
    private volatile boolean ends;

    /**
     * What was seen.
     *
     * @param answers how many times the standby answered
     * @param firstSeconds until its first answer
     * @param behind the largest number of orders that an answer lacked
     * @param wrong answers that were below the position asked for, or above what was sent
     */
    record Report(long answers, double firstSeconds, long behind, List<String> wrong) {
        static final Report NONE = new Report(0, Double.NaN, 0, List.of());
    }

    private StaleReader(
            Instance standby, String key, int customer, Load load, JsonNode before) {
        this.standby = standby;
        this.key = key;
        this.customer = customer;
        this.load = load;
        this.bound = before.get("position").asText();
        this.countBefore = before.get("count").asLong();
        this.since = System.nanoTime();
        this.report = Report.NONE;
    }

    /** What a standby has of a key now: the first argument of {@link #begin}. */
    static JsonNode state(Instance standby, String key) throws InterruptedException {
        JsonNode answers = standby.tallies(STORE, List.of(key), true, null);
        return answers == null || !answers.get(key).has("count") ? null : answers.get(key);
    }

    /** Begins to read with the position of an earlier answer as the bound. */
    static StaleReader begin(
            JsonNode before, Instance standby, String key, int customer, Load load) {
        StaleReader reader = new StaleReader(standby, key, customer, load, before);
        reader.thread.start();
        return reader;
    }

    /** Whether the standby refuses a position that it has not reached. */
    static boolean refusesFuture(Instance standby, String key, JsonNode now)
            throws InterruptedException {
        var position = Positions.of(now.get("position").asText());
        String topic = position.getTopics().iterator().next();
        int partition = position.getPartitionPositions(topic).keySet().iterator().next();
        String future = topic + "/" + partition + "=" + FAR;
        JsonNode answers = standby.tallies(STORE, List.of(key), true, future);
        return answers != null
                && answers.get(key).path("failure").asText().equals("NOT_UP_TO_BOUND");
    }

    Report end() throws InterruptedException {
        close();
        return report;
    }

    @Override
    public void close() throws InterruptedException {
        ends = true;
        thread.join();
    }

    private void read() {
        try {
            while (!ends) {
                JsonNode answers = standby.tallies(STORE, List.of(key), true, bound);
                if (answers != null && answers.get(key).has("count")) {
                    see(answers.get(key));
                }
                Thread.sleep(PERIOD_MILLIS);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void see(JsonNode answer) {
        long count = answer.get("count").asLong();
        boolean isFirst = report.answers() == 0;
        List<String> wrong = report.wrong();
        if (count < countBefore || count > load.sent(customer)) {
            wrong = new ArrayList<>(wrong);
            wrong.add(answer + " for the bound " + bound + " when it had " + countBefore + " and "
                    + load.sent(customer) + " were sent");
        }
        report = new Report(
                report.answers() + 1,
                isFirst ? (System.nanoTime() - since) / 1e9 : report.firstSeconds(),
                Math.max(report.behind(), load.acknowledged(customer) - count),
                wrong);
    }
}
