/* Does one thing with a database: open, create, new, destroy, repair. Says OK, or the error.
   With a third argument it does so without the rights of root. */

#include <unistd.h>

#include "check.h"

int main(int count, char **arguments) {
  CHECK(count == 3 || count == 4);
  const char *action = arguments[1], *path = arguments[2];
  char *error = NULL;
  if (count == 4 && getuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, strcmp(action, "open") != 0);
  leveldb_options_set_error_if_exists(options, strcmp(action, "new") == 0);
  if (strcmp(action, "destroy") == 0) {
    leveldb_destroy_db(options, path, &error);
  } else if (strcmp(action, "repair") == 0) {
    leveldb_repair_db(options, path, &error);
  } else {
    leveldb_t *db = leveldb_open(options, path, &error);
    CHECK((db == NULL) == (error != NULL));
    leveldb_close(db);
  }
  leveldb_options_destroy(options);
  printf("%s\n", error == NULL ? "OK" : error);
  leveldb_free(error);
  return 0;
}
