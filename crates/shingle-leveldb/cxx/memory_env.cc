#include "memory_env.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "leveldb/helpers/memenv.h"
#include "leveldb/status.h"
#include "made.h"

namespace leveldb {

namespace {

std::string NewDirectory() {
  const char* given = std::getenv("TMPDIR");
  for (const char* parent : {"/dev/shm", given != nullptr ? given : "/tmp"}) {
    std::string name = std::string(parent) + "/shingle-leveldb-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) return name;
  }
  return std::string();  // every use is an error
}

// A path as one name, without slashes.
std::string Escaped(const std::string& path) {
  std::string name;
  for (const char byte : path) {
    if (byte == '/') {
      name += "%2F";
    } else if (byte == '%') {
      name += "%25";
    } else {
      name += byte;
    }
  }
  return name;
}

std::string Unescaped(const std::string& name) {
  std::string path;
  for (size_t at = 0; at < name.size(); at++) {
    if (name[at] == '%') {
      path += name.compare(at, 3, "%2F") == 0 ? '/' : '%';
      at += 2;
    } else {
      path += name[at];
    }
  }
  return path;
}

class Silent final : public Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

}  // namespace

MemoryEnv::MemoryEnv(Env* base) : EnvWrapper(base), root_(NewDirectory()) {
  Made<MemoryEnv>::Add(this);
}

MemoryEnv::~MemoryEnv() {
  Made<MemoryEnv>::Remove(this);
  if (root_.empty()) return;
  std::error_code ignored;  // what is left is left in a directory for temporary files
  std::filesystem::remove_all(root_, ignored);
}

std::string MemoryEnv::Inside(const std::string& path) const { return root_ + "/" + Escaped(path); }

// An error where there is no file of this name.
Status MemoryEnv::Missing(const std::string& name) {
  return FileExists(name) ? Status::OK() : Status::IOError(name, "File not found");
}

Status MemoryEnv::NewSequentialFile(const std::string& name, SequentialFile** result) {
  *result = nullptr;
  const Status missing = Missing(name);
  return missing.ok() ? target()->NewSequentialFile(Inside(name), result) : missing;
}

Status MemoryEnv::NewRandomAccessFile(const std::string& name, RandomAccessFile** result) {
  *result = nullptr;
  const Status missing = Missing(name);
  return missing.ok() ? target()->NewRandomAccessFile(Inside(name), result) : missing;
}

Status MemoryEnv::NewWritableFile(const std::string& name, WritableFile** result) {
  return target()->NewWritableFile(Inside(name), result);
}

Status MemoryEnv::NewAppendableFile(const std::string& name, WritableFile** result) {
  return target()->NewAppendableFile(Inside(name), result);
}

bool MemoryEnv::FileExists(const std::string& name) { return target()->FileExists(Inside(name)); }

Status MemoryEnv::GetChildren(const std::string& name, std::vector<std::string>* result) {
  result->clear();
  std::vector<std::string> all;
  const Status listed = target()->GetChildren(root_, &all);
  const std::string begin = Escaped(name + "/");
  for (const std::string& child : all) {
    if (child.size() > begin.size() && child.compare(0, begin.size(), begin) == 0) {
      result->push_back(Unescaped(child.substr(begin.size())));
    }
  }
  return listed;
}

Status MemoryEnv::RemoveFile(const std::string& name) {
  const Status missing = Missing(name);
  return missing.ok() ? target()->RemoveFile(Inside(name)) : missing;
}

Status MemoryEnv::GetFileSize(const std::string& name, uint64_t* size) {
  const Status missing = Missing(name);
  return missing.ok() ? target()->GetFileSize(Inside(name), size) : missing;
}

Status MemoryEnv::RenameFile(const std::string& from, const std::string& to) {
  const Status missing = Missing(from);
  return missing.ok() ? target()->RenameFile(Inside(from), Inside(to)) : missing;
}

Status MemoryEnv::LockFile(const std::string&, FileLock** lock) {
  *lock = new FileLock;
  return Status::OK();
}

Status MemoryEnv::UnlockFile(FileLock* lock) {
  delete lock;
  return Status::OK();
}

Status MemoryEnv::GetTestDirectory(std::string* path) {
  *path = "/test";
  return Status::OK();
}

Status MemoryEnv::NewLogger(const std::string&, Logger** result) {
  *result = new Silent;
  return Status::OK();
}

Env* NewMemEnv(Env* base) { return new MemoryEnv(base); }

}  // namespace leveldb
