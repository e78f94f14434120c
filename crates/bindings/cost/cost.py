"""What calls cost through the Python interface: the same work as cost.c does through C.

    cost.py DIRECTORY ENTRIES [WORK PASSES]

Without WORK: times all. With it: does that work so many times and ends at once, without a close, so
that the difference between two numbers of passes is the work alone.
"""

import itertools
import os
import sys
import time

import shingle

BATCH = 100


def key_of(n):
    return b"%016d" % (n * 2654435761 % 10000000019)


def puts(db, keys, rest):
    put = db.put
    for key in keys:
        put(key, key + rest)


def batches(db, keys, rest):
    for begin in range(0, len(keys), BATCH):
        with db.batch() as batch:
            put = batch.put
            for key in keys[begin : begin + BATCH]:
                put(key, key + rest)


def gets(db, keys, rest):
    get = db.get
    for key in reversed(keys):
        if len(get(key)) != 100:
            raise AssertionError(key)


def scans(db, keys, rest):
    count = 0
    for key, value in db.scan():
        count += len(key) + len(value)
    assert count == len(keys) * 116


# Alone: what the interpreter needs to ask a dictionary.
WORKS = {"put": puts, "batch": batches, "get": gets, "scan": scans, "alone": gets}


def main():
    folder, count = sys.argv[1], int(sys.argv[2]) // BATCH * BATCH
    keys = [key_of(n) for n in range(count)]
    rest = bytes(84)

    def opened(name):
        path = os.path.join(folder, name)
        return shingle.open(path, memory_bytes="640M", write_buffer_bytes="64M", compression="none")

    def filled(work):
        if work == "alone":
            return dict(zip(keys, itertools.repeat(bytes(100))))
        db = opened("python-" + work)
        if work in ("get", "scan"):
            batches(db, keys, rest)
            db.compact()
        return db

    if len(sys.argv) > 3:
        work = sys.argv[3]
        db = filled(work)
        for _ in range(int(sys.argv[4])):
            WORKS[work](db, keys, rest)
        os._exit(0)
    for work in ("batch", "put", "get", "scan", "alone"):
        db = filled(work)
        began = time.perf_counter_ns()
        WORKS[work](db, keys, rest)
        print(work, round((time.perf_counter_ns() - began) / count))


main()
