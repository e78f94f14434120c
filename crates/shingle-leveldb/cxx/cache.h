// The cache that programs make for a database.

#ifndef SHINGLE_LEVELDB_CACHE_H
#define SHINGLE_LEVELDB_CACHE_H

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "leveldb/c.h"
#include "leveldb/cache.h"

namespace leveldb {

// Blocks of databases lie in Shingle's cache of this capacity; what a program puts into it itself lies
// here, in the order of its last use.
class BlockCache final : public Cache {
 public:
  explicit BlockCache(size_t capacity);
  ~BlockCache() override;

  leveldb_cache_t* blocks() const { return blocks_; }

  Handle* Insert(const Slice& key, void* value, size_t charge,
                 void (*deleter)(const Slice& key, void* value)) override;
  Handle* Lookup(const Slice& key) override;
  void Release(Handle* handle) override;
  void* Value(Handle* handle) override;
  void Erase(const Slice& key) override;
  uint64_t NewId() override;
  void Prune() override;
  size_t TotalCharge() const override;

 private:
  struct Entry : Handle {
    std::string key;
    void* value;
    size_t charge;
    void (*deleter)(const Slice& key, void* value);
    int users;
    bool is_listed;
  };
  using Entries = std::list<Entry*>;

  void Unlist(std::unordered_map<std::string, Entries::iterator>::iterator found);
  void Drop(Entry* entry);
  void Shrink();

  leveldb_cache_t* blocks_;
  const size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;  // the last used first
  std::unordered_map<std::string, Entries::iterator> found_;
  size_t charge_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace leveldb

#endif
