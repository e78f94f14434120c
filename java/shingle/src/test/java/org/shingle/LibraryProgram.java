package org.shingle;

import java.nio.file.Path;

/** A program of its own, which the tests start: it opens a database, writes and reads. */
public final class LibraryProgram {
    private LibraryProgram() {}

    /** Prints what it read. */
    public static void main(String[] arguments) {
        System.out.println(run(Path.of(arguments[0])));
    }

    /** Gives what it read. */
    public static String run(Path path) {
        try (Shingle database = Shingle.open(path)) {
            database.put(Support.bytes("a"), Support.bytes("it works"));
            return Support.text(database.get(Support.bytes("a")));
        }
    }

    /** Gives the kind of an error. */
    public static String failure(Path path) {
        try (Shingle database = Shingle.open(path)) {
            return "none: " + database.keyspace("none").name();
        } catch (ShingleException error) {
            return error.kind().toString();
        }
    }
}
