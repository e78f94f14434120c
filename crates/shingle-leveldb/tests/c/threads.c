/* Threads share a database: each writes keys of its own and reads those of all. */

#include <pthread.h>

#include "check.h"

#define THREADS 4

static leveldb_t *db;
static int rounds;

static void *work(void *argument) {
  const int thread = *(int *)argument;
  char *error = NULL;
  char key[32];
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  for (int round = 0; round < rounds; round++) {
    int length = snprintf(key, sizeof key, "%d-%06d", thread, round);
    leveldb_put(db, write, key, (size_t)length, key, (size_t)length, &error);
    OK();
    size_t found_length;
    char *found = leveldb_get(db, read, key, (size_t)length, &found_length, &error);
    OK();
    CHECK(found != NULL && found_length == (size_t)length && memcmp(found, key, found_length) == 0);
    leveldb_free(found);
    if (round % 16 != 0) continue;
    const leveldb_snapshot_t *snapshot = leveldb_create_snapshot(db);
    leveldb_readoptions_set_snapshot(read, snapshot);
    leveldb_iterator_t *it = leveldb_create_iterator(db, read);
    int seen = 0;
    for (leveldb_iter_seek(it, key, (size_t)length); leveldb_iter_valid(it); leveldb_iter_prev(it)) {
      if (++seen == 20) break;
    }
    CHECK(seen > 0);
    leveldb_iter_destroy(it);
    leveldb_readoptions_set_snapshot(read, NULL);
    leveldb_release_snapshot(db, snapshot);
    if (round % 64 == 0) leveldb_compact_range(db, key, (size_t)length, NULL, 0);
    leveldb_free(leveldb_property_value(db, "leveldb.stats"));
  }
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  return NULL;
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  rounds = atoi(arguments[2]);
  char *error = NULL;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_write_buffer_size(options, 1 << 16);
  db = leveldb_open(options, arguments[1], &error);
  OK();
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int n = 0; n < THREADS; n++) {
    numbers[n] = n;
    CHECK(pthread_create(&threads[n], NULL, work, &numbers[n]) == 0);
  }
  for (int n = 0; n < THREADS; n++) CHECK(pthread_join(threads[n], NULL) == 0);
  leveldb_close(db);
  leveldb_options_destroy(options);
  printf("done\n");
  return 0;
}
