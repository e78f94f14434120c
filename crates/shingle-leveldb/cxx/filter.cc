// A filter is its bits, and in the last byte how many of them each key has.

#include "filter.h"

#include <algorithm>
#include <cstdint>

#include "leveldb/slice.h"
#include "made.h"

namespace leveldb {

FilterPolicy::~FilterPolicy() = default;

namespace {

constexpr int kProbesMax = 30;
constexpr size_t kBitsMin = 64;  // small filters would let nearly every key pass

// FNV-1a.
uint64_t Hash(const Slice& key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t at = 0; at < key.size(); at++) {
    hash = (hash ^ static_cast<unsigned char>(key[at])) * 0x100000001b3;
  }
  return hash;
}

// The bits of a key: numbers of a generator that begins with its hash.
class Probes {
 public:
  explicit Probes(const Slice& key) : state_(Hash(key)) {}
  size_t Next(size_t bits) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return (state_ >> 33) % bits;
  }

 private:
  uint64_t state_;
};

}  // namespace

BloomPolicy::BloomPolicy(int bits_per_key)
    : policy_(leveldb_filterpolicy_create_bloom(bits_per_key)),
      bits_per_key_(static_cast<size_t>(std::max(bits_per_key, 0))),
      probes_(std::clamp(static_cast<int>(bits_per_key * 0.69), 1, kProbesMax)) {
  Made<BloomPolicy>::Add(this);
}

BloomPolicy::~BloomPolicy() {
  Made<BloomPolicy>::Remove(this);
  leveldb_filterpolicy_destroy(policy_);
}

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
