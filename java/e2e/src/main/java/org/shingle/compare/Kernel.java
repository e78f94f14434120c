package org.shingle.compare;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** What Linux counts for this process. */
final class Kernel {
    private Kernel() {}

    /**
     * Bytes that this process has caused to be written to the device. Pages of files that were
     * deleted before they were written do not count.
     */
    static long writtenBytes() throws IOException {
        return field("/proc/self/io", "write_bytes")
                - field("/proc/self/io", "cancelled_write_bytes");
    }

    /** The memory of the process in bytes. */
    static long memoryBytes() throws IOException {
        return 1024 * field("/proc/self/status", "VmRSS");
    }

    /** The largest memory of the process so far, in bytes. */
    static long mostMemoryBytes() throws IOException {
        return 1024 * field("/proc/self/status", "VmHWM");
    }

    /** The space that a folder takes, in bytes: of blocks, not of lengths. */
    static long spaceBytes(Path folder) throws IOException {
        Process du = new ProcessBuilder("du", "--summarize", "--block-size=1", folder.toString())
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String text = new String(du.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return Long.parseLong(text.substring(0, text.indexOf('\t')));
    }

    private static long field(String file, String name) throws IOException {
        for (String line : Files.readAllLines(Path.of(file))) {
            if (line.startsWith(name + ":")) {
                return Long.parseLong(line.replaceAll("[^0-9-]", ""));
            }
        }
        throw new NoSuchFileException(file + " has no " + name);
    }
}
