package org.shingle.compare;

import java.util.Map;

/**
 * What a process with a store does.
 *
 * @param phase {@code fill}, {@code reopen} or {@code restore}
 * @param store its name, see {@link Contender}
 * @param folder with the store
 * @param result the file for what was measured
 * @param keys how many there are
 * @param valueBytes bytes of a value, without its time
 * @param updates how many gets and puts follow when every key is there
 * @param commitRecords from one commit to the next
 * @param memoryBytes what the store may use
 * @param more properties for the stores of Shingle
 */
public record Plan(String phase, String store, String folder, String result, long keys,
        int valueBytes, long updates, long commitRecords, long memoryBytes,
        Map<String, String> more) {}
