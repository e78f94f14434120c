// What the test programs share. A failed check ends the program.

#ifndef CHECK_H
#define CHECK_H

#include <cstdlib>
#include <iostream>
#include <string>

#include "leveldb/slice.h"
#include "leveldb/status.h"

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::cerr << __FILE__ << ":" << __LINE__ << ": not so: " << #condition << std::endl;  \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

#define SUCCEEDS(expression)                                                                      \
  do {                                                                                      \
    const leveldb::Status status_ = (expression);                                           \
    if (!status_.ok()) {                                                                    \
      std::cerr << __FILE__ << ":" << __LINE__ << ": " << status_.ToString() << std::endl;  \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

// The kind of a status: its text up to the message.
inline std::string Kind(const leveldb::Status& status) {
  const std::string text = status.ToString();
  return text.substr(0, text.find(':'));
}

inline void Show(const std::string& what, const leveldb::Slice& slice) {
  std::cout << what << ": " << slice.size() << " " << slice.ToString().substr(0, 40) << "\n";
}

#endif
