package org.shingle;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The numbers of a JSON text, by their paths. The text is that of the native library, so a text
 * that is not JSON is a bug.
 */
final class JsonNumbers {
    private final Map<String, Double> numbers = new LinkedHashMap<>();
    private final String text;
    private int at;

    private JsonNumbers(String text) {
        this.text = text;
    }

    static Map<String, Double> of(String text) {
        JsonNumbers reader = new JsonNumbers(text);
        reader.value("");
        return reader.numbers;
    }

    private void value(String path) {
        switch (peek()) {
            case '{' -> object(path);
            case '[' -> array(path);
            case '"' -> string();
            default -> word(path);
        }
    }

    private void object(String path) {
        at++;
        while (peek() != '}') {
            String name = string();
            expect(':');
            value(path.isEmpty() ? name : path + "." + name);
            skipComma();
        }
        at++;
    }

    private void array(String path) {
        at++;
        for (int index = 0; peek() != ']'; index++) {
            value(path + "[" + index + "]");
            skipComma();
        }
        at++;
    }

    /** A number, or a word that is none: true, false, null. */
    private void word(String path) {
        int start = at;
        while (at < text.length() && ",]}".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at).strip();
        if (!word.equals("true") && !word.equals("false") && !word.equals("null")) {
            numbers.put(path, Double.valueOf(word));
        }
    }

    /** A string; escapes stay as they are, since names have none. */
    private String string() {
        expect('"');
        int start = at;
        while (text.charAt(at) != '"') {
            at += text.charAt(at) == '\\' ? 2 : 1;
        }
        return text.substring(start, at++);
    }

    private char peek() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at);
    }

    private void skipComma() {
        if (peek() == ',') {
            at++;
        }
    }

    private void expect(char character) {
        if (peek() != character) {
            throw new IllegalStateException("no " + character + " at " + at + " of " + text);
        }
        at++;
    }
}
