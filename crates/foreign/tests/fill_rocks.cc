// Makes databases with RocksDB's own library, for the tests of the reader.
//
//   fill_rocks fixtures FOLDER      writes each database to FOLDER/NAME.rocksdb, and prints for each of
//                                   its column families what RocksDB itself finds in it: NAME, family,
//                                   count of keys, digest, parted by tabs. A database that RocksDB reads
//                                   and the reader refuses has the line NAME alone.
//   fill_rocks random FOLDER SEED   one database of random options and writes, to FOLDER
//
// The databases in tests/data/rocksdb were made with RocksDB 7.8.3 (Debian's librocksdb-dev) and with
// the library inside of rocksdbjni 11.8.1 from Maven, which exports the C interface:
//
//   c++ -std=c++17 -DWITH_CXX fill_rocks.cc -o fill_old -lrocksdb
//   c++ -std=c++17 fill_rocks.cc -o fill_new librocksdbjni-linux64.so -Wl,-rpath,.
//   (./fill_old fixtures data/rocksdb; ./fill_new fixtures data/rocksdb) > data/rocksdb/expected.tsv
//
// A digest is FNV-1a of 64 bits over the length, as 8 bytes, and the bytes of each key and value.
#include <rocksdb/c.h>
#ifdef WITH_CXX
#include <rocksdb/comparator.h>
#include <rocksdb/db.h>
#include <rocksdb/wide_columns.h>
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using std::string;

extern "C" {
// Of newer versions.
void rocksdb_block_based_options_set_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t*, unsigned char) __attribute__((weak));
void rocksdb_options_set_track_and_verify_wals_in_manifest(rocksdb_options_t*, unsigned char)
    __attribute__((weak));
void rocksdb_transactiondb_options_set_write_policy(rocksdb_transactiondb_options_t*, int)
    __attribute__((weak));
void rocksdb_ingestexternalfileoptions_set_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t*, unsigned char) __attribute__((weak));
void rocksdb_flush_cfs(rocksdb_t*, const rocksdb_flushoptions_t*,
                       rocksdb_column_family_handle_t**, int, char**) __attribute__((weak));
}

namespace {

// Whether the library is of a newer version.
const bool is_new = rocksdb_block_based_options_set_separate_key_value_in_data_block != nullptr;

char* error = nullptr;

void Check(const char* what) {
  if (error != nullptr) {
    fprintf(stderr, "%s: %s\n", what, error);
    exit(1);
  }
}

struct Setup {
  int version = 5;
  int checksum = 1;
  int compression = 0;
  int index = 0;
  bool hash_in_blocks = false;
  bool apart = false;
  int dictionary = 0;
  int train = 0;
  int recycle = 0;
  int wal_compression = 0;
  bool atomic = false;
  bool track = false;
  bool merges = false;
  bool blobs = false;
  // 1: plain tables, 2: cuckoo tables
  int other_table = 0;
  int table_bytes = 0;
};

// The first four bytes, or fewer.
rocksdb_slicetransform_t* Prefix() {
  if (is_new) return rocksdb_slicetransform_create_fixed_prefix(4);
  return rocksdb_slicetransform_create(
      nullptr, [](void*) {},
      [](void*, const char* key, size_t length, size_t* prefix) {
        *prefix = length < 4 ? length : 4;
        return const_cast<char*>(key);
      },
      [](void*, const char*, size_t) -> unsigned char { return 1; },
      [](void*, const char*, size_t) -> unsigned char { return 0; },
      [](void*) { return "first.four"; });
}

rocksdb_options_t* Options(const Setup& setup) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_compression(options, setup.compression);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_options_set_max_manifest_file_size(options, 1 << 30);
  rocksdb_options_set_allow_mmap_reads(options, setup.other_table != 0);
  if (setup.table_bytes) rocksdb_options_set_target_file_size_base(options, setup.table_bytes);
  if (setup.dictionary) {
    rocksdb_options_set_compression_options(options, -14, 32767, 0, setup.dictionary);
    rocksdb_options_set_compression_options_zstd_max_train_bytes(options, setup.train);
  }
  rocksdb_options_set_recycle_log_file_num(options, setup.recycle);
  if (setup.wal_compression) rocksdb_options_set_wal_compression(options, setup.wal_compression);
  rocksdb_options_set_atomic_flush(options, setup.atomic);
  if (setup.track) rocksdb_options_set_track_and_verify_wals_in_manifest(options, 1);
  if (setup.merges) rocksdb_options_set_uint64add_merge_operator(options);
  if (setup.blobs) {
    rocksdb_options_set_enable_blob_files(options, 1);
    rocksdb_options_set_min_blob_size(options, 0);
  }
  if (setup.index == 1 || setup.other_table == 1) {
    rocksdb_options_set_prefix_extractor(options, Prefix());
  }
  if (setup.other_table == 1) {
#ifdef WITH_CXX
    rocksdb_options_set_plain_table_factory(options, 0, 10, 0.75, 16);
#endif
    return options;
  }
  if (setup.other_table == 2) {
    rocksdb_cuckoo_table_options_t* cuckoo = rocksdb_cuckoo_options_create();
    rocksdb_options_set_cuckoo_table_factory(options, cuckoo);
    return options;
  }
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_size(table, 400);
  rocksdb_block_based_options_set_block_restart_interval(table, 4);
  rocksdb_block_based_options_set_format_version(table, setup.version);
  rocksdb_block_based_options_set_checksum(table, char(setup.checksum));
  rocksdb_block_based_options_set_index_type(table, setup.index);
  rocksdb_block_based_options_set_index_block_restart_interval(table, setup.index == 1 ? 1 : 3);
  rocksdb_block_based_options_set_metadata_block_size(table, 100);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
  if (setup.index == 2) rocksdb_block_based_options_set_partition_filters(table, 1);
  if (setup.hash_in_blocks) rocksdb_block_based_options_set_data_block_index_type(table, 1);
  if (setup.apart) rocksdb_block_based_options_set_separate_key_value_in_data_block(table, 1);
  rocksdb_options_set_block_based_table_factory(options, table);
  return options;
}

using Names = std::vector<const char*>;

// An open database.
struct Db {
  string path;
  rocksdb_options_t* options;
  rocksdb_t* db;
  Names names;
  std::vector<rocksdb_column_family_handle_t*> families;
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();

  Db(const string& path, const Setup& setup, Names names = {"default"})
      : path(path), options(Options(setup)), names(names), families(names.size()) {
    std::vector<const rocksdb_options_t*> all(names.size(), options);
    db = rocksdb_open_column_families(options, path.c_str(), int(names.size()), names.data(),
                                      all.data(), families.data(), &error);
    Check("open");
  }
  void Put(const string& key, const string& value, int family = 0) {
    rocksdb_put_cf(db, write, families[family], key.data(), key.size(), value.data(), value.size(),
                   &error);
    Check("put");
  }
  void Delete(const string& key, int family = 0) {
    rocksdb_delete_cf(db, write, families[family], key.data(), key.size(), &error);
    Check("delete");
  }
  void SingleDelete(const string& key, int family = 0) {
    rocksdb_singledelete_cf(db, write, families[family], key.data(), key.size(), &error);
    Check("single delete");
  }
  void DeleteRange(const string& begin, const string& end, int family = 0) {
    rocksdb_delete_range_cf(db, write, families[family], begin.data(), begin.size(), end.data(),
                            end.size(), &error);
    Check("delete range");
  }
  void Merge(const string& key, const string& value, int family = 0) {
    rocksdb_merge_cf(db, write, families[family], key.data(), key.size(), value.data(),
                     value.size(), &error);
    Check("merge");
  }
  void Flush(int family = 0) {
    rocksdb_flush_cf(db, flush, families[family], &error);
    Check("flush");
  }
  void FlushAll() {
    rocksdb_flush_cfs(db, flush, families.data(), int(families.size()), &error);
    Check("flush of all");
  }
  void Compact(int family = 0) {
    rocksdb_compact_range_cf(db, families[family], nullptr, 0, nullptr, 0);
  }
  void Close() {
    for (auto* family : families) rocksdb_column_family_handle_destroy(family);
    rocksdb_close(db);
  }
};

unsigned state = 7;
unsigned Random(unsigned below) {
  state = state * 1103515245 + 12345;
  return (state >> 8) % below;
}

string Key(unsigned n) {
  char text[32];
  snprintf(text, sizeof text, "key%05u", n);
  return text;
}

string Value(const char* what) {
  string value = string(what) + " " + std::to_string(Random(100000)) + " ";
  for (unsigned left = Random(3); left > 0; left--) value += "abcabcabc";
  return value;
}

// Overwrites and deletes keys.
void Round(Db& db, const char* what, unsigned keys, unsigned writes, int family = 0) {
  for (unsigned n = 0; n < writes; n++) {
    const string key = Key(Random(keys));
    if (Random(5) == 0) {
      db.Delete(key, family);
    } else {
      db.Put(key, Value(what), family);
    }
  }
}

// Tables of two levels and a log.
void Layers(Db& db, int family = 0) {
  db.Put(string(), "the empty key", family);
  db.Put(string("zero\0ff\xff", 8), string("\0\xff", 2), family);
  db.Put("empty", "", family);
  Round(db, "one", 90, 90, family);
  db.Flush(family);
  db.Compact(family);
  Round(db, "two", 90, 40, family);
  db.Flush(family);
  Round(db, "three", 90, 12, family);
}

void Copy(const fs::path& from, const fs::path& to, bool with_options) {
  fs::remove_all(to);
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const string name = entry.path().filename();
    const bool is_options = name.rfind("OPTIONS", 0) == 0;
    if (!entry.is_regular_file() || name.rfind("LOG", 0) == 0 || name == "LOCK") continue;
    if (is_options && !with_options) continue;
    fs::copy_file(entry.path(), to / name);
  }
}

uint64_t Fnv(uint64_t sum, const char* bytes, size_t count) {
  for (size_t n = 0; n < count; n++) sum = (sum ^ uint8_t(bytes[n])) * 0x100000001b3;
  return sum;
}

uint64_t FnvOf(uint64_t sum, const char* bytes, size_t count) {
  char length[8];
  for (int n = 0; n < 8; n++) length[n] = char(count >> (8 * n));
  return Fnv(Fnv(sum, length, 8), bytes, count);
}

// Prints what RocksDB finds in a copy of the database.
void Scan(const string& name, const fs::path& folder) {
  const fs::path copy = folder.string() + ".scan";
  Copy(folder, copy, true);
  Setup setup;
  setup.merges = true;
  rocksdb_options_t* options = Options(setup);
  size_t count = 0;
  char** listed = rocksdb_list_column_families(options, copy.c_str(), &count, &error);
  Check("list");
  {
    Db db(copy, setup, Names(listed, listed + count));
    rocksdb_readoptions_t* read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_total_order_seek(read, 1);
    for (size_t family = 0; family < count; family++) {
      rocksdb_iterator_t* it = rocksdb_create_iterator_cf(db.db, read, db.families[family]);
      uint64_t sum = 0xcbf29ce484222325;
      unsigned keys = 0;
      for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        size_t length;
        const char* bytes = rocksdb_iter_key(it, &length);
        sum = FnvOf(sum, bytes, length);
        bytes = rocksdb_iter_value(it, &length);
        sum = FnvOf(sum, bytes, length);
        keys++;
      }
      rocksdb_iter_get_error(it, &error);
      Check("scan");
      rocksdb_iter_destroy(it);
      printf("%s\t%s\t%u\t%016llx\n", name.c_str(), listed[family], keys,
             static_cast<unsigned long long>(sum));
    }
    db.Close();
  }
  fs::remove_all(copy);
}

// Makes the fixtures, one after the other.
struct Fixtures {
  fs::path folder;

  fs::path Work() const { return folder / "work"; }

  // Runs `fill`, and keeps the files as they are before the database is closed.
  void Make(const string& name, const Setup& setup, const std::function<void(Db&)>& fill,
            bool is_read = true, Names names = {"default"}) {
    state = 7;
    fs::remove_all(Work());
    const fs::path to = folder / (name + ".rocksdb");
    {
      Db db(Work(), setup, names);
      fill(db);
      rocksdb_flush_wal(db.db, 1, &error);
      Check("flush of the log");
      Copy(Work(), to, name == "options");
      db.Close();
    }
    fs::remove_all(Work());
    Finish(name, is_read);
  }
  void Finish(const string& name, bool is_read) {
    if (is_read) {
      Scan(name, folder / (name + ".rocksdb"));
    } else {
      printf("%s\n", name.c_str());
    }
  }

  void Formats();
  void Compressions();
  void Indexes();
  void Writes();
  void Logs();
  void Ingestions();
  void Transactions();
  void Refused();
  void All() {
    Formats();
    Compressions();
    Indexes();
    Writes();
    Logs();
    Ingestions();
    Transactions();
    Refused();
  }
};

void Simple(Db& db) { Layers(db); }

void Fixtures::Formats() {
  const char* sums[] = {"none", "crc32c", "xxhash", "xxhash64", "xxh3"};
  for (int version = is_new ? 6 : 2; version <= (is_new ? 7 : 5); version++) {
    // Every version with one kind of checksum; the newest one of a program with all of them.
    for (int checksum = 0; checksum < 5; checksum++) {
      if (checksum != version % 5 && version != 5 && version != 7) continue;
      Setup setup;
      setup.version = version;
      setup.checksum = checksum;
      Make("v" + std::to_string(version) + "-" + sums[checksum], setup, Simple);
    }
  }
}

void Fixtures::Compressions() {
  const std::pair<const char*, int> kinds[] = {{"snappy", 1}, {"zlib", 2}, {"bzip2", 3},
                                               {"lz4", 4},    {"lz4hc", 5}, {"zstd", 7}};
  for (auto [name, kind] : kinds) {
    if (is_new && kind != 7 && kind != 4) continue;
    Setup setup;
    setup.version = is_new ? 7 : 4;
    setup.checksum = 4;
    setup.compression = kind;
    const string full = string(name) + (is_new ? "-new" : "");
    Make(full, setup, Simple);
    if (kind == 1 || kind == 3) continue;
    setup.dictionary = 1024;
    Make(full + "-dictionary", setup, Simple);
    if (kind != 7) continue;
    setup.train = 16384;
    Make(full + "-trained", setup, Simple);
  }
}

void Fixtures::Indexes() {
  const char* names[] = {"", "hash", "partitioned", "first-key"};
  for (int index = 1; index <= 3; index++) {
    for (int version : is_new ? std::vector<int>{7} : std::vector<int>{3, 5}) {
      Setup setup;
      setup.version = version;
      setup.index = index;
      setup.checksum = 4;
      Make("index-" + string(names[index]) + "-v" + std::to_string(version), setup, Simple);
    }
  }
  Setup setup;
  setup.hash_in_blocks = true;
  setup.version = is_new ? 7 : 5;
  Make(is_new ? "hash-in-blocks-new" : "hash-in-blocks", setup, Simple);
  if (!is_new) return;
  setup.apart = true;
  Make("values-apart-and-hash", setup, Simple);
  setup.hash_in_blocks = false;
  Make("values-apart", setup, Simple);
  setup.index = 2;
  Make("values-apart-partitioned", setup, Simple);
}

void Fixtures::Writes() {
  Setup setup;
  setup.version = is_new ? 7 : 5;
  const string suffix = is_new ? "-new" : "";
  Make("ranges" + suffix, setup, [](Db& db) {
    Layers(db);
    db.DeleteRange(Key(20), Key(40));
    db.Put(Key(30), "behind a deleted range");
    db.Flush();
    db.DeleteRange(Key(60), Key(61));
    db.DeleteRange(Key(65), Key(65));
    db.Put(Key(62), "before a deleted range");
    db.DeleteRange(Key(62), Key(64));
    // A table of deleted ranges alone.
    db.Flush();
    db.DeleteRange(Key(80), "l");
    db.Flush();
    db.DeleteRange(Key(70), Key(78));
    db.Put(Key(75), "in the log, behind a deleted range");
  });
  // Ranges over several tables, of which some are compacted further: there older keys lose their
  // numbers, and the range must not reach them.
  setup.table_bytes = 1500;
  Make("ranges-cut" + suffix, setup, [](Db& db) {
    for (unsigned n = 0; n < 200; n++) db.Put(Key(n), Value("old"));
    db.Flush();
    const rocksdb_snapshot_t* held = rocksdb_create_snapshot(db.db);
    db.DeleteRange(Key(10), Key(190));
    for (unsigned n = 0; n < 200; n += 3) db.Put(Key(n), Value("new"));
    db.Flush();
    db.Compact();
    rocksdb_release_snapshot(db.db, held);
    // The bottom of a part of the keys, now without a snapshot.
    for (unsigned n = 40; n < 60; n++) db.Put(Key(n), Value("newest"));
    db.Flush();
    const string begin = Key(40), end = Key(60);
    rocksdb_compactoptions_t* all = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(all, 2);
    rocksdb_compact_range_opt(db.db, all, begin.data(), begin.size(), end.data(), end.size());
  });
  setup.table_bytes = 0;
  Make("snapshots" + suffix, setup, [](Db& db) {
    for (int round = 0; round < 4; round++) {
      Round(db, "kept", 40, 60);
      rocksdb_create_snapshot(db.db);
    }
    db.Flush();
    db.Compact();
    Round(db, "log", 40, 10);
  });
  Make("single-deletes" + suffix, setup, [](Db& db) {
    for (unsigned n = 0; n < 60; n++) db.Put(Key(n), Value("once"));
    db.Flush();
    for (unsigned n = 0; n < 60; n += 3) db.SingleDelete(Key(n));
    db.Flush();
    for (unsigned n = 1; n < 60; n += 6) db.SingleDelete(Key(n));
  });
  Names names = {"default", "users", "dropped", "a name with spaces"};
  auto families = [](Db& db) {
    for (int family = 0; family < 4; family++) {
      Round(db, "first", 50, 50, family);
      db.Flush(family);
      Round(db, "second", 50, 10, family);
    }
    // Each has another log that it needs.
    db.Flush(1);
    Round(db, "after", 50, 20, 0);
    Round(db, "after", 50, 20, 1);
    db.Flush(3);
    db.DeleteRange(Key(5), Key(10), 1);
    Round(db, "last", 50, 20, 3);
    rocksdb_drop_column_family(db.db, db.families[2], &error);
    Check("drop");
    Round(db, "very last", 50, 5, 1);
  };
  Make("families" + suffix, setup, families, true, names);
  // A log that one family needs has deletions of another one. A newer key that is in no log has lost
  // its number at the bottom: the deletions, read again, would hide it.
  Make("families-behind" + suffix, setup, [](Db& db) {
    Round(db, "kept", 30, 20, 1);
    for (unsigned n = 0; n < 20; n++) db.Put(Key(n), Value("old"));
    for (unsigned n = 0; n < 20; n++) db.Delete(Key(n));
    db.Flush();
    rocksdb_writeoptions_disable_WAL(db.write, 1);
    for (unsigned n = 0; n < 10; n++) db.Put(Key(n), Value("in no log"));
    db.Flush();
    db.Compact();
  }, true, {"default", "behind"});
  if (is_new) {
    setup.atomic = true;
    Make("families-at-once", setup, [&](Db& db) {
      families(db);
      db.names.resize(2);
      db.families.resize(2);
      db.FlushAll();
      Round(db, "behind", 50, 5, 1);
    }, true, names);
    setup.atomic = false;
  }
  setup.merges = true;
  Make("merged" + suffix, setup, [](Db& db) {
    const string one("\1\0\0\0\0\0\0\0", 8);
    // Newer versions do not need the operator.
    for (const char* key : {"a", "b", "c", "d"}) db.Merge(key, one);
    db.Flush();
    db.Put("a", "put");
    db.Delete("b");
    db.DeleteRange("c", "d");
    db.Put("d", one);
    db.Merge("d", one);
    // The flush merges what it has all of.
    db.Flush();
  });
  Make("refused-merge" + suffix, setup, [](Db& db) {
    const string one("\1\0\0\0\0\0\0\0", 8);
    db.Put("a", "1");
    db.Put("counter", one);
    db.Flush();
    db.Merge("counter", one);
  }, false);
}

void Fixtures::Logs() {
  Setup setup;
  setup.version = is_new ? 7 : 5;
  const string suffix = is_new ? "-new" : "";
  Make("only-log" + suffix, setup, [](Db& db) {
    Round(db, "log", 100, 60);
    string large(is_new ? 1000 : 34000, 'x');
    for (size_t n = 0; n < large.size(); n++) large[n] = char('a' + n % 23);
    db.Put("large", large);
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, "b1", 2, "1", 1);
    rocksdb_writebatch_put_log_data(batch, "note", 4);
    rocksdb_writebatch_delete(batch, "b1", 2);
    rocksdb_writebatch_put(batch, "b2", 2, "", 0);
    rocksdb_writebatch_delete_range(batch, "key00010", 8, "key00020", 8);
    rocksdb_write(db.db, db.write, batch, &error);
    Check("batch");
    Round(db, "log", 100, 20);
  });
  if (is_new) {
    // Files of earlier logs come back, with what they had behind the end of the new log. Older
    // versions do not do so in the usual mode of recovery.
    setup.recycle = 2;
    Make("recycled-log", setup, [](Db& db) {
      for (int round = 0; round < 4; round++) {
        Round(db, "round", 40, 40);
        db.Flush();
      }
      Round(db, "few", 40, 7);
    });
    setup.recycle = 0;
  }
  setup.wal_compression = 7;
  Make("compressed-log" + suffix, setup, [](Db& db) {
    Round(db, "log", 100, 60);
    db.Put("large", string(70000, 'x'));
    Round(db, "log", 100, 20);
  });
  setup.wal_compression = 0;
  if (!is_new) {
    Make("options", setup, Simple);
    return;
  }
  setup.track = true;
  Make("tracked-logs", setup, [](Db& db) {
    Layers(db, 0);
    Round(db, "log", 50, 20, 1);
    db.Flush(0);
    Round(db, "log", 50, 20, 1);
    db.Flush(0);
    Round(db, "log", 50, 20, 0);
  }, true, {"default", "other"});
}

void Fixtures::Ingestions() {
  const string suffix = is_new ? "-new" : "";
  for (int in_file = 0; in_file < (is_new ? 2 : 1); in_file++) {
    Setup setup;
    setup.version = is_new ? 6 : 5;
    Make("ingested" + suffix + (in_file ? "-number-in-file" : ""), setup, [&](Db& db) {
      Layers(db);
      const string file = db.path + ".sst";
      for (int round = 0; round < 2; round++) {
        rocksdb_sstfilewriter_t* writer =
            rocksdb_sstfilewriter_create(rocksdb_envoptions_create(), db.options);
        rocksdb_sstfilewriter_open(writer, file.c_str(), &error);
        Check("open of a file");
        for (unsigned n = round * 10; n < 90; n += 4) {
          const string key = Key(n), value = Value("ingested");
          if (n % 8 == 0) {
            rocksdb_sstfilewriter_delete(writer, key.data(), key.size(), &error);
          } else {
            rocksdb_sstfilewriter_put(writer, key.data(), key.size(), value.data(), value.size(),
                                      &error);
          }
          Check("write of a file");
        }
        const string begin = Key(60), end = Key(66);
        rocksdb_sstfilewriter_delete_range(writer, begin.data(), begin.size(), end.data(),
                                           end.size(), &error);
        rocksdb_sstfilewriter_finish(writer, &error);
        Check("finish of a file");
        const char* files[] = {file.c_str()};
        rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
        if (is_new) rocksdb_ingestexternalfileoptions_set_write_global_seqno(how, in_file);
        rocksdb_ingest_external_file(db.db, files, 1, how, &error);
        Check("ingestion");
        Round(db, "after", 90, 12);
      }
      fs::remove(file);
    });
  }
}

void Fixtures::Transactions() {
  const string suffix = is_new ? "-new" : "";
  // 0: all ended; 1: one is prepared; 2: of another policy
  for (int kind = 0; kind < (is_new ? 3 : 2); kind++) {
    const char* names[] = {"transactions", "refused-prepared", "refused-write-prepared"};
    const string name = names[kind] + suffix;
    Setup setup;
    setup.version = is_new ? 7 : 5;
    const fs::path work = folder / ("work" + std::to_string(kind));
    fs::remove_all(work);
    rocksdb_options_t* options = Options(setup);
    rocksdb_transactiondb_options_t* of_db = rocksdb_transactiondb_options_create();
    if (kind == 2) rocksdb_transactiondb_options_set_write_policy(of_db, 1);
    rocksdb_transactiondb_t* db =
        rocksdb_transactiondb_open(options, of_db, work.c_str(), &error);
    Check("open");
    rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
    rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
    auto begin = [&](const char* name) {
      rocksdb_transaction_t* one = rocksdb_transaction_begin(db, write, how, nullptr);
      rocksdb_transaction_set_name(one, name, strlen(name), &error);
      Check("name");
      for (int n = 0; n < 5; n++) {
        const string key = string(name) + std::to_string(n);
        rocksdb_transaction_put(one, key.data(), key.size(), name, strlen(name), &error);
        Check("put");
      }
      rocksdb_transaction_prepare(one, &error);
      Check("prepare");
      return one;
    };
    rocksdb_transaction_t* first = begin("committed");
    rocksdb_transaction_t* second = begin("rolled back");
    rocksdb_transactiondb_put(db, write, "committed1", 10, "no", 2, &error);
    // The lock of the transaction refuses this.
    free(error);
    error = nullptr;
    rocksdb_transactiondb_put(db, write, "other", 5, "yes", 3, &error);
    Check("put");
    rocksdb_transaction_commit(first, &error);
    Check("commit");
    rocksdb_transaction_rollback(second, &error);
    Check("rollback");
    rocksdb_transactiondb_put(db, write, "committed3", 10, "later", 5, &error);
    Check("put");
    if (kind == 1) begin("open");
    rocksdb_transactiondb_flush_wal(db, 1, &error);
    Check("flush of the log");
    const fs::path to = folder / (name + ".rocksdb");
    Copy(work, to, false);
    if (kind == 0) {
      // RocksDB reads such a log as a database of transactions alone.
      rocksdb_iterator_t* it =
          rocksdb_transactiondb_create_iterator(db, rocksdb_readoptions_create());
      uint64_t sum = 0xcbf29ce484222325;
      unsigned keys = 0;
      for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        size_t length;
        const char* bytes = rocksdb_iter_key(it, &length);
        sum = FnvOf(sum, bytes, length);
        bytes = rocksdb_iter_value(it, &length);
        sum = FnvOf(sum, bytes, length);
        keys++;
      }
      rocksdb_iter_destroy(it);
      printf("%s\tdefault\t%u\t%016llx\n", name.c_str(), keys,
             static_cast<unsigned long long>(sum));
    } else {
      Finish(name, false);
    }
    // The database stays open until the process ends.
    fs::remove_all(work);
  }
}

void Fixtures::Refused() {
  const string suffix = is_new ? "-new" : "";
  Setup setup;
  setup.version = is_new ? 7 : 5;
  setup.blobs = true;
  auto few = [](Db& db) {
    for (unsigned n = 0; n < 5; n++) db.Put(Key(n), "value");
    db.Flush();
  };
  Make("refused-blobs" + suffix, setup, few, false);
  if (is_new) return;
  setup.blobs = false;
  setup.version = 0;
  Make("refused-version-0", setup, few, false);
  setup.version = 1;
  Make("refused-version-1", setup, few, false);
  setup.version = 5;
  setup.other_table = 1;
  Make("refused-plain", setup, few, false);
  setup.other_table = 2;
  Make("refused-cuckoo", setup, few, false);
#ifdef WITH_CXX
  rocksdb::DB* db = nullptr;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  for (bool is_columns : {true, false}) {
    const char* name = is_columns ? "refused-columns" : "refused-order";
    if (!is_columns) options.comparator = rocksdb::ReverseBytewiseComparator();
    if (!rocksdb::DB::Open(options, Work(), &db).ok()) exit(1);
    db->Put(rocksdb::WriteOptions(), "a", "1");
    if (is_columns) {
      db->PutEntity(rocksdb::WriteOptions(), db->DefaultColumnFamily(), "entity",
                    {{"", "default"}, {"name", "value"}});
    }
    db->Flush(rocksdb::FlushOptions());
    Copy(Work(), folder / (string(name) + ".rocksdb"), false);
    delete db;
    fs::remove_all(Work());
    Finish(name, false);
  }
#endif
}

// A database of random options, and thousands of writes of every kind.
void AtRandom(const fs::path& folder, unsigned seed) {
  state = seed * 2654435761u + 1;
  for (int n = 0; n < 10; n++) Random(2);
  Setup setup;
  setup.version = is_new ? 2 + int(Random(6)) : 2 + int(Random(4));
  setup.checksum = int(Random(5));
  const int kinds[] = {0, 1, 2, 4, 5, 7};
  setup.compression = kinds[Random(6)];
  setup.index = int(Random(4));
  setup.hash_in_blocks = Random(3) == 0;
  setup.apart = is_new && Random(3) == 0;
  setup.dictionary = Random(2) ? 2048 : 0;
  setup.train = Random(2) ? 65536 : 0;
  setup.recycle = Random(3) == 0 ? 2 : 0;
  setup.wal_compression = !setup.recycle && Random(3) == 0 ? 7 : 0;
  setup.atomic = Random(4) == 0;
  setup.table_bytes = 4000 + int(Random(20000));
  const fs::path work = folder.string() + ".work";
  fs::remove_all(work);
  Names names = {"default", "one", "two"};
  auto* db = new Db(work, setup, names);
  std::vector<const rocksdb_snapshot_t*> held;
  const unsigned steps = 3000 + Random(6000), keys = 200 + Random(3000);
  unsigned once = 0;
  for (unsigned step = 0; step < steps; step++) {
    const int family = int(Random(3));
    const string key = Key(Random(keys));
    switch (Random(200)) {
      case 0:
        db->Flush(family);
        break;
      case 1:
        if (Random(2)) db->Compact(family);
        break;
      case 2: {
        const string end = Key(Random(keys));
        rocksdb_compact_range_cf(db->db, db->families[family], key.data(), key.size(), end.data(),
                                 end.size());
        break;
      }
      case 3:
        held.push_back(rocksdb_create_snapshot(db->db));
        break;
      case 4:
        if (!held.empty()) {
          rocksdb_release_snapshot(db->db, held.back());
          held.pop_back();
        }
        break;
      case 5: case 6: case 7: case 8: {
        const unsigned begin = Random(keys);
        db->DeleteRange(Key(begin), Key(begin + Random(keys / 5)), family);
        break;
      }
      case 9: {
        const string file = work.string() + ".sst";
        rocksdb_sstfilewriter_t* writer =
            rocksdb_sstfilewriter_create(rocksdb_envoptions_create(), db->options);
        rocksdb_sstfilewriter_open(writer, file.c_str(), &error);
        Check("open of a file");
        for (unsigned n = Random(keys), end = n + 1 + Random(100); n < end; n += 1 + Random(3)) {
          const string key = Key(n), value = Value("ingested");
          rocksdb_sstfilewriter_put(writer, key.data(), key.size(), value.data(), value.size(),
                                    &error);
          Check("write of a file");
        }
        rocksdb_sstfilewriter_finish(writer, &error);
        Check("finish of a file");
        const char* files[] = {file.c_str()};
        rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
        rocksdb_ingest_external_file_cf(db->db, db->families[family], files, 1, how, &error);
        Check("ingestion");
        fs::remove(file);
        break;
      }
      case 10:
        if (Random(4) == 0) {
          for (auto* snapshot : held) rocksdb_release_snapshot(db->db, snapshot);
          held.clear();
          db->Close();
          db = new Db(work, setup, names);
        }
        break;
      case 11: case 12: case 13: {
        const string only = "once" + std::to_string(once++);
        db->Put(only, Value("once"), family);
        if (Random(2)) db->Flush(family);
        if (Random(2)) db->SingleDelete(only, family);
        break;
      }
      default:
        if (Random(6) == 0) {
          db->Delete(key, family);
        } else {
          db->Put(key, Value("random"), family);
        }
    }
  }
  rocksdb_flush_wal(db->db, 1, &error);
  Check("flush of the log");
  if (Random(2)) db->Close();
  Copy(work, folder, false);
  fs::remove_all(work);
  Scan("random", folder);
}

}  // namespace

int main(int count, char** arguments) {
  const string what = count > 2 ? arguments[1] : "";
  if (what == "fixtures" && count == 3) {
    Fixtures{arguments[2]}.All();
  } else if (what == "random" && count == 4) {
    AtRandom(arguments[2], unsigned(atoi(arguments[3])));
  } else {
    return 2;
  }
  fflush(stdout);
  // Open databases and transactions end with the process.
  _Exit(0);
}
