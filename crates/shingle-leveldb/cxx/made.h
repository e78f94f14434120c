// Which things of a class this library has made.

#ifndef SHINGLE_LEVELDB_MADE_H
#define SHINGLE_LEVELDB_MADE_H

#include <mutex>
#include <unordered_set>

namespace leveldb {

// A program hands in caches, filters and environments of its own classes, too. A dynamic_cast of
// these would need their type information, which a program that was compiled with -fno-rtti does
// not have. So each class of this library that is told apart remembers its things.
template <typename Thing>
class Made {
 public:
  static void Add(const Thing* thing) {
    std::lock_guard<std::mutex> lock(All().mutex_);
    All().things_.insert(thing);
  }

  static void Remove(const Thing* thing) {
    std::lock_guard<std::mutex> lock(All().mutex_);
    All().things_.erase(thing);
  }

  // The thing as what it is; null where this library did not make it.
  template <typename Base>
  static const Thing* Find(const Base* base) {
    const auto* thing = static_cast<const Thing*>(base);
    std::lock_guard<std::mutex> lock(All().mutex_);
    return All().things_.count(thing) > 0 ? thing : nullptr;
  }

 private:
  static Made& All() {
    static Made* const kAll = new Made;  // lives as long as the process
    return *kAll;
  }

  std::mutex mutex_;
  std::unordered_set<const Thing*> things_;
};

}  // namespace leveldb

#endif
