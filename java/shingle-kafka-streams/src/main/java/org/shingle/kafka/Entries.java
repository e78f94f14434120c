package org.shingle.kafka;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueIterator;

/** Entries of a database in the order of their keys, or in reverse. */
interface Entries extends KeyValueIterator<Bytes, byte[]> {
    /** Passes the next entry by, without a copy of its value where that is possible. */
    void skip();
}
