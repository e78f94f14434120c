package org.shingle.kafka;

import java.nio.charset.StandardCharsets;

/** A database has entries of another shape than the store that opens it. */
final class OtherShapeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    OtherShapeException(byte[] stored, Shape shape) {
        super("its entries are those of " + new String(stored, StandardCharsets.UTF_8)
                + ", and the application opens it as " + shape);
    }
}
