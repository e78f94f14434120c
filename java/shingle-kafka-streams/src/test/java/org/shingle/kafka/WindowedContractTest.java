package org.shingle.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.shingle.kafka.Task.all;
import static org.shingle.kafka.Task.bytes;
import static org.shingle.kafka.Task.text;
import static org.shingle.kafka.Task.value;

import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What every window store and every session store does. */
class WindowedContractTest {
    private static final Duration RETENTION = Duration.ofMinutes(3);
    private static final long SEGMENT = 90_000;

    @TempDir Path folder;
    private int folders;

    private static Windowed<Bytes> session(String key, long start, long end) {
        return new Windowed<>(bytes(key), new SessionWindow(start, end));
    }

    @ParameterizedTest
    @EnumSource
    void windowsAreReadByKeyAndTime(Backend backend) {
        WindowStore<Bytes, byte[]> store =
                backend.task(folder).open(backend.window(RETENTION, false));
        store.put(bytes("b"), value("b1"), 10_000);
        store.put(bytes("a"), value("a0"), 0);
        store.put(bytes("a"), value("a1"), 10_000);
        store.put(bytes("a"), value("a9"), 90_000);
        store.put(bytes("ab"), value("ab1"), 10_000);
        assertEquals("a1", text(store.fetch(bytes("a"), 10_000)));
        assertNull(store.fetch(bytes("a"), 20_000));
        assertEquals(
                List.of("0=a0", "10000=a1", "90000=a9"),
                all(store.fetch(bytes("a"), 0, Long.MAX_VALUE)));
        assertEquals(
                List.of("10000=a1", "0=a0"), all(store.backwardFetch(bytes("a"), 0, 10_000)));
        assertEquals(List.of(), all(store.fetch(bytes("a"), 10_001, 89_999)));
        String a1 = "[a@10000/20000]=a1";
        assertEquals(
                List.of(a1, "[ab@10000/20000]=ab1"),
                all(store.fetch(bytes("a"), bytes("ab"), 10_000, 20_000)));
        assertEquals(
                List.of("[b@10000/20000]=b1", "[ab@10000/20000]=ab1", a1),
                all(store.backwardFetch(null, null, 1, 20_000)));
        assertEquals(List.of(), all(store.fetch(bytes("b"), bytes("a"), 0, 20_000)));
        assertEquals(5, all(store.all()).size());
        assertEquals(all(store.all()), all(store.fetchAll(0, 90_000)));
        List<String> backward = all(store.backwardAll());
        Collections.reverse(backward);
        assertEquals(all(store.all()), backward);
        store.put(bytes("a"), null, 10_000);
        assertNull(store.fetch(bytes("a"), 10_000));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void duplicatesStayApart(Backend backend) {
        WindowStore<Bytes, byte[]> store =
                backend.task(folder).open(backend.window(RETENTION, true));
        store.put(bytes("a"), value("1"), 10);
        store.put(bytes("a"), value("2"), 10);
        store.put(bytes("a"), null, 10);
        store.put(bytes("a"), value("3"), 5);
        assertEquals(List.of("5=3", "10=1", "10=2"), all(store.fetch(bytes("a"), 0, 100)));
        store.close();
    }

    @ParameterizedTest
    @EnumSource
    void windowsEndWithTheirRetention(Backend backend) {
        Task task = backend.task(folder);
        WindowStore<Bytes, byte[]> store = task.open(backend.window(RETENTION, false));
        for (long time = 0; time <= 600_000; time += 10_000) {
            store.put(bytes("k"), value("v" + time), time);
            long shown = Math.max(0, time - RETENTION.toMillis() + 1);
            List<String> all = all(store.fetch(bytes("k"), 0, Long.MAX_VALUE));
            assertEquals(time / 10_000 - (shown + 9_999) / 10_000 + 1, all.size());
            assertEquals(all.size(), all(store.all()).size());
        }
        assertNull(store.fetch(bytes("k"), 420_000));
        assertEquals("v430000", text(store.fetch(bytes("k"), 430_000)));
        store.put(bytes("k"), value("late"), 300_000);
        assertNull(store.fetch(bytes("k"), 300_000), "its segment has ended");
        task.commit(store, 1L);
        store.close();
        WindowStore<Bytes, byte[]> opened = task.open(backend.window(RETENTION, false));
        // The time of the store begins anew, and the segments that were alive still are.
        List<String> found = all(opened.all());
        assertEquals("[k@360000/370000]=v360000", found.get(0));
        assertEquals(25, found.size());
        assertEquals(1, opened.committedOffset(Task.CHANGELOG));
        opened.close();
    }

    /** Three hours of windows of which each is kept for three minutes. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void spaceComesBackWhenWindowsEnd(boolean isAtClose) throws Exception {
        Backend backend = Backend.SHINGLE;
        Task task = backend.task(folder, "shingle.commit.interval.ms", 0);
        WindowStore<Bytes, byte[]> store = task.open(
                isAtClose ? backend.windowAtClose(RETENTION) : backend.window(RETENTION, false));
        Random random = new Random(5);
        byte[] value = new byte[10_000];
        for (long time = 0; time < 10_800_000; time += 10_000) {
            random.nextBytes(value);
            store.put(bytes("k"), value.clone(), time);
            if (time % 1_000_000 == 0) {
                task.commit(store, time);
            }
        }
        task.commit(store, 10_800_000L);
        // What is alive is less than 400 KB of 10.8 MB. Compactions go on for a while.
        long space = space();
        for (int look = 0; look < 300 && space > 3_000_000; look++) {
            Thread.sleep(100);
            space = space();
        }
        assertTrue(space <= 3_000_000, space + " bytes are left");
        assertEquals(isAtClose ? 19 : 18, all(store.all()).size());
        store.close();
    }

    /** Bytes of all files below the folder; many where one ended meanwhile. */
    private long space() throws Exception {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.mapToLong(file -> file.toFile().length()).sum();
        } catch (UncheckedIOException error) {
            return Long.MAX_VALUE;
        }
    }

    @ParameterizedTest
    @EnumSource
    void windowsAreRestoredAndQueried(Backend backend) {
        // A window that is emitted at its close is shown when its retention has just ended.
        restoredAndQueried(backend, backend.window(RETENTION, false), 18);
        restoredAndQueried(backend, backend.windowAtClose(RETENTION), 19);
    }

    private void restoredAndQueried(
            Backend backend, WindowStore<Bytes, byte[]> made, int windows) {
        Task task = backend.task(folder.resolve("" + folders++));
        WindowStore<Bytes, byte[]> store = task.open(made);
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (long time = 0; time <= 600_000; time += 10_000) {
            byte[] key = java.nio.ByteBuffer.allocate(13)
                    .put((byte) 'k').putLong(time).putInt(0).array();
            records.add(Task.changelog(key, value("v" + time), time, null));
        }
        Collections.shuffle(records, new Random(1));
        task.restore(records);
        assertEquals(windows, all(store.all()).size());
        assertEquals(List.of(), all(store.fetchAll(-10, -2)));
        if (backend.knowsQueries()) {
            queried(store);
        }
        assertEquals(windows, all(store.all()).size());
        store.close();
    }

    private static void queried(WindowStore<Bytes, byte[]> store) {
        PositionBound bound = PositionBound.unbounded();
        QueryConfig config = new QueryConfig(false);
        Instant from = Instant.ofEpochMilli(580_000);
        Instant to = Instant.ofEpochMilli(590_000);
        // Kafka 4.3.1 exchanges the times of this query; the store above exchanges them again.
        var byKey = store.query(
                WindowKeyQuery.<Bytes, byte[]>withKeyAndWindowStartRange(bytes("k"), to, from),
                bound,
                config);
        assertEquals(List.of("580000=v580000", "590000=v590000"), all(byKey.getResult()));
        var byTime = store.query(
                WindowRangeQuery.<Bytes, byte[]>withWindowStartRange(from, to), bound, config);
        assertEquals(2, all(byTime.getResult()).size());
    }

    @ParameterizedTest
    @EnumSource
    void sessionsAreFoundWhereTheyOverlap(Backend backend) {
        SessionStore<Bytes, byte[]> store = backend.task(folder).open(backend.session(RETENTION));
        store.put(session("a", 0, 10), value("1"));
        store.put(session("a", 20, 30), value("2"));
        store.put(session("a", 50, 100_000), value("3"));
        store.put(session("b", 5, 25), value("4"));
        store.put(session("aa", 5, 25), value("5"));
        assertEquals("2", text(store.fetchSession(bytes("a"), 20, 30)));
        assertNull(store.fetchSession(bytes("a"), 20, 31));
        assertEquals(
                List.of("[a@20/30]=2", "[a@50/100000]=3"),
                all(store.findSessions(bytes("a"), 11, 60)));
        assertEquals(
                List.of("[a@20/30]=2", "[a@0/10]=1"),
                all(store.backwardFindSessions(bytes("a"), 10, 49)));
        assertEquals(List.of(), all(store.findSessions(bytes("a"), 11, 19)));
        assertEquals(3, all(store.fetch(bytes("a"))).size());
        assertEquals(4, all(store.fetch(bytes("a"), bytes("aa"))).size());
        assertEquals(
                List.of("[b@5/25]=4", "[aa@5/25]=5"),
                all(store.backwardFindSessions(bytes("aa"), null, 0, 40)));
        List<String> backward = all(store.backwardFetch(null, null));
        Collections.reverse(backward);
        assertEquals(all(store.fetch(null, null)), backward);
        store.remove(session("a", 20, 30));
        store.put(session("b", 5, 25), null);
        assertNull(store.fetchSession(bytes("a"), 20, 30));
        assertNull(store.fetchSession(bytes("b"), 5, 25));
        if (backend.knowsQueries()) {
            var query = store.query(
                    WindowRangeQuery.<Bytes, byte[]>withKey(bytes("aa")),
                    PositionBound.unbounded(),
                    new QueryConfig(false));
            assertEquals(List.of("[aa@5/25]=5"), all(query.getResult()));
        }
        store.close();
    }

    /** The stores get the same random calls, and give the same answers in the same order. */
    @Test
    void windowStoresAgreeOnRandomCalls() {
        agreeOnRandomCalls(backend -> backend.window(RETENTION, false), false);
        agreeOnRandomCalls(backend -> backend.window(RETENTION, true), false);
    }

    /** Their segments have other lengths, so entries of several keys are in another order. */
    @Test
    void windowStoresThatAreReadAtTheirCloseAgreeOnRandomCalls() {
        agreeOnRandomCalls(backend -> backend.windowAtClose(RETENTION), true);
    }

    private void agreeOnRandomCalls(
            Function<Backend, WindowStore<Bytes, byte[]>> made, boolean isAtClose) {
        for (int seed = 0; seed < 8; seed++) {
            Random random = new Random(seed);
            Path parent = folder.resolve("" + folders++);
            List<Task> tasks = new ArrayList<>();
            List<WindowStore<Bytes, byte[]>> stores = new ArrayList<>();
            for (Backend backend : Backend.values()) {
                tasks.add(backend.task(parent.resolve("" + backend)));
                stores.add(tasks.get(stores.size()).open(made.apply(backend)));
            }
            long now = 0;
            for (int call = 0; call < 400; call++) {
                now += random.nextInt(3_000);
                Bytes key = randomKey(random);
                Bytes other = randomKey(random);
                long from = random.nextInt(8) == 0 ? 0 : Math.max(0, now - random.nextInt(250_000));
                long to = random.nextInt(8) == 0 ? Long.MAX_VALUE : from + random.nextInt(150_000);
                int kind = random.nextInt(16);
                byte[] value = random.nextInt(6) == 0 ? null : value("v" + call);
                List<Object> answers = new ArrayList<>();
                for (WindowStore<Bytes, byte[]> store : stores) {
                    if (kind < 8) {
                        store.put(key, value, from);
                    }
                    answers.add(switch (kind) {
                        case 8 -> text(store.fetch(key, from));
                        case 9 -> all(store.fetch(key, from, to));
                        case 10 -> all(store.backwardFetch(key, from, to));
                        case 11 -> ofKeys(store.fetch(key, other, from, to), isAtClose);
                        case 12 -> ofKeys(store.backwardFetch(key, null, from, to), isAtClose);
                        case 13 -> all(store.fetchAll(from, to));
                        case 14 -> all(store.backwardAll());
                        case 15 -> all(store.all());
                        default -> "";
                    });
                }
                for (int at = 0; at < stores.size(); at++) {
                    String message = Backend.values()[at] + ", seed " + seed + " call " + call;
                    assertEquals(answers.get(0), answers.get(at), message);
                    if (call % 70 == 69) {
                        tasks.get(at).commit(stores.get(at), (long) call);
                    }
                }
            }
            List<Object> reopened = new ArrayList<>();
            for (int at = 0; at < stores.size(); at++) {
                WindowStore<Bytes, byte[]> store = stores.get(at);
                tasks.get(at).commit(store, 400L);
                store.close();
                tasks.get(at).open(store);
                store.put(bytes("last"), value("last"), now); // the time of the store is known
                reopened.add(all(store.all()));
                assertEquals(reopened.get(0), reopened.get(at), Backend.values()[at] + "");
                store.close();
            }
        }
    }

    private static List<String> ofKeys(
            KeyValueIterator<Windowed<Bytes>, byte[]> found, boolean isSorted) {
        List<String> entries = all(found);
        if (isSorted) {
            Collections.sort(entries);
        }
        return entries;
    }

    @Test
    void sessionStoresAgreeOnRandomCalls() {
        sessionsAgreeOnRandomCalls(backend -> backend.session(RETENTION), false);
    }

    @Test
    void sessionStoresThatAreReadAtTheirCloseAgreeOnRandomCalls() {
        sessionsAgreeOnRandomCalls(backend -> backend.sessionAtClose(RETENTION), true);
    }

    private void sessionsAgreeOnRandomCalls(
            Function<Backend, SessionStore<Bytes, byte[]>> made, boolean isAtClose) {
        for (int seed = 0; seed < 8; seed++) {
            Random random = new Random(seed);
            Path parent = folder.resolve("" + folders++);
            List<Task> tasks = new ArrayList<>();
            List<SessionStore<Bytes, byte[]>> stores = new ArrayList<>();
            for (Backend backend : Backend.values()) {
                tasks.add(backend.task(parent.resolve("" + backend)));
                stores.add(tasks.get(stores.size()).open(made.apply(backend)));
            }
            long now = 0;
            for (int call = 0; call < 400; call++) {
                now += random.nextInt(3_000);
                Bytes key = randomKey(random);
                Bytes other = randomKey(random);
                long start = Math.max(0, now - random.nextInt(250_000));
                long end = start + random.nextInt(5_000);
                int kind = random.nextInt(isAtClose ? 15 : 14);
                byte[] value = random.nextInt(6) == 0 ? null : value("v" + call);
                Windowed<Bytes> session = new Windowed<>(key, new SessionWindow(start, end));
                List<Object> answers = new ArrayList<>();
                for (SessionStore<Bytes, byte[]> store : stores) {
                    if (kind < 7) {
                        store.put(session, value);
                    } else if (kind == 7) {
                        store.remove(session);
                    }
                    answers.add(switch (kind) {
                        case 8 -> all(store.findSessions(key, start, end));
                        case 9 -> all(store.backwardFindSessions(key, start, end));
                        case 10 -> ofKeys(
                                store.findSessions(key, other, start, end), isAtClose);
                        case 11 -> all(store.fetch(key));
                        case 12 -> ofKeys(store.backwardFetch(null, other), isAtClose);
                        case 13 -> ofKeys(store.fetch(null, null), isAtClose);
                        case 14 -> all(store.findSessions(start, end + 20_000));
                        default -> text(store.fetchSession(key, start, end));
                    });
                }
                for (int at = 0; at < stores.size(); at++) {
                    String message = Backend.values()[at] + ", seed " + seed + " call " + call;
                    assertEquals(answers.get(0), answers.get(at), message);
                    if (call % 70 == 69) {
                        tasks.get(at).commit(stores.get(at), (long) call);
                    }
                }
            }
            stores.forEach(SessionStore::close);
        }
    }

    private static Bytes randomKey(Random random) {
        String[] keys = {"a", "ab", "b", "b\u0001", "c", "\u007f", "zz"};
        return bytes(keys[random.nextInt(keys.length)]);
    }

    @Test
    void segmentsAreAsLongAsThoseOfRocksDb() {
        assertEquals(SEGMENT, ShingleStoreSuppliers.windowStore(
                "w", RETENTION, Backend.SIZE, false).segmentIntervalMs());
        assertEquals(SEGMENT, ShingleStoreSuppliers.sessionStore(
                "s", RETENTION).segmentIntervalMs());
        assertTrue(ShingleStoreSuppliers.sessionStoreWithHeaders("s", RETENTION).get()
                instanceof org.apache.kafka.streams.state.HeadersBytesStore);
    }
}
