package org.shingle.e2e;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** What a run has shown: a table of steps, a table of counts, and what was wrong. */
final class Outcome {
    private final Settings settings;
    private final List<Step> steps = new ArrayList<>();
    private final List<Total> totals = new ArrayList<>();
    private final List<String> problems = new ArrayList<>();
    private final List<String> notes = new ArrayList<>();

    /**
     * One step.
     *
     * @param guarantee of Kafka Streams
     * @param what was done
     * @param seconds until every partition gave a correct answer again
     * @param kept the part of the state that a restart still had, or null
     * @param stale what a standby answered meanwhile, or null
     */
    record Step(String guarantee, String what, double seconds, Restart kept,
            StaleReader.Report stale) {}

    /**
     * What a restarted instance had.
     *
     * @param kept records of changelogs that were in its stores
     * @param all records of those changelogs
     */
    record Restart(long kept, long all) {}

    /**
     * The comparison of a store at the end.
     *
     * @param guarantee of Kafka Streams
     * @param when {@code running} or {@code reopened}
     * @param store its name
     * @param entries how many entries were there and were compared
     * @param wrong entries with another count or sum, or that should not be there
     * @param missing entries that are not there
     * @param excused entries that are not there because their retention has ended
     * @param expired entries whose retention has ended, also those that are still there
     * @param replays records that came again and were not counted
     * @param examples some of what is wrong or missing
     */
    record Total(String guarantee, String when, String store, long entries, long wrong,
            long missing, long excused, long expired, long replays, List<String> examples) {
        /** What is wrong, or nothing. */
        List<String> problems() {
            List<String> all = new ArrayList<>();
            if (wrong + missing > 0) {
                all.add(wrong + " wrong and " + missing + " missing entries: " + examples);
            }
            if (!Expectation.expires(store) && expired > 0) {
                all.add(expired + " expired entries: its retention is shorter than the run, so "
                        + "that not everything was compared");
            }
            if (Expectation.expires(store) && excused == 0) {
                all.add("all of its " + expired + " expired entries");
            }
            return all;
        }
    }

    Outcome(Settings settings) {
        this.settings = settings;
    }

    void add(Step step) {
        steps.add(step);
        System.err.printf(Locale.ROOT, "%s: %s: %.1f s%n", step.guarantee(), step.what(),
                step.seconds());
    }

    void add(Total total) {
        totals.add(total);
        System.err.println(total);
    }

    /** Something that must not be: the run fails. */
    void problem(String text) {
        problems.add(text);
        System.err.println("PROBLEM: " + text);
    }

    void note(String text) {
        notes.add(text);
        System.err.println(text);
    }

    /** Checks the totals, writes the tables, and tells whether all is right. */
    boolean finish() throws IOException {
        for (Total total : totals) {
            for (String wrong : total.problems()) {
                problem(total.guarantee() + ": " + total.when() + ": " + total.store() + " has "
                        + wrong);
            }
        }
        String text = text();
        System.out.print(text);
        if (settings.out() != null) {
            Files.createDirectories(settings.out());
            Files.writeString(settings.out().resolve("outcome.md"), text);
            Map<String, Object> all = new LinkedHashMap<>();
            all.put("store", settings.store());
            all.put("protocol", settings.protocol());
            all.put("steps", steps);
            all.put("totals", totals);
            all.put("notes", notes);
            all.put("problems", problems);
            new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
                    .writeValue(settings.out().resolve("outcome.json").toFile(), all);
        }
        if (!problems.isEmpty()) {
            keepLogs();
        }
        return problems.isEmpty() && !totals.isEmpty();
    }

    /** The folder of the run goes, so the logs of a failure are copied. */
    private void keepLogs() throws IOException {
        Path logs = settings.out() == null
                ? Files.createTempDirectory("shingle-e2e-logs")
                : Files.createDirectories(settings.out().resolve("logs"));
        try (var files = Files.newDirectoryStream(settings.folder(), "*.log")) {
            for (Path file : files) {
                Files.copy(file, logs.resolve(file.getFileName()),
                        StandardCopyOption.REPLACE_EXISTING);
            }
        }
        System.err.println("the logs of all processes are in " + logs);
    }

    private String text() {
        StringBuilder text = new StringBuilder();
        line(text, "Store: %s. Group protocol: %s. %d orders per second.%n%n", settings.store(),
                settings.protocol(), settings.rate());
        text.append("| guarantee | step | s to correct answers | state kept | stale reads |\n");
        text.append("|---|---|---|---|---|\n");
        for (Step step : steps) {
            line(text, "| %s | %s | %.1f | %s | %s |%n", step.guarantee(), step.what(),
                    step.seconds(), kept(step.kept()), stale(step.stale()));
        }
        text.append("\n| guarantee | when | store | entries | wrong | missing | excused | expired "
                + "| records replayed |\n");
        text.append("|---|---|---|---|---|---|---|---|---|\n");
        for (Total total : totals) {
            line(text, "| %s | %s | %s | %,d | %d | %d | %d | %d | %,d |%n",
                    total.guarantee(), total.when(), total.store(), total.entries(),
                    total.wrong(), total.missing(), total.excused(), total.expired(),
                    total.replays());
        }
        text.append('\n');
        notes.forEach(note -> text.append("- ").append(note).append('\n'));
        problems.forEach(problem -> text.append("- PROBLEM: ").append(problem).append('\n'));
        return text.toString();
    }

    private static String kept(Restart restart) {
        if (restart == null) {
            return "";
        }
        return String.format(Locale.ROOT, "%,d of %,d", restart.kept(), restart.all());
    }

    private static String stale(StaleReader.Report report) {
        if (report == null) {
            return "";
        }
        return String.format(Locale.ROOT, "%d, first after %.2f s, at most %d orders behind",
                report.answers(), report.firstSeconds(), report.behind());
    }

    private static void line(StringBuilder text, String format, Object... values) {
        text.append(String.format(Locale.ROOT, format, values));
    }
}
