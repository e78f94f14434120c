package org.shingle;

import static org.shingle.Support.bytes;
import static org.shingle.Support.key;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A program of its own that opens a database again and again, and prints how much memory and how
 * many files its later lives have kept. The options of its machine keep Java's own memory constant.
 */
public final class LivesProgram {
    private static final int LIVES = 500;
    private static final int FIRST_LIVES = 150;

    private LivesProgram() {}

    /** Prints the growth in KiB, and the files of the database that are still open. */
    public static void main(String[] arguments) throws IOException {
        long memory = 0;
        for (int life = 0; life < LIVES; life++) {
            live(Path.of(arguments[0]), life);
            if (life == FIRST_LIVES) {
                memory = residentKilobytes();
            }
        }
        System.out.println(residentKilobytes() - memory);
        System.out.println(openFiles(Path.of(arguments[0]).toRealPath()));
    }

    private static void live(Path path, int life) {
        try (Shingle database = Shingle.open(path, new Options().memoryBytes(4 << 20));
                Snapshot snapshot = database.snapshot();
                Keyspace keyspace = database.defaultKeyspace();
                Transaction transaction = database.begin();
                EntryIterator entries = database.iterator(ReadOptions.DEFAULT)) {
            database.put(bytes(key(life % 10)), new byte[1000]);
            transaction.put(bytes("x"), new byte[1000]);
            while (entries.hasNext()) {
                entries.next();
            }
            if (snapshot.get(bytes("none")) != null || keyspace.get(bytes("none")) != null) {
                throw new AssertionError("a key that was not written");
            }
            if (life % 2 == 0) {
                transaction.commit();
            }
        }
    }

    private static long residentKilobytes() throws IOException {
        System.gc();
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new AssertionError("no VmRSS");
    }

    /** The open files of the database. The machine opens others of its own when it likes. */
    private static List<Path> openFiles(Path database) throws IOException {
        List<Path> found = new ArrayList<>();
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Path target = Files.readSymbolicLink(file);
                if (target.startsWith(database)) {
                    found.add(target);
                }
            }
        }
        return found;
    }
}
