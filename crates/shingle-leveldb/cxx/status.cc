// Statuses. The state of one is that of LevelDB, which its inline functions read: the length of the
// message in 4 bytes, the code, and the message.

#include "status.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "leveldb/c.h"

namespace leveldb {

static constexpr size_t kHeadBytes = 5;

const char* Status::CopyState(const char* state) {
  uint32_t size;
  std::memcpy(&size, state, sizeof size);
  char* copy = new char[size + kHeadBytes];
  std::memcpy(copy, state, size + kHeadBytes);
  return copy;
}

Status::Status(Code code, const Slice& message, const Slice& more) {
  std::string text = message.ToString();
  if (!more.empty()) text += ": " + more.ToString();
  const uint32_t size = static_cast<uint32_t>(text.size());
  char* state = new char[size + kHeadBytes];
  std::memcpy(state, &size, sizeof size);
  state[4] = static_cast<char>(code);
  std::memcpy(state + kHeadBytes, text.data(), size);
  state_ = state;
}

std::string Status::ToString() const {
  if (state_ == nullptr) return "OK";
  static const char* const kNames[] = {"OK",
                                       "NotFound: ",
                                       "Corruption: ",
                                       "Not implemented: ",
                                       "Invalid argument: ",
                                       "IO error: "};
  uint32_t size;
  std::memcpy(&size, state_, sizeof size);
  return kNames[code()] + std::string(state_ + kHeadBytes, size);
}

Status Taken(char* text) {
  if (text == nullptr) return Status::OK();
  const std::string all(text);
  leveldb_free(text);
  const size_t end = all.find(": ");
  const std::string kind = all.substr(0, end);
  const std::string message = end == std::string::npos ? all : all.substr(end + 2);
  if (kind == "Corruption") return Status::Corruption(message);
  if (kind == "Not implemented") return Status::NotSupported(message);
  if (kind == "Invalid argument") return Status::InvalidArgument(message);
  return Status::IOError(message);
}

}  // namespace leveldb
