// Files of LevelDB's tables: Shingle's tables have a form of their own.

#include "leveldb/dumpfile.h"
#include "leveldb/env.h"
#include "leveldb/status.h"

namespace leveldb {

Status DumpFile(Env*, const std::string& name, WritableFile*) {
  return Status::NotSupported("dump " + name, "use `shingle dump` for files of Shingle");
}

}  // namespace leveldb
