/* What calls cost on LevelDB and on Shingle: puts, gets and a scan of small entries.
 *
 *     cc -O2 cost.c -lleveldb -o cost
 *     ./cost DIRECTORY 1000000
 *     with-shingle ./cost DIRECTORY 1000000
 *     valgrind --tool=callgrind --toggle-collect=puts_all ./cost DIRECTORY 100000
 */

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static leveldb_t *db;
static int keys;

static void stop(const char *error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", error);
  exit(1);
}

/* The keys of all numbers below `keys`, in an order without one. */
static int key_of(int n, char *key) {
  return snprintf(key, 20, "%016llu", (unsigned long long)n * 2654435761u % 10000000019u);
}

__attribute__((noinline)) void puts_all(void) {
  char *error = NULL, key[20], value[100];
  leveldb_writeoptions_t *options = leveldb_writeoptions_create();
  memset(value, 'v', sizeof value);
  for (int n = 0; n < keys; n++) {
    int length = key_of(n, key);
    memcpy(value, key, (size_t)length);
    leveldb_put(db, options, key, (size_t)length, value, sizeof value, &error);
    stop(error);
  }
  leveldb_writeoptions_destroy(options);
}

__attribute__((noinline)) void gets_all(void) {
  char *error = NULL, key[20];
  size_t length;
  leveldb_readoptions_t *options = leveldb_readoptions_create();
  for (int n = keys - 1; n >= 0; n--) {
    char *value = leveldb_get(db, options, key, (size_t)key_of(n, key), &length, &error);
    stop(error != NULL ? error : value == NULL ? "a key is missing" : NULL);
    leveldb_free(value);
  }
  leveldb_readoptions_destroy(options);
}

__attribute__((noinline)) void scan_all(void) {
  int found = 0;
  size_t length, bytes = 0;
  leveldb_readoptions_t *options = leveldb_readoptions_create();
  leveldb_iterator_t *it = leveldb_create_iterator(db, options);
  for (leveldb_iter_seek_to_first(it); leveldb_iter_valid(it); leveldb_iter_next(it)) {
    leveldb_iter_key(it, &length);
    bytes += length;
    leveldb_iter_value(it, &length);
    bytes += length;
    found++;
  }
  stop(found == keys && bytes == (size_t)keys * 116 ? NULL : "the scan missed keys");
  leveldb_iter_destroy(it);
  leveldb_readoptions_destroy(options);
}

static void timed(const char *what, void (*work)(void)) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  work();
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  printf("%-8s %8.0f ns for each\n", what, ns / keys);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  keys = atoi(arguments[2]);
  char *error = NULL;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_options_set_write_buffer_size(options, 16 << 20);
  leveldb_options_set_cache(options, leveldb_cache_create_lru(256 << 20));
  leveldb_options_set_filter_policy(options, leveldb_filterpolicy_create_bloom(10));
  db = leveldb_open(options, arguments[1], &error);
  stop(error);
  timed("put", puts_all);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  timed("get", gets_all);
  timed("get", gets_all);
  timed("scan", scan_all);
  timed("scan", scan_all);
  leveldb_close(db);
  leveldb_options_destroy(options);
  return 0;
}
