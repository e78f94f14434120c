package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the native library is found, copied and loaded. */
class LibraryTest {
    private static final String DONE = "it works\n";

    @TempDir Path folder;
    private Path temporary;

    @BeforeEach
    void makeTemporary() throws IOException {
        temporary = Files.createDirectory(folder.resolve("tmp"));
    }

    private Process start(String... options) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Xmx64m");
        command.add("-Djava.io.tmpdir=" + temporary);
        command.addAll(List.of(options));
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add("org.shingle.LibraryProgram");
        command.add(Files.createTempDirectory(folder, "db").toString());
        return new ProcessBuilder(command).redirectErrorStream(true).start();
    }

    private static String output(Process process) throws Exception {
        String text = new String(process.getInputStream().readAllBytes());
        process.waitFor();
        return text;
    }

    private List<Path> extracted() throws IOException {
        List<Path> files = new ArrayList<>();
        try (var folders = Files.list(temporary)) {
            for (Path folder : folders.filter(path -> !path.endsWith("hsperfdata_root")).toList()) {
                try (var found = Files.list(folder)) {
                    files.addAll(found.toList());
                }
            }
        }
        return files;
    }

    @Test
    void processesThatStartAtOnceShareOneFile() throws Exception {
        List<Process> processes = List.of(start(), start(), start());
        for (Process process : processes) {
            assertEquals(DONE, output(process));
        }
        assertEquals(1, extracted().size(), extracted().toString());
    }

    @Test
    void aFileThatIsNotTheLibraryIsReplaced() throws Exception {
        assertEquals(DONE, output(start()));
        Path file = extracted().get(0);
        long size = Files.size(file);
        Files.writeString(file, "not a library");
        assertEquals(DONE, output(start()));
        assertEquals(size, Files.size(file));
    }

    @Test
    void aFolderThatOthersCanWriteToIsNotUsed() throws Exception {
        Path taken = temporary.resolve("shingle-" + System.getProperty("user.name"));
        Files.createDirectory(taken);
        Files.setPosixFilePermissions(taken, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertEquals(DONE, output(start()));
        assertEquals(1, extracted().size());
        assertTrue(!extracted().get(0).startsWith(taken), extracted().toString());
    }

    @Test
    void thePropertyNamesAnotherFile() throws Exception {
        assertEquals(DONE, output(start()));
        Path named = Files.move(extracted().get(0), folder.resolve("named.so"));
        assertEquals(DONE, output(start("-Dshingle.library=" + named)));
        assertEquals(List.of(), extracted());
        String text = output(start("-Dshingle.library=" + folder.resolve("none.so")));
        assertTrue(text.contains("none.so"), text);
    }

    @Test
    void eachClassLoaderHasALibraryOfItsOwn() throws Exception {
        assertEquals("it works", LibraryProgram.run(folder.resolve("first")));
        List<URL> urls = new ArrayList<>();
        for (String part : System.getProperty("java.class.path").split(":")) {
            urls.add(Path.of(part).toUri().toURL());
        }
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        for (String name : List.of("second", "third")) {
            try (URLClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), platform)) {
                Class<?> program = loader.loadClass("org.shingle.LibraryProgram");
                assertNotSame(LibraryProgram.class, program);
                Object text = program.getMethod("run", Path.class).invoke(null, folder.resolve(name));
                assertEquals("it works", text);
            }
        }
    }
}
