// The order of bytes.

#include "leveldb/comparator.h"

#include <algorithm>
#include <string>

#include "leveldb/slice.h"

namespace leveldb {

Comparator::~Comparator() = default;

namespace {

class Bytewise final : public Comparator {
 public:
  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    const size_t both = std::min(start->size(), limit.size());
    size_t at = 0;
    while (at < both && (*start)[at] == limit[at]) at++;
    if (at == both) return;
    const auto byte = static_cast<unsigned char>((*start)[at]);
    if (byte < 0xff && byte + 1 < static_cast<unsigned char>(limit[at])) {
      (*start)[at]++;
      start->resize(at + 1);
    }
  }

  void FindShortSuccessor(std::string* key) const override {
    for (size_t at = 0; at < key->size(); at++) {
      if (static_cast<unsigned char>((*key)[at]) != 0xff) {
        (*key)[at]++;
        key->resize(at + 1);
        return;
      }
    }
  }
};

}  // namespace

const Comparator* BytewiseComparator() {
  static const Bytewise* const kBytewise = new Bytewise;  // lives as long as the process
  return kBytewise;
}

}  // namespace leveldb
