// What all iterators have: functions that are called when one goes. And iterators without entries.

#include "leveldb/iterator.h"

#include <cassert>

#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

Iterator::Iterator() {
  cleanup_head_.function = nullptr;
  cleanup_head_.next = nullptr;
}

Iterator::~Iterator() {
  if (cleanup_head_.IsEmpty()) return;
  cleanup_head_.Run();
  for (CleanupNode* node = cleanup_head_.next; node != nullptr;) {
    node->Run();
    CleanupNode* next = node->next;
    delete node;
    node = next;
  }
}

void Iterator::RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
  assert(function != nullptr);
  CleanupNode* node = &cleanup_head_;
  if (!node->IsEmpty()) {
    node = new CleanupNode();
    node->next = cleanup_head_.next;
    cleanup_head_.next = node;
  }
  node->function = function;
  node->arg1 = arg1;
  node->arg2 = arg2;
}

namespace {

class WithoutEntries final : public Iterator {
 public:
  explicit WithoutEntries(const Status& status) : status_(status) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void Next() override { assert(false); }
  void Prev() override { assert(false); }
  Slice key() const override { return Slice(); }
  Slice value() const override { return Slice(); }
  Status status() const override { return status_; }

 private:
  Status status_;
};

}  // namespace

Iterator* NewEmptyIterator() { return new WithoutEntries(Status::OK()); }

Iterator* NewErrorIterator(const Status& status) { return new WithoutEntries(status); }

}  // namespace leveldb
