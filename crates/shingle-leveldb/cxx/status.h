// Statuses from the texts of the C functions.

#ifndef SHINGLE_LEVELDB_STATUS_H
#define SHINGLE_LEVELDB_STATUS_H

#include "leveldb/status.h"

namespace leveldb {

// The status that a text says; frees the text. Null is no error.
Status Taken(char* text);

}  // namespace leveldb

#endif
