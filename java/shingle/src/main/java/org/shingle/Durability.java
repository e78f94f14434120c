package org.shingle;

/** What a write is safe from when the call returns. */
public enum Durability {
    /**
     * The death of the process. A power loss may take the newest writes, never older ones first.
     */
    BUFFERED("buffered", 1),
    /** The death of the process and power loss. */
    SYNCED("synced", 2);

    /** The name that configuration files have. */
    final String text;

    /** The flag of a write. */
    final int flag;

    Durability(String text, int flag) {
        this.text = text;
        this.flag = flag;
    }
}
