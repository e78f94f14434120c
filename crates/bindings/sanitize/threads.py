"""Threads put, get, scan and take snapshots through the same objects while another closes them.

    python threads.py FOLDER

Every thread does its work a few times before the close begins, and goes on until the close ends it.
An answer that is wrong ends the program with an error; accesses to freed memory are what valgrind
looks for. It prints "done" at its end.
"""

import sys
import threading

import shingle

ROUNDS = 4
WORKERS = 4
# Work that each thread has done before the close begins.
TIMES_MIN = 12
KEYS = 40
# The smallest memtable, so that values of VALUE bytes make flushes and compactions.
OPTIONS = {"write_buffer_bytes": 16 << 10, "memory_bytes": 4 << 20}
VALUE = 300


def key(seed, n):
    return b"key%d-%04d" % (seed, n % KEYS)


def value(seed, n):
    return b"%d-%04d." % (seed, n % KEYS) * (VALUE // 7)


class Round:
    """A database that is open until ``run`` has closed it, and what its threads share."""

    def __init__(self, folder):
        self.folder = folder
        self.db = shingle.open(folder, **OPTIONS)
        self.fruit = self.db.keyspace("fruit")
        self.scan = self.db.scan()
        self.snapshot = self.db.snapshot()
        self.ready = threading.Semaphore(0)
        self.failures = []

    def write(self, seed, n):
        """Keys of this thread alone: what it wrote is what it reads."""
        self.db.put(key(seed, n), value(seed, n))
        assert self.db.get(key(seed, n)) == value(seed, n)
        with self.db.batch() as batch:
            for more in range(4):
                batch.put(key(seed, n + more), value(seed, n + more))
                batch.put(key(seed, n + more), memoryview(value(seed, n)), self.fruit)
            batch.delete(key(seed, n), self.fruit)
        assert self.fruit.get(key(seed, n)) is None
        if n % 5 == 0:
            self.db.flush()

    def read(self, seed, n):
        """Scans in both directions, to their end and not, and gets of many keys."""
        for found, text in self.db.scan(prefix=b"key0-"):
            assert text == value(0, int(found[5:]))
        for found in self.db.scan_keys(reverse=True):
            if found < key(seed, n):
                break
        keys = [key(0, n + more) for more in range(8)]
        for found, text in zip(keys, self.db.multi_get(keys)):
            assert text is None or text == value(0, int(found[5:]))
        if n % 6 == 0:
            self.db.compact()

    def hold(self, seed, n):
        """A snapshot and its scan, which are read again after a write; a transaction."""
        with self.db.snapshot() as snapshot:
            before = snapshot.get(key(0, n))
            scan = snapshot.scan(prefix=b"key0-")
            first = next(scan, None)
            self.fruit.put(key(seed, n), value(seed, n))
            assert snapshot.get(key(0, n)) == before
            again = next(snapshot.scan(prefix=b"key0-"), None)
            assert again == first
            assert all(text == value(0, int(found[5:])) for found, text in scan)
        try:
            with self.db.transaction() as transaction:
                text = transaction.get(b"shared", for_update=n % 2 == 0) or b""
                transaction.put(b"shared", text[-VALUE:] + b"%d" % seed)
        except shingle.Conflict:
            pass

    def misuse(self, seed, n):
        """A scan and a snapshot that all threads read; this thread replaces them by others."""
        for _ in range(5):
            next(self.scan, None)
        self.snapshot.get(key(seed, n))
        if n % 4 == 0:
            scan, snapshot = self.scan, self.snapshot
            self.scan, self.snapshot = self.db.scan(), self.db.snapshot()
            scan.close()
            snapshot.close()

    def share(self):
        """Reads what ``misuse`` closes."""
        try:
            next(self.scan, None)
            self.snapshot.get(b"shared")
        except shingle.Closed:
            pass

    def work(self, seed):
        does = [self.write, self.read, self.hold, self.misuse][seed]
        try:
            n = 0
            while True:
                does(seed, n)
                self.share()
                n += 1
                if n == TIMES_MIN:
                    self.ready.release()
        except shingle.Closed:
            if n < TIMES_MIN:
                self.failures.append(f"closed after {n} times")
        except BaseException as failure:
            self.failures.append(failure)
        self.ready.release()

    def run(self):
        threads = [threading.Thread(target=self.work, args=(n,)) for n in range(WORKERS)]
        for thread in threads:
            thread.start()
        for _ in threads:
            self.ready.acquire()
        self.db.close()
        for thread in threads:
            thread.join()
        assert not self.failures, self.failures
        # What was acknowledged is there, and what outlives its database is readable.
        held = self.snapshot.get(key(0, 0))
        assert held is None or held == value(0, 0)
        sum(1 for _ in self.scan)
        self.snapshot.close()
        self.scan.close()
        with shingle.open(self.folder, **OPTIONS) as db:
            assert db.check() == []
            assert db.get(key(0, 0)) == value(0, 0)


def main():
    for n in range(ROUNDS):
        Round(f"{sys.argv[1]}/db{n % 2}").run()
    print("done")


main()
