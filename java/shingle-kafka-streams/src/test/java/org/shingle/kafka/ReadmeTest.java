package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program of README.md compiles, and does what the readme says. */
class ReadmeTest {
    @TempDir Path folder;

    @Test
    void theProgramOfTheReadmeCountsInAStoreOfShingle() throws Exception {
        String[] parts = Files.readString(Path.of("README.md")).split("```java\n");
        assertEquals(2, parts.length, "one program");
        Path source = folder.resolve("Counts.java");
        Files.writeString(source, parts[1].substring(0, parts[1].indexOf("```")));
        String classes = System.getProperty("java.class.path");
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        String[] options = {"-d", folder.toString(), "-cp", classes, source.toString()};
        assertEquals(0, compiler.run(null, null, null, options));
        assertEquals("0 apple 1\npear 1\napple 2\n", run(classes, "-Dnothing=at all"));
        // The driver deletes its state, but without the library nothing is counted.
        assertTrue(run(classes, "-Dshingle.library=/none").startsWith("1"));
    }

    private String run(String classes, String option) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process =
                new ProcessBuilder(
                        java.toString(), option, "-cp", folder + ":" + classes, "Counts",
                        folder.resolve("state").toString())
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        String text = new String(process.getInputStream().readAllBytes());
        return process.waitFor() + " " + text;
    }
}
