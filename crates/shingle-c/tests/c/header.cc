// The header is C++17, and its names link from C++.
#include <string>

#include "shingle.h"

int main(int, char **arguments) {
  shingle_db *db = nullptr;
  shingle_keyspace *keyspace = nullptr;
  shingle_value value;
  if (shingle_open(arguments[1], nullptr, &db, nullptr) != SHINGLE_OK) return 1;
  if (shingle_default_keyspace(db, &keyspace, nullptr) != SHINGLE_OK) return 2;
  const std::string key = "apple", text = "red";
  const shingle_slice bytes = shingle_bytes(text.data(), text.size());
  if (shingle_put(keyspace, SHINGLE_TEXT(key.c_str()), bytes, SHINGLE_SYNCED, nullptr)) return 3;
  if (shingle_get(keyspace, SHINGLE_TEXT("apple"), &value, nullptr)) return 4;
  const shingle_slice found = value.bytes;
  const bool is_same = std::string(static_cast<const char *>(found.data), found.size) == text;
  shingle_value_free(&value);
  shingle_keyspace_free(keyspace);
  return shingle_close(db, nullptr) == SHINGLE_OK && is_same ? 0 : 5;
}
