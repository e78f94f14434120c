package org.shingle;

import java.time.Duration;
import java.time.Instant;

/** Times as the native library takes them: milliseconds. What is too large is the largest time. */
final class Times {
    private static final int NANOS_PER_MILLI = 1_000_000;

    private Times() {}

    /** Milliseconds of a time, rounded up, so that only zero is zero. Null is zero. */
    static long millisUp(Duration time, String what) {
        if (time == null) {
            return 0;
        }
        if (time.isNegative()) {
            throw new ShingleException(
                    ErrorKind.INVALID_ARGUMENT,
                    what + " of " + time + ": it must not be below zero");
        }
        long millis = millis(time);
        boolean isWhole = time.getNano() % NANOS_PER_MILLI == 0 || millis == Long.MAX_VALUE;
        return isWhole ? millis : millis + 1;
    }

    /** Whole milliseconds of a time. */
    static long millis(Duration time) {
        try {
            return time.toMillis();
        } catch (ArithmeticException error) {
            return time.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }

    /** Milliseconds since 1970. */
    static long epochMillis(Instant moment) {
        try {
            return moment.toEpochMilli();
        } catch (ArithmeticException error) {
            return moment.isBefore(Instant.EPOCH) ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }
}
