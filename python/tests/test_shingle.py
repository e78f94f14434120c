"""The package does what its documentation says."""

import os
import pathlib
import shelve
import signal
import sys
import tempfile
import threading
import time
from collections.abc import MutableMapping

import pytest
import shingle


@pytest.fixture
def db(tmp_path):
    with shingle.open(tmp_path / "db") as db:
        yield db


@pytest.fixture
def in_memory(tmp_path):
    """A folder whose syncs cost nothing, where there is one."""
    if not os.path.isdir("/dev/shm"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


def filled(db, count=1000):
    with db.batch() as batch:
        for n in range(count):
            batch.put(b"key%05d" % n, b"%d" % n)
    return db


class TestMapping:
    def test_it_is_a_dictionary_of_bytes(self, db):
        assert isinstance(db, MutableMapping)
        db[b"apple"] = b"red"
        db["pear"] = "green"
        assert db[b"apple"] == b"red" and db[b"pear"] == b"green"
        assert b"apple" in db and b"plum" not in db
        assert db.get(b"plum") is None and db.get(b"plum", b"?") == b"?"
        assert len(db) == 2 and list(db) == [b"apple", b"pear"]
        assert dict(db) == {b"apple": b"red", b"pear": b"green"} == db
        with pytest.raises(KeyError) as missing:
            db[b"plum"]
        assert missing.value.args == (b"plum",)
        with pytest.raises(KeyError):
            del db[b"plum"]
        del db[b"apple"]
        assert b"apple" not in db

    def test_it_has_all_methods_of_a_dictionary(self, db):
        db.update({b"a": b"1", b"b": b"2"})
        assert db.setdefault(b"a", b"9") == b"1" and db.setdefault(b"c", b"3") == b"3"
        assert db.pop(b"b") == b"2" and db.pop(b"b", None) is None
        with pytest.raises(KeyError):
            db.pop(b"b")
        assert sorted(db.items()) == [(b"a", b"1"), (b"c", b"3")]
        assert list(db.keys()) == [b"a", b"c"] and list(db.values()) == [b"1", b"3"]
        assert list(reversed(db)) == [b"c", b"a"] and list(reversed(db.items()))[0] == (b"c", b"3")
        assert db.keys() & {b"a", b"x"} == {b"a"} and (b"a", b"1") in db.items()
        assert db.popitem() == (b"a", b"1")
        db.clear()
        assert len(db) == 0 and db == {}

    def test_every_kind_of_bytes_is_taken_and_nothing_else(self, db):
        db[bytearray(b"a")] = memoryview(b"xyz")[1:]
        assert db[memoryview(b"a")] == b"yz"
        db[b""] = b""
        assert db[b""] == b"" and db.get("") == b""
        for wrong in (1, None, 1.5, [b"a"]):
            with pytest.raises(TypeError):
                db[wrong] = b"a"
            with pytest.raises(TypeError):
                db[b"a"] = wrong

    def test_large_keys_and_values(self, db):
        value = os.urandom(5_000_000)
        db[b"k" * 60_000] = value
        assert db[b"k" * 60_000] == value
        with pytest.raises(shingle.InvalidArgument):
            db[b"k" * 70_000] = b""

    def test_shelve_works_on_it(self, db):
        with shelve.Shelf(db, writeback=True) as shelf:
            shelf["fruit"] = {"apple": ["red", 1]}
            shelf["fruit"]["apple"].append(2.5)
        # A shelf closes what is below it.
        with shingle.open(db.path) as again:
            assert shelve.Shelf(again)["fruit"] == {"apple": ["red", 1, 2.5]}


class TestScans:
    def test_ranges_and_prefixes_in_both_directions(self, db):
        filled(db)
        pairs = [(b"key%05d" % n, b"%d" % n) for n in range(1000)]
        assert list(db.scan()) == pairs
        assert list(db.scan(reverse=True)) == pairs[::-1]
        assert list(db.scan(b"key00100", b"key00200")) == pairs[100:200]
        assert list(db.scan(b"key00990")) == pairs[990:]
        assert list(db.scan(end="key00010", reverse=True)) == pairs[9::-1]
        assert list(db.scan(prefix=b"key0012", background=True)) == pairs[120:130]
        assert list(db.scan_keys(prefix=b"nothing")) == []
        with pytest.raises(shingle.InvalidArgument):
            db.scan(b"a", prefix=b"b")

    def test_a_scan_shows_the_moment_when_it_began(self, db):
        filled(db)
        scan = db.scan()
        next(scan)
        db.clear()
        assert sum(1 for _ in scan) == 999 and len(db) == 0

    def test_a_snapshot_is_a_mapping_of_its_moment(self, db):
        filled(db, 10)
        fruit = db.keyspace("fruit")
        fruit[b"apple"] = b"red"
        with db.snapshot() as snapshot:
            db[b"key00000"] = b"new"
            fruit.clear()
            assert snapshot[b"key00000"] == b"0" and len(snapshot) == 10
            assert snapshot.multi_get([b"key00001", b"x"]) == [b"1", None]
            assert list(snapshot.scan(b"key00008"))[0] == (b"key00008", b"8")
            assert dict(snapshot.of(fruit)) == {b"apple": b"red"}
            assert b"x" not in snapshot and snapshot.get(b"x", 7) == 7
        with pytest.raises(shingle.Closed):
            snapshot[b"key00000"]


class TestWrites:
    def test_a_batch_is_written_whole_or_not_at_all(self, db):
        with db.batch(durability="synced") as batch:
            batch[b"a"] = b"1"
            batch.put(b"b", b"2")
            batch.delete(b"a")
            assert len(batch) == 3 and len(db) == 0
        assert dict(db) == {b"b": b"2"}
        with pytest.raises(ZeroDivisionError):
            with db.batch() as batch:
                batch[b"c"] = b"3"
                1 / 0
        assert dict(db) == {b"b": b"2"}
        batch = db.batch()
        batch.delete_range(b"a", b"z")
        batch.write()
        assert len(db) == 0

    def test_durability_expiry_and_ranges(self, db):
        db.put(b"a", b"1", durability="synced", wait=False)
        db.put(b"b", b"2", ttl=0.05)
        db.put(b"c", b"3", ttl=1000)
        time.sleep(0.1)
        assert db.multi_get([b"a", b"b", b"c"]) == [b"1", None, b"3"]
        db.delete(b"x")
        db.delete_range(b"a", b"c", durability="buffered")
        assert list(db) == [b"c"]
        with pytest.raises(shingle.InvalidArgument, match="buffered"):
            db.put(b"a", b"1", durability="perhaps")
        assert db.wait_writable(100, timeout=1)

    def test_keyspaces_and_merges(self, db):
        counts = db.keyspace("counts", merge_operator="add-u64")
        for _ in range(3):
            counts.merge(b"n", (2).to_bytes(8, "little"))
        assert int.from_bytes(counts[b"n"], "little") == 6
        with db.batch() as batch:
            batch.merge(b"n", (1).to_bytes(8, "little"), counts)
            batch.put(b"x", b"y")
        assert int.from_bytes(counts[b"n"], "little") == 7 and db[b"x"] == b"y"
        assert sorted(db.keyspaces()) == ["counts", "default"] and counts.name == "counts"
        with pytest.raises(shingle.NotFound):
            db.keyspace("colours", create=False)
        db.drop_keyspace("counts")
        with pytest.raises(shingle.Closed):
            counts[b"n"]

    def test_transactions(self, db):
        db[b"a"] = b"1"
        with db.transaction() as t:
            assert t.get(b"a") == b"1"
            t.put(b"b", b"2")
            assert t.get(b"b") == b"2" and b"b" not in db
        assert db[b"b"] == b"2"
        with pytest.raises(shingle.Conflict):
            with db.transaction() as t:
                t.get(b"a", for_update=True)
                db[b"a"] = b"3"
                t.put(b"c", b"4")
        assert b"c" not in db
        with pytest.raises(shingle.Closed):
            t.commit()


class TestEdges:
    def test_a_keyspace_with_the_longest_key_is_cleared(self, db, tmp_path):
        db[b"k" * 65_535] = b"value"
        db[b"a"] = b"1"
        assert bool(db)
        db.clear()
        assert len(db) == 0 and not db
        counts = db.keyspace("counts", merge_operator="add-u64")
        counts[b"z"] = b"no number"
        counts.merge(b"z", (1).to_bytes(8, "little"))
        counts.clear()
        assert not counts
        db.close()
        with shingle.open(db.path, "n") as again:
            assert again.keyspaces() == ["default"] and not again

    def test_an_error_in_a_scan_is_no_end(self, db):
        counts = db.keyspace("counts", merge_operator="add-u64")
        for key in (b"a", b"c"):
            counts[key] = (1).to_bytes(8, "little")
        counts[b"b"] = b"no number"
        counts.merge(b"b", (1).to_bytes(8, "little"))
        scan = counts.scan_keys()
        assert next(scan) == b"a"
        with pytest.raises(shingle.Error):
            next(scan)
        assert list(scan) == [b"c"]

    def test_a_function_that_is_told_of_progress_cannot_close(self, db):
        filled(db)
        db.begin_flush()
        db.flush()
        with pytest.raises(shingle.InvalidArgument, match="told of progress"):
            db.check(lambda *step: db.close())
        assert len(db) == 1000

    def test_a_second_close_waits_for_the_first(self, tmp_path):
        for _ in range(20):
            db = shingle.open(tmp_path / "db")
            filled(db, 20_000)
            first = threading.Thread(target=db.close)
            first.start()
            # It begins, and writes what is in memory.
            while first.is_alive():
                try:
                    db.get(b"key")
                except shingle.Closed:
                    break
            db.close()
            with shingle.open(tmp_path / "db") as again:
                assert len(again) == 20_000
            first.join()

    def test_a_batch_that_would_have_waited_is_kept(self, tmp_path):
        slow = {"memory_bytes": "1M", "write_buffer_bytes": "64K", "background_bytes_per_second": "64K"}
        with shingle.open(tmp_path / "db", **slow) as db:
            batch = db.batch(wait=False)
            written = 0
            while True:
                for n in range(written, written + 10):
                    batch.put(b"key%06d" % n, os.urandom(1000))
                try:
                    batch.write()
                except shingle.WouldWait:
                    break
                assert len(batch) == 0
                written += 10
            assert len(batch) == 10 and b"key%06d" % written not in db
            db.set_option("background_bytes_per_second", 0)
            assert db.wait_writable(10_000, timeout=600)
            batch.write()
            assert len(batch) == 0 and b"key%06d" % (written + 9) in db

    def test_keyspaces_of_another_database_are_refused(self, db, tmp_path):
        with shingle.open(tmp_path / "other") as other:
            ours, theirs = db.keyspace("data"), other.keyspace("data")
            batch = other.batch()
            batch.put(b"key", b"value", ours)
            with pytest.raises(shingle.InvalidArgument):
                batch.write()
            with pytest.raises(shingle.InvalidArgument):
                db.snapshot().of(theirs)

    def test_times_that_are_none_are_refused(self, db):
        for wrong in (float("nan"), -1.0):
            with pytest.raises(shingle.InvalidArgument):
                db.put(b"a", b"b", ttl=wrong)
            with pytest.raises(shingle.InvalidArgument):
                db.wait_writable(1, timeout=wrong)
            with pytest.raises(shingle.InvalidArgument):
                db.keyspace("times", ttl=wrong)
        db.put(b"a", b"b", ttl=float("inf"))
        assert db[b"a"] == b"b"

    def test_it_is_a_mapping_in_the_small(self, db):
        db.update({b"a": b"1", b"b": b"2"})
        assert 1 not in db and None not in db.snapshot()
        assert b"2" in db.values() and b"3" not in db.values()
        for read in (db, db.snapshot()):
            with pytest.raises(KeyError) as missing:
                read["zz"]
            assert missing.value.args == (b"zz",)
            with pytest.raises(TypeError):
                hash(read)

    def test_a_database_that_goes_closes(self, tmp_path):
        db = shingle.open(tmp_path / "db")
        filled(db)
        del db
        with shingle.open(tmp_path / "db") as again:
            assert len(again) == 1000


class TestLife:
    def test_flags_are_those_of_dbm(self, tmp_path):
        path = tmp_path / "db"
        for flag in "rw":
            with pytest.raises(shingle.NotFound):
                shingle.open(path, flag)
        with shingle.open(str(path), "c") as db:
            db[b"a"] = b"1"
        with shingle.open(os.fsencode(path).decode(), "w") as db:
            assert db[b"a"] == b"1"
        with shingle.open(path, "r") as db:
            assert db[b"a"] == b"1"
            with pytest.raises(shingle.error):
                db[b"a"] = b"2"
        with shingle.open(path, "n") as db:
            assert len(db) == 0
        with pytest.raises(shingle.InvalidArgument):
            shingle.open(path, "x")

    def test_a_new_database_is_new_and_a_destroyed_one_is_gone(self, tmp_path):
        path = tmp_path / "new"
        with shingle.open(path, create_new=True):
            with pytest.raises(shingle.Locked):
                shingle.destroy(path)
        with pytest.raises(shingle.AlreadyExists):
            shingle.open(path, create_new=True)
        shingle.destroy(path)
        assert not path.exists()
        with pytest.raises(shingle.NotFound):
            shingle.destroy(path)

    def test_options_go_by_their_names(self, tmp_path):
        names = {name for name, _, _, _ in shingle.options()}
        assert {"scheme", "memory_bytes", "durability"} <= names
        shared = shingle.Resources.within(memory_bytes=64 << 20, background_threads=1)
        with shingle.open(tmp_path / "a", scheme="leveled", memory_bytes="64M", resources=shared) as db:
            db[b"key"] = b"value"
            assert db.stats()["user_write_bytes"] == 8
            assert shared.memtable_bytes < 64 << 20 and shared.cache_used_bytes < 64 << 20
            written = next(n for n in range(10_000) if shared.memtable_bytes or db.put(b"%d" % n, bytes(9999)))
            assert written > 0
            db.set_option("durability", "synced")
        with pytest.raises(shingle.InvalidArgument, match="no_such_option"):
            shingle.open(tmp_path / "b", no_such_option=1)
        with pytest.raises(shingle.InvalidArgument):
            shingle.open(tmp_path / "b", idle_compaction="maybe")
        with shingle.open(tmp_path / "b", idle_compaction=False):
            pass
        assert "map_tables" in names
        with shingle.open(tmp_path / "c", map_tables=True, block_bytes="8K", compression="none") as db:
            db[b"key"] = b"value"
            db.flush()
            assert db[b"key"] == b"value"
        with pytest.raises(shingle.InvalidArgument, match="block_bytes"):
            shingle.open(tmp_path / "c", block_bytes="1G")

    def test_errors_say_what_where_and_what_to_do(self, db, tmp_path):
        with pytest.raises(shingle.Locked) as locked:
            shingle.open(db.path)
        error = locked.value
        assert isinstance(error, shingle.Error) and error.kind == "Locked" and error.code == 9
        assert "wait" in error.remedy and error.offset is None
        filled(db).flush()
        db.close()
        table = next(pathlib.Path(db.path).glob("*.table"))
        data = bytearray(table.read_bytes())
        data[len(data) // 2] ^= 1
        table.write_bytes(data)
        with shingle.open(db.path, "r") as damaged:
            with pytest.raises(shingle.Corruption) as corruption:
                list(damaged.scan())
            assert corruption.value.file == table.name and corruption.value.offset > 0
            assert any(table.name in problem for problem in damaged.check())

    def test_after_the_end_everything_is_an_error_and_snapshots_live(self, db):
        filled(db, 10)
        scan, snapshot, batch, fruit = db.scan(), db.snapshot(), db.batch(), db.keyspace("fruit")
        transaction = db.transaction()
        db.close()
        db.close()
        uses = (lambda: db[b"a"], lambda: db.put(b"a", b"b"), db.flush, db.begin_flush, lambda: db.keyspace("a"),
                lambda: list(db), lambda: b"a" in db, lambda: len(db), lambda: db.multi_get([b"a"]),
                lambda: fruit[b"a"], lambda: transaction.get(b"a"), transaction.commit)
        for use in uses:
            with pytest.raises(shingle.Closed):
                use()
        batch[b"a"] = b"b"
        with pytest.raises(shingle.Closed):
            batch.write()
        assert len(list(scan)) == 10 and len(snapshot) == 10

    def test_checkpoint_check_and_properties(self, db, tmp_path):
        filled(db)
        db.sync()
        db.compact()
        db.wait_idle()
        db.checkpoint(tmp_path / "copy")
        with shingle.open(tmp_path / "copy") as copy:
            assert len(copy) == 1000
        steps = []
        assert db.check(lambda done, total, what: steps.append((done, total, what))) == []
        assert steps and steps[-1][0] <= steps[-1][1]
        with pytest.raises(shingle.Cancelled):
            db.check(lambda *step: False)
        with pytest.raises(ZeroDivisionError):
            db.check(lambda *step: 1 / 0)
        assert db.property("no such property") is None
        assert isinstance(db.stats(), dict)

    def test_a_function_that_is_told_of_progress_can_close_another_database(self, db, tmp_path):
        filled(db)
        db.flush()
        steps = []

        def progress(*step):
            steps.append(step)
            with shingle.open(tmp_path / "other") as other:
                other[b"a"] = b"b"
                assert other.check(lambda *step: None) == []
            with pytest.raises(shingle.InvalidArgument):
                db.close()

        assert db.check(progress) == [] and steps

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
    def test_an_interrupt_ends_a_check(self, tmp_path):
        with shingle.open(tmp_path / "db") as db:
            for n in range(30):
                db[b"key%03d" % n] = os.urandom(1 << 20)
        inside = []

        def interrupt(*_):
            # Refused only while the check runs. It may have ended before the handler runs.
            try:
                db.close()
            except shingle.InvalidArgument:
                inside.append(True)
                raise KeyboardInterrupt from None

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            for attempt in range(1, 11):
                with shingle.open(tmp_path / "db") as db:
                    signal.setitimer(signal.ITIMER_REAL, 0.002 * attempt)
                    try:
                        db.check()
                    except (KeyboardInterrupt, shingle.Closed):
                        pass
                    signal.setitimer(signal.ITIMER_REAL, 0)
                if inside:
                    break
        finally:
            signal.signal(signal.SIGALRM, before)
        assert inside

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
    def test_an_interrupt_ends_a_wait(self, tmp_path):
        # Merges of level 0 are so slow that writers wait as good as for ever.
        slow = {"preset": "leveldb", "write_buffer_bytes": "64K", "background_bytes_per_second": "1K"}
        with shingle.open(tmp_path / "db", **slow) as db:
            number = 0
            while db.wait_writable(1000, timeout=0.2):
                number += 1
                db[b"key%06d" % (number * 7919 % 100_000)] = os.urandom(1000)
            before = signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                with pytest.raises(KeyboardInterrupt):
                    db.wait_writable(1000)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
                db.set_option("background_bytes_per_second", 0)

    def test_a_close_ends_the_wait_for_a_lock(self, db):
        waiting, holding = db.transaction(lock_timeout=3600), db.transaction(lock_timeout=1)
        holding.put(b"a", b"1")
        ended = []

        def wait():
            with pytest.raises(shingle.Closed):
                waiting.put(b"a", b"2")
            ended.append(True)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)  # now it waits, most probably; the close ends it in any case
        db.close()
        thread.join()
        assert ended

    @pytest.mark.skipif(sys.platform != "linux", reason="names are bytes")
    def test_a_path_keeps_its_bytes(self, tmp_path):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/m\xfcller")
        with shingle.open(path) as db:
            db[b"a"] = b"b"
            assert db.path == path
        assert os.listdir(os.fsencode(tmp_path)) == [b"m\xfcller"]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_child_makes_its_own_resources(self, tmp_path):
        shared = shingle.Resources.within(16 << 20)
        cache = shingle.Resources(1 << 20)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for resources in (shared, cache):
                    with pytest.raises(shingle.Closed, match="forked"):
                        shingle.open(tmp_path / "db", resources=resources)
                del resources, shared, cache
                with shingle.open(tmp_path / "db", resources=shingle.Resources(1 << 20)) as db:
                    db[b"a"] = b"b"
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        with shingle.open(tmp_path / "db", resources=shared) as db:
            assert db[b"a"] == b"b"

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_child_gets_a_clear_error_and_harms_nothing(self, db):
        filled(db)
        scan, snapshot = db.scan(), db.snapshot()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for use in (lambda: db[b"key00000"], lambda: db.put(b"a", b"b"), lambda: next(scan),
                            lambda: snapshot[b"key00000"], db.close, db.flush):
                    with pytest.raises(shingle.Closed, match="forked"):
                        use()
                code = 0
            finally:
                del db, scan, snapshot
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        db[b"after"] = b"1"
        assert len(db) == 1001 and db.check() == []

    def test_threads(self, db):
        failures = []

        def work(seed):
            try:
                for n in range(2000):
                    key = b"%d-%d" % (seed, n)
                    db[key] = key
                    assert db[key] == key
                    if n % 500 == 0:
                        assert sum(1 for _ in db.scan(prefix=b"%d-" % seed)) == n + 1
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and len(db) == 8000

    def test_other_threads_run_while_the_engine_waits(self, db):
        """The wait for a lock ends only if the thread that holds it can run meanwhile."""
        holder = db.transaction()
        holder.get(b"a", for_update=True)
        begins = threading.Event()

        def release():
            begins.wait()
            time.sleep(0.05)
            holder.roll_back()

        thread = threading.Thread(target=release)
        thread.start()
        waiter = db.transaction(lock_timeout=600)
        begins.set()
        assert waiter.get(b"a", for_update=True) is None
        thread.join()
        waiter.commit()

    @pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no /proc")
    def test_a_thousand_lives_keep_memory_and_open_files_as_they_are(self, in_memory):
        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4

        files, kib, kept = None, None, []
        for n in range(1000):
            with shingle.open(in_memory / "db") as db:
                db[b"key%d" % (n % 50)] = b"value"
                assert db[b"key0"] == b"value"
                next(db.scan())
            kept.append(db)
            if n == 500:
                files, kib = len(os.listdir("/proc/self/fd")), resident()
        # The closed databases are referenced still, and hold little more than their objects.
        assert len(os.listdir("/proc/self/fd")) == files
        assert resident() < kib + 2048
