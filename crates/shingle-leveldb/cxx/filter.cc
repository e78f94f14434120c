#include "filter.h"

#include "leveldb/helpers/memenv.h"

namespace leveldb {

FilterPolicy::~FilterPolicy() = default;

BloomPolicy::BloomPolicy(int bits_per_key)
    : policy_(leveldb_filterpolicy_create_bloom(bits_per_key)) {}

BloomPolicy::~BloomPolicy() { leveldb_filterpolicy_destroy(policy_); }

const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) { return new BloomPolicy(bits_per_key); }

Env* NewMemEnv(Env* base) { return new EnvInMemory(base); }

}  // namespace leveldb
