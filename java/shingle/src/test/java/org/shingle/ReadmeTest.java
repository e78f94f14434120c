package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;

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
    void theProgramOfTheReadmeRuns() throws Exception {
        String[] parts = Files.readString(Path.of("README.md")).split("```java\n");
        assertEquals(2, parts.length, "one program");
        Path source = folder.resolve("Fruit.java");
        Files.writeString(source, parts[1].substring(0, parts[1].indexOf("```")));
        String classes = System.getProperty("java.class.path");
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        String[] options = {"-d", folder.toString(), "-cp", classes, source.toString()};
        assertEquals(0, compiler.run(null, null, null, options));
        for (int run = 0; run < 2; run++) {
            assertEquals("apple is red\npear is green\n", run(classes));
        }
    }

    private String run(String classes) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process =
                new ProcessBuilder(java.toString(), "-cp", folder + ":" + classes, "Fruit")
                        .directory(folder.toFile())
                        .redirectErrorStream(true)
                        .start();
        String text = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), text);
        return text;
    }
}
