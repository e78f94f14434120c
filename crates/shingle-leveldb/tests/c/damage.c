/* Reads a damaged database of 1,000 keys, repairs it, and reads what was saved. */

#include "check.h"

static int read_all(const char *path, const leveldb_options_t *options, int *failed) {
  char *error = NULL;
  char key[16];
  int found = 0;
  size_t length;
  leveldb_t *db = leveldb_open(options, path, &error);
  OK();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  *failed = 0;
  for (int n = 0; n < 1000; n++) {
    snprintf(key, sizeof key, "key%04d", n);
    char *value = leveldb_get(db, read, key, 7, &length, &error);
    if (error != NULL) {
      ++*failed;
      CHECK(value == NULL && length == 0);
      FAILED("Corruption: ");
    }
    found += value != NULL;
    leveldb_free(value);
  }
  int scanned = 0;
  leveldb_iterator_t *it = leveldb_create_iterator(db, read);
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) scanned++;
  leveldb_iter_get_error(it, &error);
  if (*failed > 0) {
    FAILED("Corruption: ");
    CHECK(scanned < 1000);
  } else {
    OK();
    CHECK(scanned == found);
  }
  leveldb_iter_destroy(it);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  return found;
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  char *error = NULL;
  int failed;
  leveldb_options_t *options = leveldb_options_create();
  int before = read_all(arguments[1], options, &failed);
  CHECK(failed > 0 && before + failed == 1000);
  leveldb_repair_db(options, arguments[1], &error);
  OK();
  int after = read_all(arguments[1], options, &failed);
  CHECK(failed == 0 && after >= before && after < 1000);
  printf("%d keys were readable, %d were saved\ndone\n", before, after);
  leveldb_options_destroy(options);
  return 0;
}
