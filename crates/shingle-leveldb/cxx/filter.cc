// A filter is its bits, and in the last byte how many of them each key has.

#include "filter.h"

#include <algorithm>
#include <cstdint>

#include "leveldb/slice.h"

namespace leveldb {

FilterPolicy::~FilterPolicy() = default;

namespace {

constexpr int kProbesMax = 30;
constexpr size_t kBitsMin = 64;  // small filters would let nearly every key pass

// FNV-1a, and its bits mixed so that the two halves are independent.
uint64_t Hash(const Slice& key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t at = 0; at < key.size(); at++) {
    hash = (hash ^ static_cast<unsigned char>(key[at])) * 0x100000001b3;
  }
  hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

// The bits of a key: a start, and steps of the same odd size.
struct Probes {
  explicit Probes(const Slice& key) : at(Hash(key)), step((at >> 33) | 1) {}
  size_t Next(size_t bits) {
    at += step;
    return at % bits;
  }
  uint64_t at;
  uint64_t step;
};

}  // namespace

BloomPolicy::BloomPolicy(int bits_per_key)
    : policy_(leveldb_filterpolicy_create_bloom(bits_per_key)),
      bits_per_key_(static_cast<size_t>(std::max(bits_per_key, 0))),
      probes_(std::clamp(static_cast<int>(bits_per_key * 0.69), 1, kProbesMax)) {}

BloomPolicy::~BloomPolicy() { leveldb_filterpolicy_destroy(policy_); }

void BloomPolicy::CreateFilter(const Slice* keys, int count, std::string* to) const {
  const size_t wanted = std::max(static_cast<size_t>(count) * bits_per_key_, kBitsMin);
  const size_t bytes = (wanted + 7) / 8;
  const size_t begin = to->size();
  to->resize(begin + bytes, 0);
  to->push_back(static_cast<char>(probes_));
  for (int i = 0; i < count; i++) {
    Probes probes(keys[i]);
    for (int probe = 0; probe < probes_; probe++) {
      const size_t bit = probes.Next(bytes * 8);
      (*to)[begin + bit / 8] |= static_cast<char>(1 << (bit % 8));
    }
  }
}

bool BloomPolicy::KeyMayMatch(const Slice& key, const Slice& filter) const {
  if (filter.size() < 2) return false;
  const int count = filter[filter.size() - 1];
  if (count > kProbesMax) return true;  // of a form that a later version has
  Probes probes(key);
  for (int probe = 0; probe < count; probe++) {
    const size_t bit = probes.Next((filter.size() - 1) * 8);
    if ((filter[bit / 8] & (1 << (bit % 8))) == 0) return false;
  }
  return true;
}

const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) { return new BloomPolicy(bits_per_key); }

}  // namespace leveldb
