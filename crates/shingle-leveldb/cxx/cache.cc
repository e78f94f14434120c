#include "cache.h"

#include "made.h"

namespace leveldb {

Cache::~Cache() = default;

BlockCache::BlockCache(size_t capacity)
    : blocks_(leveldb_cache_create_lru(capacity)), capacity_(capacity) {
  Made<BlockCache>::Add(this);
}

BlockCache::~BlockCache() {
  Made<BlockCache>::Remove(this);
  for (Entry* entry : entries_) {
    entry->is_listed = false;
    Drop(entry);
  }
  leveldb_cache_destroy(blocks_);
}

Cache::Handle* BlockCache::Insert(const Slice& key, void* value, size_t charge,
                                  void (*deleter)(const Slice& key, void* value)) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto* entry = new Entry;
  entry->key = key.ToString();
  entry->value = value;
  entry->charge = charge;
  entry->deleter = deleter;
  entry->users = 1;
  entry->is_listed = true;
  auto before = found_.find(entry->key);
  if (before != found_.end()) Unlist(before);
  entries_.push_front(entry);
  found_[entry->key] = entries_.begin();
  charge_ += charge;
  Shrink();
  return entry;
}

Cache::Handle* BlockCache::Lookup(const Slice& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = found_.find(key.ToString());
  if (found == found_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  Entry* entry = *found->second;
  entry->users++;
  return entry;
}

void BlockCache::Release(Handle* handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto* entry = static_cast<Entry*>(handle);
  entry->users--;
  if (entry->is_listed) {
    Shrink();
  } else {
    Drop(entry);
  }
}

void* BlockCache::Value(Handle* handle) { return static_cast<Entry*>(handle)->value; }

void BlockCache::Erase(const Slice& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = found_.find(key.ToString());
  if (found != found_.end()) Unlist(found);
}

uint64_t BlockCache::NewId() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ++last_id_;
}

void BlockCache::Prune() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto found = found_.begin(); found != found_.end();) {
    auto next = std::next(found);
    if ((*found->second)->users == 0) Unlist(found);
    found = next;
  }
}

size_t BlockCache::TotalCharge() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return charge_;
}

void BlockCache::Unlist(std::unordered_map<std::string, Entries::iterator>::iterator found) {
  Entry* entry = *found->second;
  entries_.erase(found->second);
  found_.erase(found);
  charge_ -= entry->charge;
  entry->is_listed = false;
  Drop(entry);
}

// Deletes an entry that is in no list and has no users.
void BlockCache::Drop(Entry* entry) {
  if (entry->users > 0 || entry->is_listed) return;
  entry->deleter(entry->key, entry->value);
  delete entry;
}

// Removes what was not used for longest, as far as it has no users.
void BlockCache::Shrink() {
  for (auto at = entries_.end(); charge_ > capacity_ && at != entries_.begin();) {
    --at;
    if ((*at)->users > 0) continue;
    auto found = found_.find((*at)->key);
    at = std::next(at);
    Unlist(found);
  }
}

Cache* NewLRUCache(size_t capacity) { return new BlockCache(capacity); }

}  // namespace leveldb
