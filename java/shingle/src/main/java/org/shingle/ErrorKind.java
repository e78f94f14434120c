package org.shingle;

/** What kind of error a {@link ShingleException} is: what the caller can do depends on it. */
public enum ErrorKind {
    /** The call is wrong: an unknown option, a bound that is out of order. */
    INVALID_ARGUMENT(1),
    /** What was asked for does not exist. A missing key is no error. */
    NOT_FOUND(2),
    /** What was to be created exists. */
    ALREADY_EXISTS(3),
    /** Stored bytes are not what was written. */
    CORRUPTION(4),
    /** The operating system or the device refused. */
    IO(5),
    /** The medium is full. */
    NO_SPACE(6),
    /** An earlier failure left an unknown outcome: close the database and open it again. */
    POISONED(7),
    /** The write would have to wait, and its options say that it does not. */
    WOULD_WAIT(8),
    /** Another process, or this one, has the database open. */
    LOCKED(9),
    /** The files are foreign, or of a newer version. */
    INCOMPATIBLE(10),
    /** The thing was closed. */
    CLOSED(11),
    /** This store or configuration cannot do it. */
    UNSUPPORTED(12),
    /** The work was cancelled. */
    CANCELLED(13),
    /** The file has names in other directories. */
    SHARED(14),
    /** Another write came between: begin the transaction again. */
    CONFLICT(15),
    /** What was asked for is no longer kept. */
    TOO_LATE(16),
    /** A bug in Shingle: report it with its message. */
    PANIC(65535),
    /** A kind that this version does not know; {@link ShingleException#code()} has its number. */
    UNKNOWN(0);

    private final int code;

    ErrorKind(int code) {
        this.code = code;
    }

    /**
     * The number of this kind, the same in every language and version.
     *
     * @return the number; 0 for {@link #UNKNOWN}
     */
    public int code() {
        return code;
    }

    /**
     * The kind with a number.
     *
     * @param code the number
     * @return the kind, or {@link #UNKNOWN}
     */
    public static ErrorKind of(int code) {
        for (ErrorKind kind : values()) {
            if (kind.code == code) {
                return kind;
            }
        }
        return UNKNOWN;
    }
}
