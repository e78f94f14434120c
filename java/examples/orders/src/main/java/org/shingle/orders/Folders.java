package org.shingle.orders;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** Folders that are there while a program runs, and the processes that use them. */
public final class Folders {
    private static final int TRIES = 5;

    private Folders() {}

    /** A new folder that is removed at the end. */
    public static Path temporary(String name) throws IOException {
        return removedAtEnd(Files.createTempDirectory(name));
    }

    /** At the end of this program, also by an interrupt, its processes end and the folder goes. */
    public static Path removedAtEnd(Path folder) throws IOException {
        Path absolute = Files.createDirectories(folder).toAbsolutePath();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            ProcessHandle.current().descendants().forEach(child -> {
                child.destroyForcibly();
                child.onExit().join();
            });
            delete(absolute);
        }, "clean up"));
        return absolute;
    }

    /** Removes a folder and what is in it. */
    public static void delete(Path folder) {
        for (int tries = 1; Files.exists(folder); tries++) {
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.deleteIfExists(file);
                }
            } catch (NoSuchFileException error) {
                continue; // a process that was ending has removed it
            } catch (IOException | UncheckedIOException error) {
                if (tries == TRIES) {
                    System.err.println(folder + " is left: " + error);
                    return;
                }
            }
        }
    }
}
