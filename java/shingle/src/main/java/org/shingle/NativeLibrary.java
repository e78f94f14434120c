package org.shingle;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Loads the native library that the jar brings.
 *
 * <p>The jar's library is copied to a folder in the temporary directory that belongs to the user
 * alone. The name of the file has the hash of its content, so different versions do not meet, and
 * processes that start at once put the same content in place. A file whose content is not that of
 * the jar is replaced.
 *
 * <p>Where that folder belongs to another, the copy goes to a folder with a new name, which is
 * deleted once the library is loaded.
 *
 * <p>The Java machine loads a file for one class loader only. A second class loader that has these
 * classes gets a copy with a name of its own, which is deleted once it is loaded. A class loader
 * can be collected when everything that its classes have opened was closed. Its library stays in
 * memory: the copy of a second class loader takes some megabytes until the process ends.
 */
final class NativeLibrary {
    /** The system property that names another file in place of the jar's. */
    static final String PROPERTY = "shingle.library";

    private static final Set<PosixFilePermission> PRIVATE =
            PosixFilePermissions.fromString("rwx------");

    /** How names of files begin that are not whole yet. */
    private static final String PART = "part-";

    /** A copy takes seconds: one of this age is not whole, and never will be. */
    private static final Duration PART_AGE = Duration.ofHours(1);

    private NativeLibrary() {}

    static void load() {
        String named = System.getProperty(PROPERTY);
        if (named != null) {
            loadFile(Path.of(named).toAbsolutePath());
            return;
        }
        try {
            Path folder = sharedFolder();
            if (folder == null) {
                loadOnce();
                return;
            }
            removeOldParts(folder, Instant.now().minus(PART_AGE));
            loadFile(extracted(folder));
        } catch (IOException error) {
            throw failed("cannot copy the native library to the temporary directory", error);
        }
    }

    /** Loads a copy in a folder with a new name, and leaves nothing behind. */
    private static void loadOnce() throws IOException {
        Path folder = Files.createTempDirectory("shingle-");
        Path copy = folder.resolve(fileName());
        try (InputStream in = ofJar()) {
            Files.copy(in, copy);
            System.load(copy.toString());
        } finally {
            Files.deleteIfExists(copy);
            Files.deleteIfExists(folder);
        }
    }

    /** Loads a file, or a copy of it where another class loader has loaded it. */
    private static void loadFile(Path file) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError error) {
            String message = String.valueOf(error.getMessage());
            if (!message.contains("already loaded in another classloader")) {
                throw error;
            }
            loadCopy(file);
        }
    }

    private static void loadCopy(Path file) {
        try {
            Path folder = Files.createTempDirectory("shingle-");
            Path copy = folder.resolve(file.getFileName());
            Files.copy(file, copy);
            try {
                System.load(copy.toString());
            } finally {
                Files.deleteIfExists(copy);
                Files.deleteIfExists(folder);
            }
        } catch (IOException error) {
            throw failed("cannot copy " + file + " for another class loader", error);
        }
    }

    /** The library in the jar. */
    private static InputStream ofJar() throws IOException {
        String name = "/META-INF/native/" + platform() + "/" + fileName();
        InputStream in = isMusl() ? null : NativeLibrary.class.getResourceAsStream(name);
        if (in != null) {
            return in;
        }
        String library = isMusl() ? "musl, and the jar's libraries need glibc 2.34" : platform();
        throw failed(
                "the jar has no library for " + library + ": build it with `cargo build"
                        + " --release -p shingle-jni`, and name it with -D" + PROPERTY + "=FILE",
                null);
    }

    /** Whether this Java machine runs on musl, as on Alpine. Such a machine has it in memory. */
    private static boolean isMusl() {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            return hasMusl(lines);
        } catch (IOException | UncheckedIOException error) {
            return false; // Then it is not Linux, or the loader gives its own error.
        }
    }

    static boolean hasMusl(Stream<String> maps) {
        return maps.anyMatch(line -> line.contains("/ld-musl-") || line.contains("/libc.musl-"));
    }

    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        if (system.startsWith("mac")) {
            system = "macos";
        } else if (system.startsWith("windows")) {
            system = "windows";
        }
        return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }

    private static String fileName() {
        return System.mapLibraryName("shingle_jni");
    }

    /** The folder that all processes of the user share; null where it belongs to another. */
    private static Path sharedFolder() throws IOException {
        Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
        Path folder = temporary.resolve("shingle-" + System.getProperty("user.name"));
        try {
            Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PRIVATE));
        } catch (FileAlreadyExistsException error) {
            if (!isPrivate(folder)) {
                return null; // Another user has taken the name: nothing in it can be trusted.
            }
        }
        return folder;
    }

    /**
     * Whether it is a folder that only this user can write to. One call gives all that is asked, of
     * one thing: otherwise a link could take its place between two questions.
     */
    static boolean isPrivate(Path folder) throws IOException {
        PosixFileAttributes found = attributes(folder);
        if (!found.isDirectory() || !found.permissions().equals(PRIVATE)) {
            return false;
        }
        Path own = Files.createTempFile("shingle-", null);
        try {
            return found.owner().equals(attributes(own).owner());
        } finally {
            Files.delete(own);
        }
    }

    private static PosixFileAttributes attributes(Path path) throws IOException {
        return Files.readAttributes(
                path, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    }

    /** Removes what processes left that ended while they copied. */
    private static void removeOldParts(Path folder, Instant before) throws IOException {
        try (DirectoryStream<Path> parts = Files.newDirectoryStream(folder, PART + "*")) {
            for (Path part : parts) {
                if (Files.getLastModifiedTime(part).toInstant().isBefore(before)) {
                    Files.deleteIfExists(part);
                }
            }
        } catch (NoSuchFileException error) {
            // Another process has removed it.
        }
    }

    /** The file with the content of the jar's library. */
    private static Path extracted(Path folder) throws IOException {
        String hash = hash(ofJar());
        Path file = folder.resolve(hash.substring(0, 16) + "-" + fileName());
        if (Files.exists(file) && hash(Files.newInputStream(file)).equals(hash)) {
            return file;
        }
        Path part = Files.createTempFile(folder, PART, null);
        try (InputStream in = ofJar()) {
            Files.copy(in, part, StandardCopyOption.REPLACE_EXISTING);
            move(part, file);
        } finally {
            Files.deleteIfExists(part);
        }
        return file;
    }

    private static void move(Path part, Path file) throws IOException {
        try {
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException error) {
            Files.move(part, file, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    private static String hash(InputStream content) throws IOException {
        try (content) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] buffer = new byte[64 << 10];
            for (int count; (count = content.read(buffer)) > 0; ) {
                digest.update(buffer, 0, count);
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException error) {
            throw new AssertionError("every Java has SHA-256", error);
        }
    }

    private static UnsatisfiedLinkError failed(String message, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError("Shingle: " + message);
        error.initCause(cause);
        return error;
    }
}
