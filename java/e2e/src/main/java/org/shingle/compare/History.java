package org.shingle.compare;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * The puts of the phase {@code fill}, in their order: every key once with version 0, and then
 * random keys with the versions 1, 2 and so on. So the number of puts says what the store holds.
 */
final class History {
    /** The version of a key that was not put yet. */
    static final int ABSENT = -1;

    private static final int SEED = 11;

    private final Plan plan;

    History(Plan plan) {
        this.plan = plan;
    }

    /** The keys of the updates, one after the other. */
    static SplittableRandom keys() {
        return new SplittableRandom(SEED);
    }

    /** The version of each key after some puts. */
    int[] versions(long puts) {
        int[] versions = new int[Math.toIntExact(plan.keys())];
        Arrays.fill(versions, ABSENT);
        Arrays.fill(versions, 0, Math.toIntExact(Math.min(puts, plan.keys())), 0);
        SplittableRandom keys = keys();
        for (int update = 1; plan.keys() + update <= puts; update++) {
            versions[Math.toIntExact(keys.nextLong(plan.keys()))] = update;
        }
        return versions;
    }

    /** How many puts there were when the last one of these versions was made. */
    long puts(int[] found) {
        long puts = 0;
        for (int key = 0; key < found.length; key++) {
            if (found[key] == 0) {
                puts = Math.max(puts, key + 1L);
            } else if (found[key] > 0) {
                puts = Math.max(puts, plan.keys() + found[key]);
            }
        }
        return puts;
    }

    /**
     * The offset of the last commit, which follows its put at once; 0 where there was none. There is
     * one at the end of the updates too, and puts go on behind it.
     */
    long lastCommit(long puts) {
        long regular = puts / plan.commitRecords() * plan.commitRecords();
        long end = plan.keys() + plan.updates();
        return puts >= end ? Math.max(end, regular) : regular;
    }

    /**
     * Checks what a killed store has. Both stores keep a prefix of their writes: the puts up to one
     * of them, and the offset of the last commit before.
     *
     * @param found the version of each key
     * @param offset what the store says, or null
     * @param least the offset that must have survived
     */
    void check(int[] found, Long offset, long least) {
        long puts = puts(found);
        int[] expected = versions(puts);
        int key = Arrays.mismatch(found, expected);
        if (key >= 0) {
            throw new AssertionError("key " + key + " has version " + found[key] + " instead of "
                    + expected[key] + ", but a later put, number " + puts
                    + ", is there: an update is lost");
        }
        long has = offset == null ? 0 : offset;
        if (has > puts) {
            throw new AssertionError("the store says that it has offset " + has
                    + ", but it has only " + puts + " puts");
        }
        // The commit that follows the last put may not have survived.
        if (has < lastCommit(puts - 1)) {
            throw new AssertionError("the store says that it has offset " + offset
                    + ", but the commit at " + lastCommit(puts - 1) + " came before put " + puts);
        }
        if (has < least) {
            throw new AssertionError("the store says that it has offset " + offset
                    + ", but its commit at " + least + " is durable");
        }
        if (has != 0 && has != lastCommit(has)) {
            throw new AssertionError("there was no commit at offset " + has);
        }
    }
}
