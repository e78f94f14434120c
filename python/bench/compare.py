"""The same work on Shingle, plyvel (LevelDB) and rocksdict (RocksDB), in alternating rounds.

    pip install ./python plyvel rocksdict
    python python/bench/compare.py [--records N] [--rounds N]

Prints operations a second, medians of the rounds, and the ratio of Shingle to the best of the other
two. Every store has a write buffer of 64 MiB, a cache of 256 MiB and no compression, keeps a log and
syncs nothing. `shingle-mapped` maps its tables into memory, as LevelDB does.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time

MIB = 1 << 20
BATCH = 100


class Shingle:
    def __init__(self, path, **options):
        import shingle

        self.db = shingle.open(
            path,
            memory_bytes=640 * MIB,
            write_buffer_bytes=64 * MIB,
            cache_bytes=256 * MIB,
            compression="none",
            **options,
        )
        self.put, self.get = self.db.put, self.db.get
        self.close, self.settle = self.db.close, self.db.wait_idle

    def batch(self, pairs):
        with self.db.batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def scan(self):
        return self.db.scan()


class ShingleMapped(Shingle):
    def __init__(self, path):
        super().__init__(path, map_tables=True)


class Plyvel:
    def __init__(self, path):
        import plyvel

        self.db = plyvel.DB(
            path,
            create_if_missing=True,
            write_buffer_size=64 * MIB,
            lru_cache_size=256 * MIB,
            bloom_filter_bits=10,
            compression=None,
        )
        self.put, self.get, self.close = self.db.put, self.db.get, self.db.close

    def settle(self):
        time.sleep(1)

    def batch(self, pairs):
        with self.db.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def scan(self):
        return self.db.iterator()


class Rocksdict:
    def __init__(self, path):
        from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, WriteBatch

        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(64 * MIB)
        options.set_compression_type(DBCompressionType.none())
        blocks = BlockBasedOptions()
        blocks.set_block_cache(Cache(256 * MIB))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        self.db, self.new_batch = Rdict(path, options), WriteBatch
        self.put, self.get = self.db.__setitem__, self.db.get
        self.close = self.db.close

    def settle(self):
        time.sleep(1)

    def batch(self, pairs):
        batch = self.new_batch(raw_mode=True)
        for key, value in pairs:
            batch[key] = value
        self.db.write(batch)

    def scan(self):
        return self.db.items()


STORES = {"shingle": Shingle, "shingle-mapped": ShingleMapped, "plyvel": Plyvel, "rocksdict": Rocksdict}


def timed(work, count):
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def rates(make, keys, value, order):
    """Operations a second by name, on a new database."""
    folder = tempfile.mkdtemp()
    try:
        store = make(folder + "/puts")

        def put():
            for key in keys:
                store.put(key, value)

        def get():
            for key in order:
                assert store.get(key) is not None

        distinct = len(set(keys))

        def scan():
            assert sum(1 for _ in store.scan()) == distinct

        found = {"put": timed(put, len(keys))}
        store.settle()
        found["get"] = timed(get, len(order))
        found["scan"] = timed(scan, distinct)
        store.close()
        batched = make(folder + "/batches")

        def batches():
            for begin in range(0, len(keys), BATCH):
                batched.batch((key, value) for key in keys[begin : begin + BATCH])

        found["put in batches"] = timed(batches, len(keys))
        batched.close()
        return found
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stores", default=",".join(STORES))
    arguments = parser.parse_args()
    draw = random.Random(1)
    keys = [b"%016d" % draw.randrange(10**12) for _ in range(arguments.records)]
    order = keys[:]
    draw.shuffle(order)
    names = arguments.stores.split(",")
    rounds = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            rounds[name].append(rates(STORES[name], keys, bytes(range(100)), order))
    print(f"{'operation':15}" + "".join(f"{name:>22}" for name in names))
    for operation in rounds[names[0]][0]:
        medians = {name: statistics.median(round[operation] for round in rounds[name]) for name in names}
        best = max((medians[name] for name in names if not name.startswith("shingle")), default=None)

        def shown(name):
            ratio = f" ({medians[name] / best:.2f})" if best and name.startswith("shingle") else ""
            return f"{f'{medians[name]:,.0f}{ratio}':>22}"

        print(f"{operation:15}" + "".join(map(shown, names)))


if __name__ == "__main__":
    main()
