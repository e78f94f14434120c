"""One life of a program that uses plyvel: the first writes, the second reads what is there."""

import sys

import plyvel

path, life = sys.argv[1:]
with plyvel.DB(path, create_if_missing=True, bloom_filter_bits=10, lru_cache_size=1 << 20) as db:
    if life == "first":
        with db.write_batch(sync=True) as batch:
            for n in range(10000):
                batch.put(b"key%06d" % n, b"value %d" % n)
        people = db.prefixed_db(b"people/")
        people.put(b"ada", b"1815")
        db.put(b"gone", b"soon")
        snapshot = db.snapshot()
        db.delete(b"gone")
        assert snapshot.get(b"gone") == b"soon" and db.get(b"gone") is None
        snapshot.close()
        assert [key for key, _ in people] == [b"ada"]
        assert next(db.iterator(reverse=True, prefix=b"key")) == (b"key009999", b"value 9999")
    else:
        entries = list(db.iterator(prefix=b"key"))
        assert db.prefixed_db(b"people/").get(b"ada") == b"1815"
        assert db.get(b"gone") is None
        print(f"{len(entries)} entries, the last {entries[-1]}")
