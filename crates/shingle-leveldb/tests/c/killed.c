/* Writes without a sync and is killed; or counts what is there. */

#include <signal.h>
#include <unistd.h>

#include "check.h"

int main(int count, char **arguments) {
  CHECK(count == 3);
  char *error = NULL;
  char key[16];
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t *db = leveldb_open(options, arguments[1], &error);
  OK();
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  if (strcmp(arguments[2], "write") == 0) {
    for (int n = 0; n < 1000; n++) {
      snprintf(key, sizeof key, "key%04d", n);
      leveldb_put(db, write, key, 7, key, 7, &error);
      OK();
    }
    kill(getpid(), SIGKILL);
  }
  int found = 0;
  leveldb_iterator_t *it = leveldb_create_iterator(db, read);
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) found++;
  printf("%d keys\n", found);
  leveldb_iter_destroy(it);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
  leveldb_close(db);
  leveldb_options_destroy(options);
  return 0;
}
