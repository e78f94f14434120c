// Batches. Programs copy them by copying their one member, a string. It has the form that LevelDB
// documents: a sequence number and a count, then for each operation its kind, its key, and the value
// of a put, each behind its length.

#include "leveldb/write_batch.h"

#include <cstdint>
#include <cstring>

#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

namespace {

constexpr size_t kHeadBytes = 12;
constexpr char kDelete = 0;
constexpr char kPut = 1;

void PutLength(std::string* to, size_t length) {
  for (; length >= 0x80; length >>= 7) to->push_back(static_cast<char>(length | 0x80));
  to->push_back(static_cast<char>(length));
}

void PutSlice(std::string* to, const Slice& slice) {
  PutLength(to, slice.size());
  to->append(slice.data(), slice.size());
}

bool TakeSlice(Slice* from, Slice* slice) {
  size_t length = 0;
  for (int shift = 0; shift <= 28; shift += 7) {
    if (from->empty()) return false;
    const unsigned char byte = static_cast<unsigned char>((*from)[0]);
    from->remove_prefix(1);
    length |= static_cast<size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (length > from->size()) return false;
      *slice = Slice(from->data(), length);
      from->remove_prefix(length);
      return true;
    }
  }
  return false;
}

void Count(std::string* rep, uint32_t more) {
  uint32_t count;
  std::memcpy(&count, rep->data() + 8, sizeof count);
  count += more;
  std::memcpy(&(*rep)[8], &count, sizeof count);
}

}  // namespace

WriteBatch::Handler::~Handler() = default;

WriteBatch::WriteBatch() { Clear(); }

WriteBatch::~WriteBatch() = default;

void WriteBatch::Clear() {
  rep_.clear();
  rep_.resize(kHeadBytes);
}

void WriteBatch::Put(const Slice& key, const Slice& value) {
  Count(&rep_, 1);
  rep_.push_back(kPut);
  PutSlice(&rep_, key);
  PutSlice(&rep_, value);
}

void WriteBatch::Delete(const Slice& key) {
  Count(&rep_, 1);
  rep_.push_back(kDelete);
  PutSlice(&rep_, key);
}

size_t WriteBatch::ApproximateSize() const { return rep_.size(); }

void WriteBatch::Append(const WriteBatch& source) {
  uint32_t count;
  std::memcpy(&count, source.rep_.data() + 8, sizeof count);
  Count(&rep_, count);
  rep_.append(source.rep_, kHeadBytes, std::string::npos);
}

Status WriteBatch::Iterate(Handler* handler) const {
  if (rep_.size() < kHeadBytes) return Status::Corruption("malformed WriteBatch (too small)");
  Slice rest(rep_.data() + kHeadBytes, rep_.size() - kHeadBytes);
  while (!rest.empty()) {
    const char kind = rest[0];
    rest.remove_prefix(1);
    Slice key, value;
    if ((kind != kPut && kind != kDelete) || !TakeSlice(&rest, &key)) {
      return Status::Corruption("bad WriteBatch");
    }
    if (kind == kDelete) {
      handler->Delete(key);
      continue;
    }
    if (!TakeSlice(&rest, &value)) return Status::Corruption("bad WriteBatch Put");
    handler->Put(key, value);
  }
  return Status::OK();
}

}  // namespace leveldb
