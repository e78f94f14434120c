// A program without type information (-fno-rtti): what it hands in has classes of its own.

#include <cstdarg>
#include <memory>

#include "check.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/helpers/memenv.h"

using leveldb::Slice;

namespace {

class Own final : public leveldb::EnvWrapper {
 public:
  explicit Own(leveldb::Env* base) : EnvWrapper(base) {}
};

class Bytes final : public leveldb::Comparator {
 public:
  const char* Name() const override { return "leveldb.BytewiseComparator"; }
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class Every final : public leveldb::FilterPolicy {
 public:
  const char* Name() const override { return "test.Every"; }
  void CreateFilter(const Slice*, int, std::string*) const override {}
  bool KeyMayMatch(const Slice&, const Slice&) const override { return true; }
};

class Nothing final : public leveldb::Cache {
 public:
  explicit Nothing(leveldb::Cache* inside) : inside_(inside) {}
  Handle* Insert(const Slice& key, void* value, size_t charge,
                 void (*deleter)(const Slice& key, void* value)) override {
    return inside_->Insert(key, value, charge, deleter);
  }
  Handle* Lookup(const Slice& key) override { return inside_->Lookup(key); }
  void Release(Handle* handle) override { inside_->Release(handle); }
  void* Value(Handle* handle) override { return inside_->Value(handle); }
  void Erase(const Slice& key) override { inside_->Erase(key); }
  uint64_t NewId() override { return inside_->NewId(); }
  void Prune() override { inside_->Prune(); }
  size_t TotalCharge() const override { return inside_->TotalCharge(); }

 private:
  std::unique_ptr<leveldb::Cache> inside_;
};

class Silent final : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

}  // namespace

int main(int count, char** arguments) {
  CHECK(count >= 2);
  Bytes order;
  Every filter;
  Nothing cache(leveldb::NewLRUCache(1 << 20));
  Silent log;
  leveldb::Options options;
  options.create_if_missing = true;
  options.comparator = &order;
  options.filter_policy = &filter;
  options.block_cache = &cache;
  options.info_log = &log;
  leveldb::DB* db = nullptr;
  const std::string path = std::string(arguments[1]) + "/db";
  std::unique_ptr<leveldb::Env> memory(leveldb::NewMemEnv(leveldb::Env::Default()));
  for (leveldb::Env* env : {leveldb::Env::Default(), memory.get()}) {
    options.env = env;
    std::string value;
    SUCCEEDS(leveldb::DB::Open(options, path, &db));
    SUCCEEDS(db->Put(leveldb::WriteOptions(), "key", "value"));
    db->CompactRange(nullptr, nullptr);
    SUCCEEDS(db->Get(leveldb::ReadOptions(), "key", &value));
    Show("value", value);
    delete db;
    SUCCEEDS(leveldb::RepairDB(path, options));
    SUCCEEDS(leveldb::DestroyDB(path, options));
  }
  // LevelDB opens a database in it, Shingle refuses it: neither ends the program.
  Own own(leveldb::Env::Default());
  options.env = &own;
  const leveldb::Status status = leveldb::DB::Open(options, path, &db);
  CHECK(status.ok() == (db != nullptr) && (status.ok() || status.IsNotSupportedError()));
  delete db;
  std::cout << "done\n";
}
