package org.shingle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
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

    private List<Path> folders() throws IOException {
        try (var folders = Files.list(temporary)) {
            return folders.filter(path -> !path.toString().contains("hsperfdata_")).toList();
        }
    }

    private List<Path> extracted() throws IOException {
        List<Path> files = new ArrayList<>();
        for (Path folder : folders()) {
            try (var found = Files.list(folder)) {
                files.addAll(found.toList());
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
        assertEquals(List.of(taken), folders(), "the copy elsewhere is deleted");
        assertEquals(List.of(), extracted());
    }

    @Test
    void aLinkOrAFileIsNoPrivateFolder() throws Exception {
        Path real = Files.createDirectory(
                folder.resolve("real"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        assertTrue(NativeLibrary.isPrivate(real));
        Path link = Files.createSymbolicLink(folder.resolve("link"), real);
        assertFalse(NativeLibrary.isPrivate(link));
        Path file = Files.createFile(folder.resolve("file"));
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
        assertFalse(NativeLibrary.isPrivate(file));
        Files.setPosixFilePermissions(real, PosixFilePermissions.fromString("rwxr-x---"));
        assertFalse(NativeLibrary.isPrivate(real));
    }

    @Test
    void oldPartsAreRemoved() throws Exception {
        assertEquals(DONE, output(start()));
        Path shared = extracted().get(0).getParent();
        Path old = Files.writeString(shared.resolve("part-old"), "left");
        Files.setLastModifiedTime(old, FileTime.from(Instant.now().minus(Duration.ofHours(2))));
        Path young = Files.writeString(shared.resolve("part-young"), "being copied");
        assertEquals(DONE, output(start()));
        assertFalse(Files.exists(old));
        assertTrue(Files.exists(young));
        assertEquals(2, extracted().size());
    }

    @Test
    void anotherPlatformIsNamed() throws Exception {
        String text = output(start("-Dos.arch=sparc"));
        assertTrue(text.contains("the jar has no library for linux-sparc"), text);
        assertTrue(text.contains("shingle.library"), text);
    }

    @Test
    void muslIsFound() {
        String glibc = "7f0 r-xp 00000000 08:01 1 /usr/lib/x86_64-linux-gnu/libc.so.6";
        String musl = "7f0 r-xp 00000000 08:01 1 /lib/ld-musl-x86_64.so.1";
        assertFalse(NativeLibrary.hasMusl(Stream.of(glibc)));
        assertTrue(NativeLibrary.hasMusl(Stream.of(glibc, musl)));
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
        for (String name : List.of("second", "third")) {
            try (URLClassLoader loader = loader()) {
                Class<?> program = loader.loadClass("org.shingle.LibraryProgram");
                assertNotSame(LibraryProgram.class, program);
                Path path = folder.resolve(name);
                Object text = program.getMethod("run", Path.class).invoke(null, path);
                assertEquals("it works", text);
            }
        }
    }

    /** Its library stays in memory, so this also finds whether that does harm. */
    @Test
    void aClassLoaderWhoseDatabasesAreClosedIsCollected() throws Exception {
        WeakReference<ClassLoader> loader = usedLoader();
        for (int attempt = 0; loader.get() != null; attempt++) {
            assertTrue(attempt < 1000, "the class loader is still there");
            System.gc();
            Thread.sleep(10);
        }
        WeakReference<ClassLoader> other = usedLoader();
        assertTrue(loader.get() == null && other != null);
        assertEquals("it works", LibraryProgram.run(folder.resolve("own")));
    }

    /** A class loader that has these classes once more. */
    private static URLClassLoader loader() throws IOException {
        List<URL> urls = new ArrayList<>();
        for (String part : System.getProperty("java.class.path").split(":")) {
            urls.add(Path.of(part).toUri().toURL());
        }
        return new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    private WeakReference<ClassLoader> usedLoader() throws Exception {
        try (URLClassLoader loader = loader()) {
            Class<?> program = loader.loadClass("org.shingle.LibraryProgram");
            Path path = folder.resolve("collected");
            assertEquals("it works", program.getMethod("run", Path.class).invoke(null, path));
            assertEquals("NOT_FOUND", program.getMethod("failure", Path.class).invoke(null, path));
            return new WeakReference<>(loader);
        }
    }
}
