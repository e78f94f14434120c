package org.shingle.orders;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A process of Java that ends with the process that started it.
 *
 * <p>The child reads its standard input, which nobody writes to: the input ends when the parent
 * does, however that ends, and then the child halts.
 */
public final class Child implements AutoCloseable {
    private static final long PATIENCE_SECONDS = 20;

    /** The status of a Java machine that SIGTERM has ended. */
    private static final int TERMINATED = 128 + 15;

    private final String name;
    private final Process process;
    private final OutputStream lifeline;

    private Child(String name, Process process) {
        this.name = name;
        this.process = process;
        this.lifeline = process.getOutputStream();
    }

    /**
     * Starts a class of this program's class path.
     *
     * @param name names the file with what the child prints
     * @param main the class
     * @param options of the Java machine
     * @param folder where the file goes
     * @param arguments of the program
     */
    public static Child start(
            String name, Class<?> main, List<String> options, Path folder, List<String> arguments)
            throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-XX:+UseSerialGC", "-Djava.io.tmpdir=" + folder,
                "-XX:+ExitOnOutOfMemoryError"));
        String library = System.getProperty("shingle.library");
        if (library != null) {
            command.add("-Dshingle.library=" + library);
        }
        command.addAll(options);
        command.add(main.getName());
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("CLASSPATH", System.getProperty("java.class.path"));
        File log = folder.resolve(name + ".log").toFile();
        builder.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log));
        return new Child(name, builder.start());
    }

    /** What a child calls first: the process halts when its parent has ended. */
    public static void endWithParent() {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException error) {
                System.err.println("the parent cannot be watched: " + error);
            }
            Runtime.getRuntime().halt(1);
        }, "parent");
        watch.setDaemon(true);
        watch.start();
    }

    /** Ends the process with SIGKILL: it has no time to do anything. */
    public void kill() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor();
    }

    /** Asks the process to end, and kills it when it takes too long. */
    @Override
    public void close() {
        // Not `process.destroy`: that closes the pipe too, and the process would halt at once.
        process.toHandle().destroy();
        try {
            if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                kill();
            }
            lifeline.close();
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        } catch (IOException error) {
            // The pipe to a process that has ended: nothing is left to close.
        }
    }

    /** Whether it ended because it was asked to, after all that it does then. */
    public boolean hasEndedCleanly() {
        return !process.isAlive() && process.exitValue() == TERMINATED;
    }

    /** Waits until it ends by itself. */
    public void awaitEnd() throws InterruptedException {
        process.waitFor();
    }

    /** Whether it runs. */
    public boolean isAlive() {
        return process.isAlive();
    }

    /** The number of the process. */
    public long pid() {
        return process.pid();
    }

    @Override
    public String toString() {
        return name + " (process " + process.pid() + ")";
    }
}
