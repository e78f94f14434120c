// Uses LevelDB's C++ interface, and prints what it found. The output is the same on LevelDB.

#include <cstdio>
#include <memory>
#include <typeinfo>

#include "check.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/write_batch.h"

using leveldb::Slice;
using leveldb::Status;

namespace {

void Statuses() {
  const Status statuses[] = {Status::OK(),
                             Status::NotFound("a", "b"),
                             Status::Corruption("custom corruption status message"),
                             Status::NotSupported("x"),
                             Status::InvalidArgument("", "y"),
                             Status::IOError("path", "no such thing")};
  for (const Status& status : statuses) {
    Status copy = status, other = Status::IOError("old");
    other = copy;
    Status moved = std::move(copy);
    CHECK(other.ToString() == moved.ToString());
    std::cout << moved.ToString() << " " << moved.ok() << moved.IsNotFound() << moved.IsCorruption()
              << moved.IsIOError() << moved.IsNotSupportedError() << moved.IsInvalidArgument() << "\n";
  }
}

class Told final : public leveldb::WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    Show("put", key);
    Show("  with", value);
  }
  void Delete(const Slice& key) override { Show("delete", key); }
};

leveldb::WriteBatch Batch() {
  leveldb::WriteBatch batch, more;
  batch.Put("gone", "x");
  batch.Clear();
  batch.Put("box", std::string(300, 'b'));
  batch.Put("bar", "1");
  more.Delete("bar");
  more.Put(Slice("with\0zero", 9), "");
  batch.Append(more);
  leveldb::WriteBatch copy = batch;
  Told told;
  SUCCEEDS(copy.Iterate(&told));
  std::cout << "batch of " << copy.ApproximateSize() << " bytes\n";
  return copy;
}

// Has only what a derived class must have; writing single keys comes from DB.
class OnlyBatches final : public leveldb::DB {
 public:
  Status Put(const leveldb::WriteOptions& options, const Slice& key, const Slice& value) override {
    return leveldb::DB::Put(options, key, value);
  }
  Status Delete(const leveldb::WriteOptions& options, const Slice& key) override {
    return leveldb::DB::Delete(options, key);
  }
  Status Write(const leveldb::WriteOptions&, leveldb::WriteBatch* batch) override {
    Told told;
    return batch->Iterate(&told);
  }
  Status Get(const leveldb::ReadOptions&, const Slice& key, std::string*) override {
    return Status::NotFound(key);
  }
  leveldb::Iterator* NewIterator(const leveldb::ReadOptions&) override {
    return leveldb::NewErrorIterator(Status::NotSupported("no iterators"));
  }
  const leveldb::Snapshot* GetSnapshot() override { return nullptr; }
  void ReleaseSnapshot(const leveldb::Snapshot*) override {}
  bool GetProperty(const Slice&, std::string*) override { return false; }
  void GetApproximateSizes(const leveldb::Range*, int, uint64_t*) override {}
  void CompactRange(const Slice*, const Slice*) override {}
};

void Derived() {
  OnlyBatches derived;
  leveldb::DB& db = derived;
  SUCCEEDS(db.Put(leveldb::WriteOptions(), "k", "v"));
  SUCCEEDS(db.Delete(leveldb::WriteOptions(), "k"));
  std::unique_ptr<leveldb::Iterator> failed(db.NewIterator(leveldb::ReadOptions()));
  failed->SeekToFirst();
  std::cout << failed->Valid() << " " << failed->status().ToString() << "\n";
  std::unique_ptr<leveldb::Iterator> empty(leveldb::NewEmptyIterator());
  empty->SeekToLast();
  std::cout << empty->Valid() << " " << empty->status().ToString() << "\n";
  CHECK(typeid(db) == typeid(OnlyBatches) && typeid(db) != typeid(leveldb::DB));
}

std::string Value(leveldb::DB* db, const leveldb::ReadOptions& options, const Slice& key) {
  std::string value = "as before";
  const Status status = db->Get(options, key, &value);
  // The key may lie in the string for the value.
  std::string both = key.ToString() + "!";
  CHECK(db->Get(options, Slice(both.data(), key.size()), &both).ok() == status.ok());
  CHECK(!status.ok() || both == value);
  return status.ok() ? std::to_string(value.size()) + value.substr(0, 20) : status.ToString() + value;
}

void Walk(leveldb::DB* db, const leveldb::ReadOptions& options) {
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(options));
  static int cleaned;
  const auto clean = [](void* first, void* second) {
    ++*static_cast<int*>(first);
    CHECK(second == nullptr);
  };
  for (int n = 0; n < 3; n++) it->RegisterCleanup(clean, &cleaned, nullptr);
  CHECK(!it->Valid());
  size_t entries = 0, bytes = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    entries++;
    bytes += it->key().size() + it->value().size();
  }
  SUCCEEDS(it->status());
  size_t back = 0;
  for (it->SeekToLast(); it->Valid(); it->Prev()) back++;
  std::cout << entries << " entries of " << bytes << " bytes, and back " << back << "\n";
  it->Seek("c");
  Show("from c on", it->Valid() ? it->key() : Slice("nothing"));
  it.reset();
  std::cout << "cleaned " << cleaned << "\n";
}

int keys = 20000;

void Fill(leveldb::DB* db) {
  unsigned random = 1;
  for (int n = 0; n < keys; n++) {
    char key[24];
    std::snprintf(key, sizeof key, "key%08d", n);
    std::string value(200, 'v');
    for (int byte = 0; byte < 100; byte++) {
      random = random * 1103515245 + 12345;
      value[byte] = static_cast<char>(random >> 16);
    }
    SUCCEEDS(db->Put(leveldb::WriteOptions(), key, value));
  }
}

void Database(const leveldb::Options& given, const std::string& path) {
  leveldb::Options options = given;
  leveldb::DB* opened = nullptr;
  std::cout << Kind(leveldb::DB::Open(options, path, &opened)) << "\n";
  CHECK(opened == nullptr);
  options.create_if_missing = true;
  options.error_if_exists = true;
  SUCCEEDS(leveldb::DB::Open(options, path, &opened));
  std::unique_ptr<leveldb::DB> db(opened);
  leveldb::WriteOptions synced;
  synced.sync = true;
  SUCCEEDS(db->Put(synced, "foo", "bar"));
  leveldb::WriteBatch batch = Batch();
  SUCCEEDS(db->Write(leveldb::WriteOptions(), &batch));
  const leveldb::Snapshot* before = db->GetSnapshot();
  SUCCEEDS(db->Delete(leveldb::WriteOptions(), "foo"));
  leveldb::ReadOptions at;
  at.snapshot = before;
  std::cout << Value(db.get(), at, "foo") << " " << Value(db.get(), {}, "foo") << "\n";
  Walk(db.get(), at);
  db->ReleaseSnapshot(before);
  leveldb::ReadOptions careful;
  careful.verify_checksums = true;
  careful.fill_cache = false;
  std::cout << Value(db.get(), careful, "box") << " " << Value(db.get(), careful, "never") << "\n";
  Fill(db.get());
  db->CompactRange(nullptr, nullptr);
  const Slice begin = "key00001000", end = "key00002000";
  db->CompactRange(&begin, &end);
  const std::string middle = "key" + std::to_string(100000000 + keys / 2).substr(1);
  const leveldb::Range ranges[] = {{"key0", middle}, {middle, "z"}, {"x", "y"}};
  uint64_t sizes[3] = {7, 7, 7};
  db->GetApproximateSizes(ranges, 3, sizes);
  const uint64_t bytes = 50 * static_cast<uint64_t>(keys);
  CHECK(sizes[0] > bytes && sizes[1] > bytes && sizes[2] == 0);
  std::string property;
  CHECK(db->GetProperty("leveldb.stats", &property) && property.find("Write(MB)") != property.npos);
  CHECK(db->GetProperty("leveldb.num-files-at-level0", &property));
  CHECK(!db->GetProperty("leveldb.unknown", &property));
  Walk(db.get(), careful);
  leveldb::DB* twice = nullptr;
  options.error_if_exists = false;
  std::cout << Kind(leveldb::DB::Open(options, path, &twice)) << "\n";
  db.reset();
  SUCCEEDS(leveldb::RepairDB(path, options));
  options.create_if_missing = false;
  SUCCEEDS(leveldb::DB::Open(options, path, &opened));
  db.reset(opened);
  Walk(db.get(), {});
  db.reset();
  SUCCEEDS(leveldb::DestroyDB(path, options));
  SUCCEEDS(leveldb::DestroyDB(path, options));
  std::cout << Kind(leveldb::DB::Open(options, path, &opened)) << "\n";
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count >= 2);
  if (count == 3) keys = std::atoi(arguments[2]);
  Statuses();
  Derived();
  leveldb::Options options;
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(100000));
  std::unique_ptr<const leveldb::FilterPolicy> filter(leveldb::NewBloomFilterPolicy(10));
  CHECK(options.comparator == leveldb::BytewiseComparator());
  CHECK(options.env == leveldb::Env::Default());
  Database(options, std::string(arguments[1]) + "/plain");
  options.block_cache = cache.get();
  options.filter_policy = filter.get();
  options.compression = leveldb::kNoCompression;
  options.write_buffer_size = 100000;
  Database(options, std::string(arguments[1]) + "/tuned");
  std::cout << "done\n";
}
