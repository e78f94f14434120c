// LevelDB's C++ interface on the C functions of this library: databases, iterators, snapshots.
//
// It is compiled against the headers of LevelDB that the distribution has, so that the layout of its
// classes is theirs.

#include "leveldb/db.h"

#include <functional>
#include <memory>
#include <string>

#include "cache.h"
#include "filter.h"
#include "leveldb/c.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"
#include "made.h"
#include "memory_env.h"
#include "status.h"

// Writes a batch in the form that WriteBatch keeps it in.
extern "C" void shingle_leveldb_write(leveldb_t* db, const leveldb_writeoptions_t* options,
                                      const char* batch, size_t batch_length, char** error);
// Gives a value to `give`, and tells whether there is one. The key must not change meanwhile.
extern "C" bool shingle_leveldb_get(leveldb_t* db, const leveldb_readoptions_t* options,
                                    const char* key, size_t key_length,
                                    void (*give)(void* to, const char* value, size_t size),
                                    void* to, char** error);
extern "C" {
static void Assign(void* to, const char* value, size_t size) {
  static_cast<std::string*>(to)->assign(value, size);
}
}

namespace leveldb {

// LevelDB's headers let a class of this name look into a batch.
class WriteBatchInternal {
 public:
  static const std::string& Contents(const WriteBatch& batch) { return batch.rep_; }
};

Snapshot::~Snapshot() = default;
DB::~DB() = default;

namespace {

struct OptionsFree {
  void operator()(leveldb_options_t* options) const { leveldb_options_destroy(options); }
};
struct ReadOptionsFree {
  void operator()(leveldb_readoptions_t* options) const { leveldb_readoptions_destroy(options); }
};
using OwnOptions = std::unique_ptr<leveldb_options_t, OptionsFree>;
using OwnReadOptions = std::unique_ptr<leveldb_readoptions_t, ReadOptionsFree>;

class HeldSnapshot final : public Snapshot {
 public:
  explicit HeldSnapshot(const leveldb_snapshot_t* held) : held_(held) {}
  ~HeldSnapshot() override = default;
  const leveldb_snapshot_t* held() const { return held_; }

 private:
  const leveldb_snapshot_t* held_;
};

// The options that the C functions take. Filters and caches that this library did not make are not
// used: they change no result.
OwnOptions Converted(const Options& options) {
  OwnOptions made(leveldb_options_create());
  leveldb_options_set_create_if_missing(made.get(), options.create_if_missing);
  leveldb_options_set_error_if_exists(made.get(), options.error_if_exists);
  leveldb_options_set_write_buffer_size(made.get(), options.write_buffer_size);
  leveldb_options_set_compression(made.get(), static_cast<int>(options.compression));
  if (auto* policy = Made<BloomPolicy>::Find(options.filter_policy)) {
    leveldb_options_set_filter_policy(made.get(), policy->policy());
  }
  if (auto* cache = Made<BlockCache>::Find(options.block_cache)) {
    leveldb_options_set_cache(made.get(), cache->blocks());
  }
  return made;
}

// What Shingle cannot do for these options.
Status Refused(const Options& options) {
  const std::string order = options.comparator->Name();
  if (order != BytewiseComparator()->Name()) {
    return Status::NotSupported(
        "the comparator " + order,
        "Shingle orders keys by their bytes, as leveldb.BytewiseComparator does");
  }
  if (options.env != Env::Default() && Made<MemoryEnv>::Find(options.env) == nullptr) {
    return Status::NotSupported(
        "an environment of the program's own",
        "Shingle does not use it for its files; use Env::Default() or NewMemEnv()");
  }
  return Status::OK();
}

// Where the files of a database are.
std::string Place(const Options& options, const std::string& name) {
  auto* memory = Made<MemoryEnv>::Find(options.env);
  return memory != nullptr ? memory->Inside(name) : name;
}

// Options of writes never change, so there are two for all writes. They live as long as the process.
const leveldb_writeoptions_t* Held(const WriteOptions& options) {
  static leveldb_writeoptions_t* const kBuffered = leveldb_writeoptions_create();
  static leveldb_writeoptions_t* const kSynced = [] {
    leveldb_writeoptions_t* made = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(made, 1);
    return made;
  }();
  return options.sync ? kSynced : kBuffered;
}

// Options of reads that have no snapshot are shared likewise.
class HeldReadOptions {
 public:
  explicit HeldReadOptions(const ReadOptions& options) {
    static leveldb_readoptions_t* const kPlain = leveldb_readoptions_create();
    if (options.snapshot == nullptr && options.fill_cache) {
      held_ = kPlain;
      return;
    }
    own_.reset(leveldb_readoptions_create());
    held_ = own_.get();
    leveldb_readoptions_set_fill_cache(own_.get(), options.fill_cache);
    if (options.snapshot != nullptr) {
      auto* snapshot = static_cast<const HeldSnapshot*>(options.snapshot);
      leveldb_readoptions_set_snapshot(own_.get(), snapshot->held());
    }
  }
  const leveldb_readoptions_t* get() const { return held_; }

 private:
  OwnReadOptions own_;
  const leveldb_readoptions_t* held_;
};

class CursorIterator final : public Iterator {
 public:
  explicit CursorIterator(leveldb_iterator_t* held) : held_(held) {}
  ~CursorIterator() override { leveldb_iter_destroy(held_); }
  bool Valid() const override { return leveldb_iter_valid(held_) != 0; }
  void SeekToFirst() override { leveldb_iter_seek_to_first(held_); }
  void SeekToLast() override { leveldb_iter_seek_to_last(held_); }
  void Seek(const Slice& target) override {
    leveldb_iter_seek(held_, target.data(), target.size());
  }
  void Next() override { leveldb_iter_next(held_); }
  void Prev() override { leveldb_iter_prev(held_); }
  Slice key() const override {
    size_t size = 0;
    const char* data = leveldb_iter_key(held_, &size);
    return Slice(data, size);
  }
  Slice value() const override {
    size_t size = 0;
    const char* data = leveldb_iter_value(held_, &size);
    return Slice(data, size);
  }
  Status status() const override {
    char* error = nullptr;
    leveldb_iter_get_error(held_, &error);
    return Taken(error);
  }

 private:
  leveldb_iterator_t* held_;
};

class ShingleDB final : public DB {
 public:
  explicit ShingleDB(leveldb_t* held) : held_(held) {}
  ~ShingleDB() override { leveldb_close(held_); }

  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    char* error = nullptr;
    leveldb_put(held_, Held(options), key.data(), key.size(), value.data(), value.size(),
                &error);
    return Taken(error);
  }

  Status Delete(const WriteOptions& options, const Slice& key) override {
    char* error = nullptr;
    leveldb_delete(held_, Held(options), key.data(), key.size(), &error);
    return Taken(error);
  }

  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    // LevelDB takes a null batch as a wait for all writes before it.
    if (updates == nullptr) return Status::OK();
    const std::string& contents = WriteBatchInternal::Contents(*updates);
    char* error = nullptr;
    shingle_leveldb_write(held_, Held(options), contents.data(), contents.size(), &error);
    return Taken(error);
  }

  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override {
    // The key may lie in the string that gets the value.
    const std::less_equal<const char*> before;
    const std::string kept =
        before(value->data(), key.data()) && before(key.data(), value->data() + value->size())
            ? key.ToString()
            : std::string();
    const char* const data = kept.empty() ? key.data() : kept.data();
    char* error = nullptr;
    const bool is_found = shingle_leveldb_get(held_, HeldReadOptions(options).get(), data,
                                              key.size(), Assign, value, &error);
    if (error != nullptr) return Taken(error);
    return is_found ? Status::OK() : Status::NotFound(Slice());
  }

  Iterator* NewIterator(const ReadOptions& options) override {
    return new CursorIterator(leveldb_create_iterator(held_, HeldReadOptions(options).get()));
  }

  const Snapshot* GetSnapshot() override {
    return new HeldSnapshot(leveldb_create_snapshot(held_));
  }

  void ReleaseSnapshot(const Snapshot* snapshot) override {
    auto* own = static_cast<const HeldSnapshot*>(snapshot);
    leveldb_release_snapshot(held_, own->held());
    delete own;
  }

  bool GetProperty(const Slice& property, std::string* value) override {
    char* found = leveldb_property_value(held_, property.ToString().c_str());
    if (found == nullptr) return false;
    *value = found;
    leveldb_free(found);
    return true;
  }

  void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) override {
    for (int i = 0; i < n; i++) {
      const char* start = range[i].start.data();
      const char* limit = range[i].limit.data();
      const size_t start_size = range[i].start.size();
      const size_t limit_size = range[i].limit.size();
      leveldb_approximate_sizes(held_, 1, &start, &start_size, &limit, &limit_size, &sizes[i]);
    }
  }

  void CompactRange(const Slice* begin, const Slice* end) override {
    leveldb_compact_range(held_, begin ? begin->data() : nullptr, begin ? begin->size() : 0,
                          end ? end->data() : nullptr, end ? end->size() : 0);
  }

 private:
  leveldb_t* held_;
};

}  // namespace

// What the default implementations of LevelDB do, for classes that derive from DB.
Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  *dbptr = nullptr;
  Status refused = Refused(options);
  if (!refused.ok()) return refused;
  char* error = nullptr;
  leveldb_t* held = leveldb_open(Converted(options).get(), Place(options, name).c_str(), &error);
  if (held != nullptr) *dbptr = new ShingleDB(held);
  return Taken(error);
}

Status DestroyDB(const std::string& name, const Options& options) {
  char* error = nullptr;
  leveldb_destroy_db(Converted(options).get(), Place(options, name).c_str(), &error);
  return Taken(error);
}

Status RepairDB(const std::string& name, const Options& options) {
  char* error = nullptr;
  leveldb_repair_db(Converted(options).get(), Place(options, name).c_str(), &error);
  return Taken(error);
}

Options::Options() : comparator(BytewiseComparator()), env(Env::Default()) {}

}  // namespace leveldb
