// The environment that programs make for files in memory.

#ifndef SHINGLE_LEVELDB_MEMORY_ENV_H
#define SHINGLE_LEVELDB_MEMORY_ENV_H

#include <string>
#include <vector>

#include "leveldb/env.h"

namespace leveldb {

// Files lie in a directory of their own, in memory where the system has a file system there, and go
// with the environment. A path of the program is one name in it, so directories need not exist.
class MemoryEnv final : public EnvWrapper {
 public:
  explicit MemoryEnv(Env* base);
  ~MemoryEnv() override;

  // Where a file or a database of this path is.
  std::string Inside(const std::string& path) const;

  Status NewSequentialFile(const std::string& name, SequentialFile** result) override;
  Status NewRandomAccessFile(const std::string& name, RandomAccessFile** result) override;
  Status NewWritableFile(const std::string& name, WritableFile** result) override;
  Status NewAppendableFile(const std::string& name, WritableFile** result) override;
  bool FileExists(const std::string& name) override;
  Status GetChildren(const std::string& name, std::vector<std::string>* result) override;
  Status RemoveFile(const std::string& name) override;
  Status CreateDir(const std::string&) override { return Status::OK(); }
  Status RemoveDir(const std::string&) override { return Status::OK(); }
  Status GetFileSize(const std::string& name, uint64_t* size) override;
  Status RenameFile(const std::string& from, const std::string& to) override;
  Status LockFile(const std::string& name, FileLock** lock) override;
  Status UnlockFile(FileLock* lock) override;
  Status GetTestDirectory(std::string* path) override;
  Status NewLogger(const std::string& name, Logger** result) override;

 private:
  Status Missing(const std::string& name);

  std::string root_;
};

}  // namespace leveldb

#endif
