package org.shingle.compare;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.shingle.orders.Arguments;
import org.shingle.orders.Child;
import org.shingle.orders.Folders;

/**
 * Compares stores of Kafka Streams: the same work with each, in alternating order, each phase in a
 * process of its own. README.md has the options and says what the numbers mean.
 */
public final class Compare {
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
    private static final List<String> JAVA =
            List.of("-Xms512m", "-Xmx512m", "-XX:MaxDirectMemorySize=64m");

    private final Map<String, String> options;
    private final Map<String, String> more;
    private final Path folder;
    private final List<Map<String, Object>> runs = new ArrayList<>();

    private Compare(Map<String, String> options, Map<String, String> more, Path folder) {
        this.options = options;
        this.more = more;
        this.folder = folder;
    }

    /** Runs it. */
    public static void main(String[] arguments) throws Exception {
        try {
            of(arguments).run();
        } catch (IllegalArgumentException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }

    private static Compare of(String[] arguments) throws IOException {
        Arguments read = Arguments.of(arguments, Map.of(
                "--stores", "rocksdb,rocksdb-bounded,shingle-leveled,shingle-ldc,shingle-hashed",
                "--state-bytes", "1000000000",
                "--value-bytes", "100",
                "--rounds", "3",
                "--commit-records", "500000",
                "--memory-bytes", "100000000",
                "--updates", "",
                "--folder", "",
                "--out", ""));
        String given = read.options().get("--folder");
        Path folder = given.isEmpty()
                ? Folders.temporary("shingle-compare") : Folders.removedAtEnd(Path.of(given));
        return new Compare(read.options(), read.properties(), folder);
    }

    private void run() throws Exception {
        List<String> stores = List.of(options.get("--stores").split(","));
        for (int round = 0; round < number("--rounds"); round++) {
            for (int turn = 0; turn < stores.size(); turn++) {
                String store = stores.get((round + turn) % stores.size());
                Map<String, Object> run = run(store);
                run.put("round", round + 1);
                runs.add(run);
                System.err.printf("round %d: %s done%n", round + 1, store);
                write();
            }
        }
        System.out.print(new Table(runs, keys(), updates(), entryBytes()).text());
    }

    private Map<String, Object> run(String store) throws Exception {
        Map<String, Object> run = new LinkedHashMap<>();
        run.put("store", store);
        Path state = Files.createDirectories(folder.resolve("state"));
        phase("fill", store, state, true).forEach((name, value) -> run.put(name, value));
        run.put("space-bytes", Kernel.spaceBytes(state));
        phase("reopen", store, state, false).forEach(
                (name, value) -> run.put("reopen-" + name, value));
        Folders.delete(state);
        Files.createDirectories(state);
        phase("restore", store, state, false).forEach(run::putIfAbsent);
        Folders.delete(state);
        return run;
    }

    private Map<String, Object> phase(String phase, String store, Path state, boolean isKilled)
            throws Exception {
        Path result = folder.resolve("result.json");
        Files.deleteIfExists(result);
        Plan plan = new Plan(phase, store, state.toString(), result.toString(), keys(),
                Math.toIntExact(number("--value-bytes")), updates(), number("--commit-records"),
                number("--memory-bytes"), more);
        Path file = folder.resolve("plan.json");
        JSON.writeValue(file.toFile(), plan);
        Path log = folder.resolve("store.log");
        Files.deleteIfExists(log);
        Child child = Child.start("store", StoreProcess.class, JAVA, folder,
                List.of(file.toString()));
        while (!Files.exists(result)) {
            if (!child.isAlive() && !Files.exists(result)) {
                throw new IOException(phase + " of " + store + " failed:\n"
                        + Files.readString(log));
            }
            Thread.sleep(50);
        }
        if (isKilled) {
            child.kill();
        } else {
            child.awaitEnd();
        }
        return JSON.readValue(result.toFile(), new TypeReference<>() {});
    }

    private void write() throws IOException {
        String out = options.get("--out");
        if (!out.isEmpty()) {
            Map<String, Object> all = new LinkedHashMap<>(options);
            all.put("set", more);
            all.put("runs", runs);
            Files.createDirectories(Path.of(out));
            JSON.writeValue(Path.of(out, "compare.json").toFile(), all);
            Files.writeString(Path.of(out, "compare.md"),
                    new Table(runs, keys(), updates(), entryBytes()).text());
        }
    }

    private long keys() {
        return number("--state-bytes") / entryBytes();
    }

    private long updates() {
        return options.get("--updates").isEmpty() ? keys() : number("--updates");
    }

    private long entryBytes() {
        return Work.entryBytes(Math.toIntExact(number("--value-bytes")));
    }

    private long number(String option) {
        String text = options.get(option).replace("_", "").toLowerCase(Locale.ROOT);
        return Long.parseLong(text);
    }
}
