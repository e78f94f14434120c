package org.shingle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.function.Executable;

/** What the tests share. */
final class Support {
    private Support() {}

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    static String key(int number) {
        return String.format("key%06d", number);
    }

    static ShingleException fails(ErrorKind kind, Executable call) {
        ShingleException error = assertThrows(ShingleException.class, call);
        assertEquals(kind, error.kind(), error.toString());
        return error;
    }

    static void holds(Shingle database, String key, String value) {
        assertArrayEquals(value == null ? null : bytes(value), database.get(bytes(key)));
    }

    static List<String> keys(Iterator<Entry> entries) {
        List<String> keys = new ArrayList<>();
        entries.forEachRemaining(entry -> keys.add(text(entry.key())));
        return keys;
    }
}
