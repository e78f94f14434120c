/* A process opens a database, forks, and ends without closing. Its child lives on and runs no
   program. Calls in the child fail, and the database can be opened while it lives. Only for
   Shingle. */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static leveldb_writeoptions_t *write_options;
static leveldb_readoptions_t *read_options;

static void in_child(leveldb_t *db, leveldb_iterator_t *it, const leveldb_snapshot_t *snapshot) {
  char *error = NULL;
  size_t length = 1;
  leveldb_put(db, write_options, "child", 5, "", 0, &error);
  FAILED("forked");
  leveldb_delete(db, write_options, "before", 6, &error);
  FAILED("forked");
  CHECK(leveldb_get(db, read_options, "before", 6, &length, &error) == NULL);
  FAILED("forked");
  leveldb_readoptions_t *old = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(old, snapshot);
  CHECK(leveldb_get(db, old, "before", 6, &length, &error) == NULL);
  FAILED("forked");
  leveldb_readoptions_destroy(old);
  leveldb_iter_seek_to_first(it);
  CHECK(!leveldb_iter_valid(it));
  leveldb_iter_get_error(it, &error);
  FAILED("forked");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_iter_destroy(it);
  leveldb_release_snapshot(db, snapshot);
  leveldb_close(db);
}

static void parent(const char *path, int ready, int rest) {
  char *error = NULL, byte;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t *db = leveldb_open(options, path, &error);
  OK();
  leveldb_put(db, write_options, "before", 6, "1", 1, &error);
  OK();
  leveldb_iterator_t *it = leveldb_create_iterator(db, read_options);
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  int told[2];
  CHECK(pipe(told) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    in_child(db, it, snapshot);
    CHECK(write(told[1], "x", 1) == 1);
    CHECK(write(ready, &(pid_t){getpid()}, sizeof(pid_t)) == sizeof(pid_t));
    /* Until another process has the database. */
    CHECK(read(rest, &byte, 1) == 1);
    CHECK(leveldb_open(options, path, &error) == NULL);
    FAILED("is opened by process");
    CHECK(write(ready, "x", 1) == 1);
    _exit(0);
  }
  close(told[1]);
  CHECK(read(told[0], &byte, 1) == 1); /* the child failed where there is none */
  leveldb_put(db, write_options, "after", 5, "2", 1, &error);
  OK();
  CHECK(leveldb_open(options, path, &error) == NULL);
  FAILED("is opened by this process");
  _exit(0);
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  char *error = NULL;
  int ready[2], rest[2], status;
  pid_t child;
  write_options = leveldb_writeoptions_create();
  read_options = leveldb_readoptions_create();
  CHECK(pipe(ready) == 0 && pipe(rest) == 0);
  pid_t opener = fork();
  CHECK(opener >= 0);
  if (opener == 0) {
    close(rest[1]);
    parent(arguments[1], ready[1], rest[0]);
  }
  close(ready[1]);
  CHECK(waitpid(opener, &status, 0) == opener && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(read(ready[0], &child, sizeof child) == sizeof child);
  CHECK(kill(child, 0) == 0);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_t *db = leveldb_open(options, arguments[1], &error);
  OK();
  size_t length;
  for (int n = 0; n < 3; n++) {
    const char *key = (const char *[]){"before", "after", "child"}[n];
    char *value = leveldb_get(db, read_options, key, strlen(key), &length, &error);
    OK();
    CHECK((value != NULL) == (n < 2));
    leveldb_free(value);
  }
  char byte;
  CHECK(write(rest[1], "x", 1) == 1);
  CHECK(read(ready[0], &byte, 1) == 1); /* the child failed where there is none */
  leveldb_close(db);
  leveldb_options_destroy(options);
  leveldb_readoptions_destroy(read_options);
  leveldb_writeoptions_destroy(write_options);
  printf("done\n");
  return 0;
}
