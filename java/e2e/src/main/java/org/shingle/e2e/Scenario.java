package org.shingle.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.streams.StreamsConfig;
import org.shingle.orders.Cluster;
import org.shingle.orders.OrdersTopology;

/** All steps with one guarantee, while orders keep coming. */
final class Scenario {
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    private static final int INSTANCES = 3;
    private static final long SEED = 20_260;

    /** When stores are compared: as the instances have run, and after a restart of all. */
    private static final String RUNNING = "running";
    private static final String REOPENED = "reopened";

    /** The end of a transaction takes an offset of a changelog and is no record. */
    private static final int MARKERS = 5;

    private final Settings settings;
    private final Cluster cluster;
    private final String guarantee;
    private final Outcome outcome;
    private Group group;
    private Load load;
    private Probe probe;

    Scenario(Settings settings, Cluster cluster, String guarantee, Outcome outcome) {
        this.settings = settings;
        this.cluster = cluster;
        this.guarantee = guarantee;
        this.outcome = outcome;
    }

    void run() throws Exception {
        String prefix = Settings.prefix(guarantee);
        cluster.createTopics(settings.partitions(),
                prefix + OrdersTopology.ORDERS, prefix + OrdersTopology.PAYMENTS,
                prefix + OrdersTopology.CUSTOMERS, prefix + OrdersTopology.RECEIPTS);
        String bootstrap = cluster.addresses();
        try (Group instances = new Group(settings, bootstrap, guarantee, settings.folder());
                Load orders = new Load(bootstrap, settings, SEED, prefix)) {
            group = instances;
            load = orders;
            long began = System.nanoTime();
            for (int n = 0; n < INSTANCES; n++) {
                group.add();
            }
            load.start();
            group.awaitReady();
            try (Probe reads = new Probe(group.instances(), load, group.keys())) {
                probe = reads;
                Map<String, Double> seconds = probe.await(began, probe.oneMore(), PATIENCE);
                step("start of three instances", slowest(seconds), null, null);
                steps();
            }
            Expectation expectation = load.finish();
            outcome.note(String.format(Locale.ROOT, "%s: %,d records, %,d of them orders",
                    guarantee, load.records(), load.orders()));
            Verdict.compare(outcome, guarantee, RUNNING, group, expectation);
            reopen();
            Verdict.compare(outcome, guarantee, REOPENED, group, expectation);
            if (guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2)) {
                Verdict.outputs(outcome, bootstrap, prefix + OrdersTopology.RECEIPTS, load);
            }
        }
    }

    private void steps() throws Exception {
        killOwner();
        killBroker();
        killTwo();
        if (!settings.isShort() || guarantee.equals(settings.guarantees().get(0))) {
            scaleOutAndIn();
        }
        outcome.note(guarantee + ": active tasks gave " + probe.answers() + " answers, "
                + probe.wrong().size() + " of them wrong");
        probe.wrong().forEach(outcome::problem);
    }

    private void killOwner() throws Exception {
        settle();
        String key = probe.keys().get(0);
        JsonNode owner = group.owner(key);
        Instance victim = group.at(owner.get("active").asText());
        Instance standby = group.at(owner.get("standbys").get(0).asText());
        JsonNode before = StaleReader.state(standby, key);
        if (before == null) {
            throw new IllegalStateException(standby.name() + " is no standby of " + key);
        }
        if (!StaleReader.refusesFuture(standby, key, before)) {
            outcome.problem("a standby answered for a position that it has not reached");
        }
        long killed = System.nanoTime();
        victim.kill();
        int customer = Integer.parseInt(key.substring(key.lastIndexOf('-') + 1));
        StaleReader reader = StaleReader.begin(before, standby, key, customer, load);
        Map<String, Double> seconds = probe.await(killed, probe.oneMore(), PATIENCE);
        StaleReader.Report stale = reader.end();
        step("kill -9 of the owner", slowest(seconds), null, stale);
        if (stale.answers() == 0 || !stale.wrong().isEmpty()) {
            outcome.problem(guarantee + ": stale reads: " + stale);
        }
        restart(List.of(victim), "restart of the owner with its state");
    }

    private void killBroker() throws Exception {
        settle();
        int node;
        try (Admin admin = cluster.admin()) {
            node = admin.describeMetadataQuorum().quorumInfo().get().leaderId();
        }
        long killed = System.nanoTime();
        cluster.killNode(node);
        Map<String, Double> seconds = probe.await(killed, probe.oneMore(), PATIENCE);
        step("kill -9 of the broker that leads the controllers", slowest(seconds), null, null);
        cluster.startNode(node);
        cluster.awaitNodes();
    }

    private void killTwo() throws Exception {
        settle();
        List<Instance> victims = group.instances().subList(0, 2);
        long killed = System.nanoTime();
        for (Instance victim : victims) {
            victim.kill();
        }
        Map<String, Double> seconds = probe.await(killed, probe.oneMore(), PATIENCE);
        step("kill -9 of two of three instances", slowest(seconds), null, null);
        restart(victims, "restart of both with their state");
    }

    private void scaleOutAndIn() throws Exception {
        settle();
        probe.longestSilence();
        long began = System.nanoTime();
        Instance fourth = group.add();
        probe.watch(fourth);
        awaitActive(fourth);
        double seconds = (System.nanoTime() - began) / 1e9;
        probe.await(System.nanoTime(), probe.oneMore(), PATIENCE);
        step("a fourth instance, until it has an active task", seconds, null, null);
        silence("the fourth instance came");
        settle();
        probe.longestSilence();
        began = System.nanoTime();
        fourth.close();
        Map<String, Double> answers = probe.await(began, probe.oneMore(), PATIENCE);
        step("the fourth instance leaves", slowest(answers), null, null);
        silence("it left");
    }

    private void silence(String when) {
        outcome.note(String.format(Locale.ROOT,
                "%s: while %s, the longest time without an answer of a partition was %.1f s",
                guarantee, when, probe.longestSilence()));
    }

    private void awaitActive(Instance instance) throws InterruptedException {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (System.nanoTime() < end) {
            JsonNode status = instance.ask("/status");
            if (status != null && status.get("state").asText().equals("RUNNING")) {
                for (JsonNode task : status.get("tasks")) {
                    if (task.get("active").asBoolean()) {
                        return;
                    }
                }
            }
            Thread.sleep(100);
        }
        throw new IllegalStateException(instance.name() + " got no active task");
    }

    /**
     * Lets all instances end and starts them again, so that no cache has an entry. What a store had
     * at a clean end must still be there.
     */
    private void reopen() throws Exception {
        Map<Instance, Set<String>> had = group.stop();
        for (Instance instance : had.keySet()) {
            if (instance.hasShingle() != settings.store().equals("shingle")) {
                outcome.problem(instance.name() + " does not have the stores that were asked for");
            }
        }
        long began = System.nanoTime();
        group.reopen(had.keySet());
        double seconds = (System.nanoTime() - began) / 1e9;
        long kept = 0;
        long all = 0;
        int opened = 0;
        int built = 0;
        for (Instance instance : had.keySet()) {
            JsonNode restores = restores(instance);
            for (Map.Entry<String, JsonNode> restore : restores.properties()) {
                String changelog = restore.getKey();
                JsonNode span = restore.getValue();
                String store = span.get("store").asText() + "/"
                        + changelog.substring(changelog.lastIndexOf('-') + 1);
                if (!had.get(instance).contains(store)) {
                    built++; // the group gave it a task that it did not have
                    continue;
                }
                opened++;
                kept += Math.min(span.get("from").asLong(), span.get("to").asLong());
                all += span.get("to").asLong();
            }
        }
        step("restart of all after a clean end", seconds, new Outcome.Restart(kept, all), null);
        outcome.note(guarantee + ": after the clean end " + opened
                + " stores went on with their state, " + built + " were built anew elsewhere");
        if (all - kept > (long) MARKERS * opened) {
            outcome.problem(guarantee + ": after a clean end stores had " + kept + " of " + all
                    + " records of their changelogs");
        }
        if (opened <= built) {
            outcome.problem(guarantee + ": after a clean end most stores were built anew");
        }
    }

    private static JsonNode restores(Instance instance) throws InterruptedException {
        JsonNode status = instance.ask("/status");
        if (status == null) {
            throw new IllegalStateException(instance.name() + " does not tell its restores");
        }
        return status.get("restores");
    }

    private void restart(List<Instance> instances, String what) throws Exception {
        long began = System.nanoTime();
        for (Instance instance : instances) {
            instance.restart();
        }
        group.awaitReady();
        double seconds = (System.nanoTime() - began) / 1e9;
        long kept = 0;
        long all = 0;
        for (Instance instance : instances) {
            for (JsonNode span : restores(instance)) {
                kept += Math.min(span.get("from").asLong(), span.get("to").asLong());
                all += span.get("to").asLong();
            }
        }
        step(what, seconds, new Outcome.Restart(kept, all), null);
    }

    /** Waits until every task has a standby again, and some orders have come. */
    private void settle() throws InterruptedException {
        group.awaitReady();
        Thread.sleep(settings.pause().toMillis());
        group.awaitReady();
    }

    private void step(String what, double seconds, Outcome.Restart kept, StaleReader.Report stale) {
        outcome.add(new Outcome.Step(guarantee, what, seconds, kept, stale));
    }

    private static double slowest(Map<String, Double> seconds) {
        return Collections.max(new ArrayList<>(seconds.values()));
    }
}
