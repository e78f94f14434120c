/* Uses every function of leveldb/c.h, and prints what it found. The output is the same on LevelDB. A second
   argument is the number of keys. */

#include "check.h"

static int keys = 20000;

static const char *const kOrder = "leveldb.BytewiseComparator";

static void count(void *state) { ++*(int *)state; }

static int compare(void *state, const char *a, size_t a_length, const char *b, size_t b_length) {
  int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
  (void)state;
  if (order != 0) return order;
  return a_length < b_length ? -1 : a_length > b_length;
}

static const char *order_name(void *state) {
  (void)state;
  return kOrder;
}

static char *create_filter(void *state, const char *const *keys, const size_t *lengths, int keys_count,
                           size_t *length) {
  (void)state, (void)keys, (void)lengths, (void)keys_count;
  *length = 1;
  return calloc(1, 1);
}

static uint8_t may_match(void *state, const char *key, size_t length, const char *filter,
                         size_t filter_length) {
  (void)state, (void)key, (void)length, (void)filter, (void)filter_length;
  return 1;
}

static const char *filter_name(void *state) {
  (void)state;
  return "test.PassesAll";
}

static void hear_put(void *state, const char *key, size_t key_length, const char *value,
                     size_t value_length) {
  ++*(int *)state;
  show("put", key, key_length);
  show("  with", value, value_length);
}

static void hear_delete(void *state, const char *key, size_t key_length) {
  ++*(int *)state;
  show("delete", key, key_length);
}

static void show_value(leveldb_t *db, const leveldb_readoptions_t *read, const char *key) {
  char *error = NULL;
  size_t length = 77;
  char *value = leveldb_get(db, read, key, strlen(key), &length, &error);
  OK();
  if (value == NULL) {
    CHECK(length == 0);
    printf("%s: not found\n", key);
    return;
  }
  show(key, value, length);
  free(value);
}

static void batches(leveldb_t *db, leveldb_writeoptions_t *write) {
  char *error = NULL;
  int heard = 0;
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_t *more = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "gone", 4, "x", 1);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "bar", 3, "b", 1);
  leveldb_writebatch_put(batch, "box", 3, "c", 1);
  leveldb_writebatch_put(batch, "", 0, "", 0);
  leveldb_writebatch_put(more, "with\0zero", 9, "\0", 1);
  leveldb_writebatch_delete(more, "bar", 3);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_iterate(batch, &heard, hear_put, hear_delete);
  printf("heard %d\n", heard);
  leveldb_write(db, write, batch, &error);
  OK();
  leveldb_write(db, write, batch, &error); /* again: a batch stays as it is */
  OK();
  leveldb_writebatch_append(more, more);
  heard = 0;
  leveldb_writebatch_iterate(more, &heard, hear_put, hear_delete);
  printf("heard %d\n", heard);
  leveldb_writebatch_destroy(more);
  leveldb_writebatch_destroy(batch);
}

static void walk(leveldb_t *db, const leveldb_readoptions_t *read) {
  char *error = NULL;
  size_t length, all = 0, bytes = 0;
  leveldb_iterator_t *it = leveldb_create_iterator(db, read);
  CHECK(!leveldb_iter_valid(it));
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) {
    CHECK(leveldb_iter_key(it, &length) != NULL);
    bytes += length;
    CHECK(leveldb_iter_value(it, &length) != NULL || length == 0);
    bytes += length;
    all++;
  }
  leveldb_iter_get_error(it, &error);
  OK();
  printf("%zu entries of %zu bytes\n", all, bytes);
  const char *const places[] = {"", "b", "box", "k0", "k1", "zz"};
  for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
    leveldb_iter_seek(it, places[n], strlen(places[n]));
    if (!leveldb_iter_valid(it)) {
      printf("nothing from %s on\n", places[n]);
      continue;
    }
    const char *key = leveldb_iter_key(it, &length);
    show("at", key, length);
    leveldb_iter_prev(it);
    if (!leveldb_iter_valid(it)) continue;
    key = leveldb_iter_key(it, &length);
    show("before", key, length);
    leveldb_iter_next(it);
    key = leveldb_iter_key(it, &length);
    show("again", key, length);
  }
  leveldb_iter_seek_to_last(it);
  const char *value = leveldb_iter_value(it, &length);
  show("last", value, length);
  leveldb_iter_next(it);
  CHECK(!leveldb_iter_valid(it));
  leveldb_iter_destroy(it);
}

static void fill(leveldb_t *db, leveldb_writeoptions_t *write) {
  char *error = NULL;
  char key[32], value[200];
  memset(value, 'v', sizeof value);
  for (int n = 0; n < keys; n++) {
    int length = snprintf(key, sizeof key, "k%08d", n);
    for (int byte = 0; byte < 100; byte++) value[byte] = (char)(n * 2654435761u >> byte % 24);
    leveldb_put(db, write, key, (size_t)length, value, sizeof value, &error);
    OK();
  }
}

static void sizes(leveldb_t *db) {
  char middle[16];
  snprintf(middle, sizeof middle, "k%08d", keys / 2);
  const char *starts[2] = {"a", middle}, *limits[2] = {middle, "z"};
  size_t start_lengths[2] = {1, 9}, limit_lengths[2] = {9, 1};
  uint64_t found[2] = {0, 0};
  leveldb_approximate_sizes(db, 2, starts, start_lengths, limits, limit_lengths, found);
  CHECK(found[0] > 50 * (uint64_t)keys && found[0] < 500 * (uint64_t)keys);
  CHECK(found[1] > 50 * (uint64_t)keys && found[1] < 500 * (uint64_t)keys);
  char *value = leveldb_property_value(db, "leveldb.stats");
  CHECK(value != NULL && strstr(value, "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)") != NULL);
  leveldb_free(value);
  value = leveldb_property_value(db, "leveldb.sstables");
  CHECK(value != NULL && strstr(value, "--- level 0 ---\n") != NULL && strstr(value, "['") != NULL);
  leveldb_free(value);
  value = leveldb_property_value(db, "leveldb.approximate-memory-usage");
  CHECK(value != NULL && atol(value) > 0);
  leveldb_free(value);
  int files = 0;
  for (int level = 0; level < 7; level++) {
    char name[40];
    snprintf(name, sizeof name, "leveldb.num-files-at-level%d", level);
    value = leveldb_property_value(db, name);
    CHECK(value != NULL);
    files += atoi(value);
    free(value);
  }
  CHECK(files > 0);
  CHECK(leveldb_property_value(db, "leveldb.num-files-at-level7") == NULL);
  CHECK(leveldb_property_value(db, "no.such.property") == NULL);
}

int main(int count_of_arguments, char **arguments) {
  CHECK(count_of_arguments >= 2);
  if (count_of_arguments == 3) keys = atoi(arguments[2]);
  const char *path = arguments[1];
  char *error = NULL;
  int destroyed = 0;
  CHECK(leveldb_major_version() == 1);
  printf("version %d.%d\n", leveldb_major_version(), leveldb_minor_version());

  leveldb_env_t *env = leveldb_create_default_env();
  char *folder = leveldb_env_get_test_directory(env);
  printf("tests go to %s\n", folder);
  leveldb_free(folder);
  leveldb_comparator_t *order = leveldb_comparator_create(&destroyed, count, compare, order_name);
  leveldb_cache_t *cache = leveldb_cache_create_lru(100000);
  leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_filterpolicy_t *own =
      leveldb_filterpolicy_create(&destroyed, count, create_filter, may_match, filter_name);

  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_filter_policy(options, bloom);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_write_buffer_size(options, 100000);
  leveldb_options_set_max_open_files(options, 10);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 3 << 20);
  leveldb_options_set_compression(options, leveldb_no_compression);

  leveldb_t *db = leveldb_open(options, path, &error);
  CHECK(db == NULL);
  FAILED("does not exist (create_if_missing is false)");
  leveldb_options_set_create_if_missing(options, 1);
  db = leveldb_open(options, path, &error);
  OK();
  CHECK(db != NULL);

  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(read, 1);
  leveldb_readoptions_set_fill_cache(read, 0);
  leveldb_writeoptions_set_sync(write, 1);
  show_value(db, read, "foo");
  leveldb_put(db, write, "foo", 3, "hello", 5, &error);
  OK();
  leveldb_writeoptions_set_sync(write, 0);
  show_value(db, read, "foo");
  batches(db, write);
  const leveldb_snapshot_t *before = leveldb_create_snapshot(db);
  leveldb_delete(db, write, "foo", 3, &error);
  OK();
  leveldb_delete(db, write, "never", 5, &error);
  OK();
  leveldb_readoptions_set_snapshot(read, before);
  show_value(db, read, "foo");
  walk(db, read);
  leveldb_readoptions_set_snapshot(read, NULL);
  leveldb_release_snapshot(db, before);
  show_value(db, read, "foo");
  show_value(db, read, "box");
  show_value(db, read, "");
  fill(db, write);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_compact_range(db, "k00000100", 9, "k00000200", 9);
  sizes(db);
  walk(db, read);

  leveldb_t *twice = leveldb_open(options, path, &error);
  CHECK(twice == NULL && error != NULL);
  leveldb_free(error);
  error = NULL;
  leveldb_options_set_error_if_exists(options, 0);
  twice = leveldb_open(options, path, &error);
  CHECK(twice == NULL);
  FAILED("IO error: ");
  leveldb_close(db);

  leveldb_options_set_filter_policy(options, own);
  leveldb_options_set_compression(options, leveldb_snappy_compression);
  leveldb_repair_db(options, path, &error);
  OK();
  db = leveldb_open(options, path, &error);
  OK();
  walk(db, read);
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  CHECK(leveldb_open(options, path, &error) == NULL);
  FAILED("exists (error_if_exists is true)");
  leveldb_destroy_db(options, path, &error);
  OK();
  leveldb_options_set_create_if_missing(options, 0);
  CHECK(leveldb_open(options, path, &error) == NULL);
  FAILED("Invalid argument: ");

  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_options_destroy(options);
  leveldb_cache_destroy(cache);
  leveldb_filterpolicy_destroy(bloom);
  printf("destroyed %d\n", destroyed);
  leveldb_filterpolicy_destroy(own);
  leveldb_comparator_destroy(order);
  leveldb_env_destroy(env);
  printf("destroyed %d\ndone\n", destroyed);
  return 0;
}
