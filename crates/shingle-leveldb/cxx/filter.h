// Bloom filters, as programs ask for them, and environments that Shingle cannot use.

#ifndef SHINGLE_LEVELDB_FILTER_H
#define SHINGLE_LEVELDB_FILTER_H

#include <string>

#include "leveldb/c.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"

namespace leveldb {

// Shingle's own filters, with these bits for each key.
class BloomPolicy final : public FilterPolicy {
 public:
  explicit BloomPolicy(int bits_per_key);
  ~BloomPolicy() override;
  leveldb_filterpolicy_t* policy() const { return policy_; }
  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }
  // A program that asks for a filter itself gets one that lets every key pass.
  void CreateFilter(const Slice*, int, std::string*) const override {}
  bool KeyMayMatch(const Slice&, const Slice&) const override { return true; }

 private:
  leveldb_filterpolicy_t* policy_;
};

// What NewMemEnv gives: opening a database with it is refused.
class EnvInMemory final : public EnvWrapper {
 public:
  explicit EnvInMemory(Env* base) : EnvWrapper(base) {}
};

}  // namespace leveldb

#endif
