// The environment of the system, for programs that use LevelDB's: files, directories, locks, clocks,
// threads. Databases do not use it.

#include "leveldb/env.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

Env::Env() = default;
Env::~Env() = default;
EnvWrapper::~EnvWrapper() = default;
SequentialFile::~SequentialFile() = default;
RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
Logger::~Logger() = default;
FileLock::~FileLock() = default;

// Old programs override the functions that delete, new ones those that remove.
Status Env::RemoveDir(const std::string& name) { return DeleteDir(name); }
Status Env::DeleteDir(const std::string& name) { return RemoveDir(name); }
Status Env::RemoveFile(const std::string& name) { return DeleteFile(name); }
Status Env::DeleteFile(const std::string& name) { return RemoveFile(name); }
Status Env::NewAppendableFile(const std::string& name, WritableFile**) {
  return Status::NotSupported("NewAppendableFile", name);
}

namespace {

Status Failed(const std::string& name, int number) {
  const std::string text = std::strerror(number);
  return number == ENOENT ? Status::NotFound(name, text) : Status::IOError(name, text);
}

Status Failed(const std::string& name, const std::error_code& error) {
  return error ? Failed(name, error.value()) : Status::OK();
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int Close() { return ::close(std::exchange(number_, -1)); }

 private:
  int number_;
};

class ReadInOrder final : public SequentialFile {
 public:
  ReadInOrder(std::string name, int number) : name_(std::move(name)), file_(number) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    for (;;) {
      const ssize_t count = ::read(file_.number(), scratch, n);
      if (count >= 0) {
        *result = Slice(scratch, static_cast<size_t>(count));
        return Status::OK();
      }
      if (errno != EINTR) return Failed(name_, errno);
    }
  }

  Status Skip(uint64_t n) override {
    const off_t at = ::lseek(file_.number(), static_cast<off_t>(n), SEEK_CUR);
    return at < 0 ? Failed(name_, errno) : Status::OK();
  }

 private:
  std::string name_;
  Descriptor file_;
};

class ReadAnywhere final : public RandomAccessFile {
 public:
  ReadAnywhere(std::string name, int number) : name_(std::move(name)), file_(number) {}

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    const ssize_t count = ::pread(file_.number(), scratch, n, static_cast<off_t>(offset));
    *result = Slice(scratch, count < 0 ? 0 : static_cast<size_t>(count));
    return count < 0 ? Failed(name_, errno) : Status::OK();
  }

 private:
  std::string name_;
  Descriptor file_;
};

class Written final : public WritableFile {
 public:
  Written(std::string name, int number) : name_(std::move(name)), file_(number) {}
  ~Written() override { Flush(); }

  Status Append(const Slice& data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBufferBytes ? Status::OK() : Flush();
  }

  Status Close() override {
    Status flushed = Flush();
    if (file_.Close() < 0 && flushed.ok()) return Failed(name_, errno);
    return flushed;
  }

  Status Flush() override {
    size_t done = 0;
    while (done < buffer_.size()) {
      const ssize_t count =
          ::write(file_.number(), buffer_.data() + done, buffer_.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        buffer_.erase(0, done);
        return Failed(name_, errno);
      }
      done += static_cast<size_t>(count);
    }
    buffer_.clear();
    return Status::OK();
  }

  Status Sync() override {
    Status flushed = Flush();
    if (flushed.ok() && ::fdatasync(file_.number()) < 0) return Failed(name_, errno);
    return flushed;
  }

 private:
  static constexpr size_t kBufferBytes = 64 << 10;
  std::string name_;
  Descriptor file_;
  std::string buffer_;
};

class HeldLock final : public FileLock {
 public:
  HeldLock(std::string name, int number) : name(std::move(name)), file(number) {}
  const std::string name;
  Descriptor file;
};

class FileLogger final : public Logger {
 public:
  explicit FileLogger(std::FILE* file) : file_(file) {}
  ~FileLogger() override { std::fclose(file_); }

  void Logv(const char* format, std::va_list arguments) override {
    const auto now = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    std::tm parts;
    ::localtime_r(&seconds, &parts);
    char time[32];
    std::strftime(time, sizeof time, "%Y/%m/%d-%H:%M:%S", &parts);
    std::lock_guard<std::mutex> lock(mutex_);
    std::fprintf(file_, "%s ", time);
    std::vfprintf(file_, format, arguments);
    std::fputc('\n', file_);
    std::fflush(file_);
  }

 private:
  std::mutex mutex_;
  std::FILE* file_;
};

class SystemEnv final : public Env {
 public:
  Status NewSequentialFile(const std::string& name, SequentialFile** result) override {
    return Opened<ReadInOrder>(name, O_RDONLY, result);
  }

  Status NewRandomAccessFile(const std::string& name, RandomAccessFile** result) override {
    return Opened<ReadAnywhere>(name, O_RDONLY, result);
  }

  Status NewWritableFile(const std::string& name, WritableFile** result) override {
    return Opened<Written>(name, O_WRONLY | O_CREAT | O_TRUNC, result);
  }

  Status NewAppendableFile(const std::string& name, WritableFile** result) override {
    return Opened<Written>(name, O_WRONLY | O_CREAT | O_APPEND, result);
  }

  bool FileExists(const std::string& name) override { return ::access(name.c_str(), F_OK) == 0; }

  Status GetChildren(const std::string& name, std::vector<std::string>* result) override {
    *result = {".", ".."};
    std::error_code error;
    for (std::filesystem::directory_iterator at(name, error), end; !error && at != end;
         at.increment(error)) {
      result->push_back(at->path().filename().string());
    }
    if (error) result->clear();
    return Failed(name, error);
  }

  Status RemoveFile(const std::string& name) override {
    return ::unlink(name.c_str()) < 0 ? Failed(name, errno) : Status::OK();
  }

  Status CreateDir(const std::string& name) override {
    return ::mkdir(name.c_str(), 0755) < 0 ? Failed(name, errno) : Status::OK();
  }

  Status RemoveDir(const std::string& name) override {
    return ::rmdir(name.c_str()) < 0 ? Failed(name, errno) : Status::OK();
  }

  Status GetFileSize(const std::string& name, uint64_t* size) override {
    std::error_code error;
    *size = std::filesystem::file_size(name, error);
    if (error) *size = 0;
    return Failed(name, error);
  }

  Status RenameFile(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) < 0 ? Failed(from, errno) : Status::OK();
  }

  Status LockFile(const std::string& name, FileLock** lock) override {
    *lock = nullptr;
    std::lock_guard<std::mutex> guard(mutex_);
    // The system's locks do not keep a process from itself. And where the process has the lock, the
    // file must not be opened again: closing it would free the lock.
    if (!locked_.insert(name).second) return Status::IOError("lock " + name, "already held by process");
    const int number = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (number < 0 || ::fcntl(number, F_SETLK, &whole) < 0) {
      const Status failed = Failed(number < 0 ? name : "lock " + name, errno);
      if (number >= 0) ::close(number);
      locked_.erase(name);
      return failed;
    }
    *lock = new HeldLock(name, number);
    return Status::OK();
  }

  Status UnlockFile(FileLock* lock) override {
    auto* held = static_cast<HeldLock*>(lock);
    {
      std::lock_guard<std::mutex> guard(mutex_);
      locked_.erase(held->name);
    }
    delete held;
    return Status::OK();
  }

  void Schedule(void (*function)(void* argument), void* argument) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!works_) {
      works_ = true;
      std::thread([this] { Work(); }).detach();
    }
    work_.emplace_back(function, argument);
    has_work_.notify_one();
  }

  void StartThread(void (*function)(void* argument), void* argument) override {
    std::thread(function, argument).detach();
  }

  Status GetTestDirectory(std::string* path) override {
    const char* given = std::getenv("TEST_TMPDIR");
    *path = given != nullptr && *given != 0 ? given
                                            : "/tmp/leveldbtest-" + std::to_string(::geteuid());
    ::mkdir(path->c_str(), 0755);
    return Status::OK();
  }

  Status NewLogger(const std::string& name, Logger** result) override {
    *result = nullptr;
    std::FILE* file = std::fopen(name.c_str(), "ae");
    if (file == nullptr) return Failed(name, errno);
    *result = new FileLogger(file);
    return Status::OK();
  }

  uint64_t NowMicros() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }

  void SleepForMicroseconds(int micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }

 private:
  template <typename File, typename Base>
  Status Opened(const std::string& name, int flags, Base** result) {
    *result = nullptr;
    const int number = ::open(name.c_str(), flags | O_CLOEXEC, 0644);
    if (number < 0) return Failed(name, errno);
    *result = new File(name, number);
    return Status::OK();
  }

  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      has_work_.wait(lock, [this] { return !work_.empty(); });
      const auto next = work_.front();
      work_.pop_front();
      lock.unlock();
      next.first(next.second);
    }
  }

  std::mutex mutex_;
  std::set<std::string> locked_;
  bool works_ = false;
  std::condition_variable has_work_;
  std::deque<std::pair<void (*)(void*), void*>> work_;
};

}  // namespace

Env* Env::Default() {
  static Env* const kSystem = new SystemEnv;  // lives as long as the process
  return kSystem;
}

void Log(Logger* log, const char* format, ...) {
  if (log == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  log->Logv(format, arguments);
  va_end(arguments);
}

Status WriteStringToFile(Env* env, const Slice& data, const std::string& name) {
  WritableFile* file;
  Status status = env->NewWritableFile(name, &file);
  if (!status.ok()) return status;
  status = file->Append(data);
  if (status.ok()) status = file->Close();
  delete file;
  if (!status.ok()) env->RemoveFile(name);
  return status;
}

Status ReadFileToString(Env* env, const std::string& name, std::string* data) {
  data->clear();
  SequentialFile* file = nullptr;
  Status status = env->NewSequentialFile(name, &file);
  std::vector<char> space(8192);
  while (status.ok()) {
    Slice read;
    status = file->Read(space.size(), &read, space.data());
    if (read.empty()) break;
    data->append(read.data(), read.size());
  }
  delete file;
  return status;
}

}  // namespace leveldb
