package org.shingle;

import java.time.Instant;
import java.util.Optional;

/**
 * A value, and when it ends.
 *
 * @param value the value
 * @param expiry the moment from which the key is missing; nothing where it stays
 */
public record ExpiringValue(byte[] value, Optional<Instant> expiry) {}
