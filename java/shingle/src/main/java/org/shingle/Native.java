package org.shingle;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The functions of the native library.
 *
 * <p>Handles are numbers, which the library checks: one that was closed is an exception. The object
 * that owns a handle is an argument, so that the garbage collector leaves it alone during the call.
 * Texts are UTF-8.
 */
final class Native {
    static {
        NativeLibrary.load();
    }

    private Native() {}

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] utf8) {
        return new String(utf8, StandardCharsets.UTF_8);
    }

    static native byte[] optionsText(byte[] pairs);

    static native long createResources(long cacheBytes);

    static native long createSharedResources(
            long memoryBytes, int backgroundThreads, long backgroundBytesPerSecond);

    static native long sharedMemtableBytes(Object owner, long resources);

    static native long cacheUsedBytes(Object owner, long resources);

    static native void closeResources(long resources);

    static native long open(byte[] path, byte[] pairs, int flags, long resources);

    static native void destroy(byte[] path);

    static native void closeDatabase(long database);

    static native void flush(Object owner, long database);

    static native void beginFlush(Object owner, long database);

    static native void sync(Object owner, long database);

    static native void compact(Object owner, long database);

    static native void waitIdle(Object owner, long database);

    static native boolean waitWritable(Object owner, long database, long bytes, long millis);

    static native void checkpoint(Object owner, long database, byte[] target);

    static native void setOption(Object owner, long database, byte[] name, byte[] value);

    static native byte[] stats(Object owner, long database);

    static native byte[] property(Object owner, long database, byte[] name);

    static native byte[] check(Object owner, long database);

    static native long createKeyspace(
            Object owner,
            long database,
            byte[] name,
            byte[] mergeOperator,
            long ttlMillis,
            int prefixBytes,
            int flags);

    static native long findKeyspace(Object owner, long database, byte[] name);

    static native long defaultKeyspace(Object owner, long database);

    static native byte[] keyspaceName(Object owner, long keyspace);

    static native byte[] keyspaces(Object owner, long database);

    static native void dropKeyspace(Object owner, long database, byte[] name);

    static native void compactRange(Object owner, long keyspace, byte[] start, byte[] end);

    static native long approximateSize(Object owner, long keyspace);

    static native void closeKeyspace(long keyspace);

    static native byte[] get(Object owner, long keyspace, byte[] key);

    static native byte[] getWithExpiry(Object owner, long keyspace, byte[] key);

    static native long getDirect(
            Object owner,
            long keyspace,
            ByteBuffer key,
            int keyStart,
            int keyBytes,
            ByteBuffer value,
            int valueStart,
            int valueBytes);

    static native byte[] multiGet(Object owner, long keyspace, byte[] keys);

    static native void put(Object owner, long keyspace, byte[] key, byte[] value, int flags);

    static native void putDirect(
            Object owner,
            long keyspace,
            ByteBuffer key,
            int keyStart,
            int keyBytes,
            ByteBuffer value,
            int valueStart,
            int valueBytes,
            int flags);

    static native void putExpiring(
            Object owner, long keyspace, byte[] key, byte[] value, long expiresMillis, int flags);

    static native void delete(Object owner, long keyspace, byte[] key, int flags);

    static native void deleteRange(
            Object owner, long keyspace, byte[] start, byte[] end, int flags);

    static native void merge(Object owner, long keyspace, byte[] key, byte[] operand, int flags);

    static native void write(
            Object owner, long database, Object batch, byte[] operations, int used, int flags);

    static native long cursor(
            Object owner, long keyspace, byte[] start, byte[] end, byte[] prefix, int flags);

    static native long snapshotCursor(
            Object owner, long snapshot, byte[] start, byte[] end, byte[] prefix, int flags);

    static native int fill(
            Object owner, long cursor, int movement, byte[] key, int bytesMax, byte[] into);

    static native void chunk(Object owner, long cursor, byte[] into);

    static native void closeCursor(long cursor);

    static native long snapshot(Object owner, long database);

    static native long snapshotOf(
            Object owner, long snapshot, Object keyspaceOwner, long keyspace);

    static native byte[] snapshotGet(Object owner, long snapshot, byte[] key);

    static native byte[] snapshotMultiGet(Object owner, long snapshot, byte[] keys);

    static native void closeSnapshot(long snapshot);

    static native long begin(Object owner, long database, int flags, long lockTimeoutMillis);

    static native byte[] transactionGet(
            Object owner,
            long transaction,
            Object keyspaceOwner,
            long keyspace,
            byte[] key,
            int flags);

    static native void transactionWrite(
            Object owner,
            long transaction,
            Object keyspaceOwner,
            long keyspace,
            int operation,
            byte[] key,
            byte[] value);

    static native void transactionPutExpiring(
            Object owner,
            long transaction,
            Object keyspaceOwner,
            long keyspace,
            byte[] key,
            byte[] value,
            long expiresMillis);

    static native byte[] transactionMultiGet(
            Object owner, long transaction, Object keyspaceOwner, long keyspace, byte[] keys);

    static native long transactionScan(
            Object owner,
            long transaction,
            Object keyspaceOwner,
            long keyspace,
            byte[] start,
            byte[] end,
            byte[] prefix);

    static native void setSavepoint(Object owner, long transaction);

    static native boolean rollBack(Object owner, long transaction);

    static native void commit(Object owner, long transaction, int flags);

    static native void closeTransaction(long transaction);
}
