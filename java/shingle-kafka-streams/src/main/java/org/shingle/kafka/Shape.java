package org.shingle.kafka;

import java.nio.charset.StandardCharsets;

/**
 * What the bytes of a store's database mean. Entries of one shape cannot be read as those of
 * another, so the database has its shape beside them.
 *
 * @param segmentMs the length of the store's segments; 0: it has none
 * @param hasTimes whether the keys of entries are there by their time too
 */
record Shape(Kind kind, Suppliers.Format format, long segmentMs, boolean hasTimes) {
    /** How keys are made, and values where a store adds something to them. */
    enum Kind {
        KEY_VALUE("key-value"),
        VERSIONED("versioned"),
        WINDOW("window"),
        SESSION("session");

        private final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    /**
     * The shape in words, which the database has too. Do not change them: stores in other words are
     * stores of another shape, and would be built anew.
     */
    @Override
    public String toString() {
        String values = switch (format) {
            case PLAIN -> "plain values";
            case TIMESTAMPED -> "values with timestamps";
            case HEADERS -> "values with headers";
        };
        return "a " + kind.word + " store of " + values
                + (segmentMs == 0 ? "" : ", with segments of " + segmentMs + " ms")
                + (hasTimes ? ", emitted on window close" : "");
    }

    byte[] bytes() {
        return toString().getBytes(StandardCharsets.UTF_8);
    }
}
