package org.shingle;

import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * An error of the store. The message says what happened and where; {@link #remedy()} says what to
 * do about it.
 */
public final class ShingleException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The number of the kind. */
    private final int code;

    /** What to do. */
    private final String remedy;

    /** The file, or nothing. */
    private final String file;

    /** The byte of the file, or -1. */
    private final long offset;

    /** The native library makes it. Texts are UTF-8. */
    ShingleException(int code, byte[] message, byte[] remedy, byte[] file, long offset) {
        super(Native.text(message));
        this.code = code;
        this.remedy = Native.text(remedy);
        this.file = Native.text(file);
        this.offset = offset;
    }

    /** An error that is found before the library is asked. */
    ShingleException(ErrorKind kind, String message) {
        this(kind.code(), message.getBytes(StandardCharsets.UTF_8), new byte[0], new byte[0], -1);
    }

    /**
     * What kind of error it is.
     *
     * @return the kind; {@link ErrorKind#UNKNOWN} for one that a later version of the library has
     */
    public ErrorKind kind() {
        return ErrorKind.of(code);
    }

    /**
     * The number of the kind.
     *
     * @return the number, from 1
     */
    public int code() {
        return code;
    }

    /**
     * What to do about it.
     *
     * @return one sentence for people; it may be empty
     */
    public String remedy() {
        return remedy;
    }

    /**
     * The file that the error is about.
     *
     * @return its name in the directory of the database, where the error is about a file
     */
    public Optional<String> file() {
        return file.isEmpty() ? Optional.empty() : Optional.of(file);
    }

    /**
     * The place in the file that the error is about.
     *
     * @return bytes from the beginning of the file, where the error is about a place
     */
    public OptionalLong offset() {
        return offset < 0 ? OptionalLong.empty() : OptionalLong.of(offset);
    }

    @Override
    public String toString() {
        String rest = remedy.isEmpty() ? "" : " (" + remedy + ")";
        return getClass().getName() + ": " + kind() + ": " + getMessage() + rest;
    }
}
