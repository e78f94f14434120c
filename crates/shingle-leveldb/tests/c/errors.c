/* What fails, and how it says so. Only for Shingle: arguments are a path for a database, and a
   directory with files of LevelDB. */

#include "check.h"

static int compare(void *state, const char *a, size_t a_length, const char *b, size_t b_length) {
  (void)state, (void)a, (void)a_length, (void)b, (void)b_length;
  return 0;
}

static const char *name(void *state) {
  (void)state;
  return "test.Backwards";
}

static void nothing(void *state) { (void)state; }

static void orders(leveldb_options_t *options, const char *path) {
  char *error = NULL;
  leveldb_comparator_t *order = leveldb_comparator_create(NULL, nothing, compare, name);
  leveldb_options_set_comparator(options, order);
  CHECK(leveldb_open(options, path, &error) == NULL);
  FAILED("Not implemented: the comparator \"test.Backwards\"");
  leveldb_repair_db(options, path, &error);
  FAILED("Not implemented: ");
  leveldb_options_set_comparator(options, NULL);
  leveldb_comparator_destroy(order);
}

static void foreign(leveldb_options_t *options, const char *path) {
  char *error = NULL;
  leveldb_options_set_create_if_missing(options, 1);
  CHECK(leveldb_open(options, path, &error) == NULL);
  FAILED("import --format leveldb");
  leveldb_repair_db(options, path, &error);
  FAILED("import --format leveldb");
  leveldb_destroy_db(options, path, &error);
  FAILED("Corruption: ");
}

static void long_keys(leveldb_t *db) {
  char *error = NULL;
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  const size_t most = 65535;
  char *key = malloc(most + 1);
  size_t length = 1;
  memset(key, 'k', most + 1);
  leveldb_put(db, write, key, most, "v", 1, &error);
  OK();
  leveldb_put(db, write, key, most + 1, "v", 1, &error);
  FAILED("Invalid argument: ");
  char *value = leveldb_get(db, read, key, most, &length, &error);
  OK();
  CHECK(value != NULL && length == 1 && value[0] == 'v');
  leveldb_free(value);
  CHECK(leveldb_get(db, read, key, most + 1, &length, &error) == NULL && length == 0);
  OK();
  leveldb_delete(db, write, key, most + 1, &error);
  OK();
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_delete(batch, key, most + 1);
  leveldb_writebatch_put(batch, "fine", 4, "", 0);
  leveldb_write(db, write, batch, &error);
  OK();
  leveldb_writebatch_put(batch, "unwritten", 9, "", 0);
  leveldb_writebatch_put(batch, key, most + 1, "", 0);
  leveldb_write(db, write, batch, &error);
  FAILED("Invalid argument: ");
  CHECK(leveldb_get(db, read, "unwritten", 9, &length, &error) == NULL);
  OK();
  value = leveldb_get(db, read, "fine", 4, &length, &error);
  CHECK(value != NULL && length == 0);
  leveldb_free(value);
  leveldb_iterator_t *it = leveldb_create_iterator(db, read);
  leveldb_iter_seek(it, key, most + 1);
  CHECK(!leveldb_iter_valid(it));
  leveldb_iter_get_error(it, &error);
  OK();
  leveldb_iter_prev(it);
  leveldb_iter_next(it);
  leveldb_iter_key(it, &length);
  CHECK(length == 0 && !leveldb_iter_valid(it));
  leveldb_iter_destroy(it);
  leveldb_writebatch_destroy(batch);
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  free(key);
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  const char *path = arguments[1];
  char *error = NULL;
  leveldb_options_t *options = leveldb_options_create();
  foreign(options, arguments[2]);
  orders(options, path);

  /* An error takes the place of the one before it, and a success leaves it. */
  leveldb_options_set_create_if_missing(options, 0);
  CHECK(leveldb_open(options, path, &error) == NULL);
  CHECK(leveldb_open(options, path, &error) == NULL);
  char *first = error;
  leveldb_destroy_db(options, path, &error); /* there is nothing to remove */
  CHECK(error == first);
  FAILED("Invalid argument: ");
  CHECK(leveldb_open(options, path, NULL) == NULL);
  leveldb_repair_db(options, path, &error);
  CHECK(error != NULL);
  leveldb_free(error);
  error = NULL;

  leveldb_options_set_create_if_missing(options, 255);
  leveldb_t *db = leveldb_open(options, path, &error);
  OK();
  leveldb_destroy_db(options, path, &error);
  FAILED("IO error: ");
  long_keys(db);

  /* A snapshot that options still name does not keep the database open. */
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
  leveldb_readoptions_set_snapshot(read, snapshot);
  leveldb_release_snapshot(db, snapshot);
  leveldb_close(db);
  db = leveldb_open(options, path, &error);
  OK();
  leveldb_readoptions_destroy(read);
  leveldb_close(db);

  leveldb_close(NULL);
  leveldb_options_destroy(options);
  leveldb_free(NULL);
  printf("done\n");
  return 0;
}
