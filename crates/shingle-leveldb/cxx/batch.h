// Batches, for the C functions.

#ifndef SHINGLE_LEVELDB_BATCH_H
#define SHINGLE_LEVELDB_BATCH_H

#include "leveldb/c.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"

namespace leveldb {

// Adds the operations of `from` to `to`.
Status CopyBatch(const WriteBatch& from, leveldb_writebatch_t* to);

}  // namespace leveldb

#endif
