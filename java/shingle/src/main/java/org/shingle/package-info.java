/**
 * Shingle, an embedded, ordered key-value store, for Java.
 *
 * <p>{@link org.shingle.Shingle#open} opens a database. A {@link org.shingle.Shingle} and its
 * {@link org.shingle.Keyspace}s read and write; a {@link org.shingle.WriteBatch} writes several
 * things together; a {@link org.shingle.Snapshot} reads the state of one moment; a
 * {@link org.shingle.Cursor} and an {@link org.shingle.EntryIterator} go through keys in order.
 *
 * <p>Keys and values are bytes. Keys are ordered byte by byte, and bytes count from 0 to 255: the
 * order of {@link java.util.Arrays#compareUnsigned(byte[], byte[])}. Arrays that a method takes are
 * copied before it returns, and arrays that it gives belong to the caller.
 *
 * <p>The jar's library needs Linux with glibc 2.34 or later, on the processor that the jar was
 * built for: x86-64 or aarch64.
 *
 * <p>Errors are {@link org.shingle.ShingleException}s, which say what kind of error it is and what
 * to do about it. A null argument is a {@link java.lang.NullPointerException}.
 *
 * <p>What must be closed is {@link java.lang.AutoCloseable}. A thing that is used after it was
 * closed throws a {@link org.shingle.ShingleException} with the kind
 * {@link org.shingle.ErrorKind#CLOSED}. A second close does nothing. A thing that the program
 * forgets is closed some time after the garbage collector has found it; a forgotten database is
 * also named in the log of the {@link java.lang.System.Logger} {@code org.shingle}.
 */
package org.shingle;
