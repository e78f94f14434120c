// Bloom filters, as programs ask for them.

#ifndef SHINGLE_LEVELDB_FILTER_H
#define SHINGLE_LEVELDB_FILTER_H

#include <string>

#include "leveldb/c.h"
#include "leveldb/filter_policy.h"

namespace leveldb {

// Databases with this policy have Shingle's own filters, with these bits for each key. A program that
// asks for a filter itself gets one that this class makes.
class BloomPolicy final : public FilterPolicy {
 public:
  explicit BloomPolicy(int bits_per_key);
  ~BloomPolicy() override;
  leveldb_filterpolicy_t* policy() const { return policy_; }
  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }
  void CreateFilter(const Slice* keys, int count, std::string* to) const override;
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override;

 private:
  leveldb_filterpolicy_t* policy_;
  size_t bits_per_key_;
  int probes_;
};

}  // namespace leveldb

#endif
