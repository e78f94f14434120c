// Uses the parts of LevelDB that need no database: environments, caches, filters, orders. The output
// is the same on LevelDB.

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/helpers/memenv.h"

using leveldb::Slice;
using leveldb::Status;

namespace {

void Orders() {
  const leveldb::Comparator* order = leveldb::BytewiseComparator();
  std::cout << order->Name() << " " << (order->Compare("a", "b") < 0) << order->Compare("a", "a")
            << (order->Compare("\xff", "a") > 0) << (order->Compare("ab", "a") > 0) << "\n";
  const std::pair<std::string, std::string> pairs[] = {
      {"abcdef", "abzz"}, {"abc", "abcd"}, {"a", "b"}, {"abc", "abd"}, {"same", "same"}};
  for (auto [start, limit] : pairs) {
    order->FindShortestSeparator(&start, limit);
    Show("separator", start);
  }
  for (std::string key : {"abc", "\xff\xff" "a", "\xff", ""}) {
    order->FindShortSuccessor(&key);
    Show("successor", key);
  }
}

int deleted;

void Deleted(const Slice& key, void* value) {
  deleted++;
  Show("deleted", key);
  delete static_cast<int*>(value);
}

void Caches() {
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(1000));
  leveldb::Cache::Handle* held = cache->Insert("held", new int(1), 1, Deleted);
  cache->Release(cache->Insert("a", new int(2), 1, Deleted));
  cache->Release(cache->Insert("a", new int(3), 1, Deleted));
  leveldb::Cache::Handle* found = cache->Lookup("a");
  CHECK(found != nullptr);
  std::cout << *static_cast<int*>(cache->Value(found)) << " " << cache->TotalCharge() << "\n";
  cache->Erase("a");
  std::cout << (cache->Lookup("a") == nullptr) << *static_cast<int*>(cache->Value(found)) << "\n";
  cache->Release(found);
  cache->Release(cache->Insert("b", new int(4), 1, Deleted));
  cache->Prune();
  std::cout << cache->TotalCharge() << *static_cast<int*>(cache->Value(held)) << "\n";
  cache->Release(held);
  CHECK(cache->NewId() != cache->NewId());
  cache.reset();
  std::cout << "deleted " << deleted << "\n";
}

void Filters() {
  std::unique_ptr<const leveldb::FilterPolicy> policy(leveldb::NewBloomFilterPolicy(10));
  std::cout << policy->Name() << "\n";
  std::vector<std::string> texts;
  for (int n = 0; n < 10000; n++) texts.push_back("key" + std::to_string(n));
  std::vector<Slice> keys(texts.begin(), texts.end());
  std::string filter = "before";
  policy->CreateFilter(keys.data(), static_cast<int>(keys.size()), &filter);
  CHECK(filter.substr(0, 6) == "before");
  const Slice own(filter.data() + 6, filter.size() - 6);
  int wrong = 0;
  for (int n = 0; n < 10000; n++) {
    CHECK(policy->KeyMayMatch(keys[n], own));
    wrong += policy->KeyMayMatch("other" + std::to_string(n), own);
  }
  CHECK(wrong < 300);
  filter.clear();
  policy->CreateFilter(nullptr, 0, &filter);
  std::cout << policy->KeyMayMatch("x", filter) << policy->KeyMayMatch("x", "") << "\n";
}

void Children(leveldb::Env* env, const std::string& folder) {
  std::vector<std::string> names;
  SUCCEEDS(env->GetChildren(folder, &names));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) Show("child", name);
}

// Files of any environment.
void Files(leveldb::Env* env, const std::string& folder) {
  SUCCEEDS(env->CreateDir(folder));
  const std::string name = folder + "/file";
  CHECK(!env->FileExists(name));
  uint64_t size = 7;
  std::cout << env->GetFileSize(name, &size).ok() << "\n";
  SUCCEEDS(leveldb::WriteStringToFile(env, "hello ", name));
  leveldb::WritableFile* written = nullptr;
  SUCCEEDS(env->NewAppendableFile(name, &written));
  SUCCEEDS(written->Append("world"));
  SUCCEEDS(written->Append(std::string(100000, 'w')));
  SUCCEEDS(written->Flush());
  SUCCEEDS(written->Sync());
  SUCCEEDS(written->Close());
  delete written;
  SUCCEEDS(env->GetFileSize(name, &size));
  std::string all;
  SUCCEEDS(leveldb::ReadFileToString(env, name, &all));
  CHECK(all.size() == size && env->FileExists(name));
  Show("file", all);
  leveldb::RandomAccessFile* anywhere = nullptr;
  char space[16];
  Slice part;
  SUCCEEDS(env->NewRandomAccessFile(name, &anywhere));
  SUCCEEDS(anywhere->Read(6, 5, &part, space));
  Show("part", part);
  delete anywhere;
  leveldb::SequentialFile* in_order = nullptr;
  SUCCEEDS(env->NewSequentialFile(name, &in_order));
  SUCCEEDS(in_order->Skip(6));
  SUCCEEDS(in_order->Read(5, &part, space));
  Show("part", part);
  SUCCEEDS(in_order->Skip(200000));
  SUCCEEDS(in_order->Read(5, &part, space));
  Show("end", part);
  delete in_order;
  SUCCEEDS(env->RenameFile(name, folder + "/other"));
  Children(env, folder);
  std::cout << env->NewSequentialFile(name, &in_order).ok() << (in_order == nullptr)
            << env->NewRandomAccessFile(name, &anywhere).ok() << env->RemoveFile(name).ok() << "\n";
  leveldb::FileLock* lock = nullptr;
  SUCCEEDS(env->LockFile(folder + "/lock", &lock));
  SUCCEEDS(env->UnlockFile(lock));
  leveldb::Logger* logger = nullptr;
  SUCCEEDS(env->NewLogger(folder + "/log", &logger));
  delete logger;
  SUCCEEDS(env->RemoveFile(folder + "/other"));
}

void System(leveldb::Env* env, const std::string& folder) {
  leveldb::FileLock *lock = nullptr, *second = nullptr;
  SUCCEEDS(env->LockFile(folder + "/lock", &lock));
  std::cout << Kind(env->LockFile(folder + "/lock", &second)) << (second == nullptr) << "\n";
  SUCCEEDS(env->UnlockFile(lock));
  std::string tests;
  SUCCEEDS(env->GetTestDirectory(&tests));
  Show("tests", tests);
  const uint64_t before = env->NowMicros();
  env->SleepForMicroseconds(1000);
  CHECK(env->NowMicros() > before);
  static std::atomic<int> done;
  const auto add = [](void* number) { done += *static_cast<int*>(number); };
  int one = 1, ten = 10;
  env->Schedule(add, &one);
  env->Schedule(add, &one);
  env->StartThread(add, &ten);
  while (done != 12) std::this_thread::yield();
  std::cout << Kind(env->RemoveDir(folder)) << "\n";
  SUCCEEDS(env->RemoveFile(folder + "/lock"));
  SUCCEEDS(env->RemoveFile(folder + "/log"));
  SUCCEEDS(env->RemoveDir(folder));
  std::cout << Kind(env->CreateDir(folder + "/deep/er")) << "\n";
}

class Counting final : public leveldb::EnvWrapper {
 public:
  explicit Counting(Env* base) : EnvWrapper(base) {}
  bool FileExists(const std::string& name) override {
    asked++;
    return EnvWrapper::FileExists(name);
  }
  int asked = 0;
};

void Memory() {
  std::unique_ptr<leveldb::Env> memory(leveldb::NewMemEnv(leveldb::Env::Default()));
  Files(memory.get(), "/no/such%/folder");
  leveldb::Options options;
  options.create_if_missing = true;
  options.env = memory.get();
  for (int life = 0; life < 2; life++) {
    leveldb::DB* opened = nullptr;
    SUCCEEDS(leveldb::DB::Open(options, "/no/such/db", &opened));
    std::unique_ptr<leveldb::DB> db(opened);
    std::string value = "none";
    const bool was_there = db->Get({}, "k", &value).ok();
    std::cout << was_there << value << "\n";
    SUCCEEDS(db->Put({}, "k", "v"));
  }
  CHECK(!leveldb::Env::Default()->FileExists("/no/such/db"));
  SUCCEEDS(leveldb::DestroyDB("/no/such/db", options));
}

}  // namespace

int main(int count, char** arguments) {
  CHECK(count >= 2);
  Orders();
  Caches();
  Filters();
  const std::string folder = std::string(arguments[1]) + "/files";
  Counting env(leveldb::Env::Default());
  Files(&env, folder);
  CHECK(env.asked == 2 && env.target() == leveldb::Env::Default());
  System(&env, folder);
  Memory();
  std::cout << "done\n";
}
