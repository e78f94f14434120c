// What Shingle refuses, which LevelDB does.

#include "check.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/dumpfile.h"
#include "leveldb/env.h"

using leveldb::Slice;

namespace {

class Backwards final : public leveldb::Comparator {
 public:
  const char* Name() const override { return "test.Backwards"; }
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class Own final : public leveldb::EnvWrapper {
 public:
  Own() : EnvWrapper(leveldb::Env::Default()) {}
};

}  // namespace

int main(int count, char** arguments) {
  CHECK(count == 2);
  leveldb::DB* db = nullptr;
  leveldb::Options options;
  options.create_if_missing = true;
  Backwards backwards;
  options.comparator = &backwards;
  leveldb::Status refused = leveldb::DB::Open(options, arguments[1], &db);
  std::cout << refused.ToString() << "\n";
  CHECK(refused.IsNotSupportedError() && db == nullptr);
  options = leveldb::Options();
  Own own;
  options.env = &own;
  refused = leveldb::DB::Open(options, arguments[1], &db);
  std::cout << refused.ToString() << "\n";
  CHECK(refused.IsNotSupportedError() && db == nullptr);
  CHECK(leveldb::DumpFile(leveldb::Env::Default(), "x", nullptr).IsNotSupportedError());
  std::cout << "done\n";
}
