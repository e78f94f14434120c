/* Threads read, write and scan through the same handles while another closes them. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 20 };

static shingle_db *db;
static shingle_keyspace *keyspace;
static shingle_cursor *cursor;

/* A call succeeds, or the thing was closed. */
static int goes_on(int code) {
  CHECK(code == SHINGLE_OK || code == SHINGLE_CLOSED);
  return code == SHINGLE_OK;
}

static void *use(void *argument) {
  int seed = (int)(intptr_t)argument;
  for (int n = 0;; n++) {
    char key[16];
    snprintf(key, sizeof key, "key%05d", (n * 7919 + seed) % 10000);
    shingle_value value;
    if (!goes_on(shingle_put(keyspace, T(key), T("some value"), SHINGLE_DEFAULT, NULL))) break;
    if (!goes_on(shingle_get(keyspace, T(key), &value, NULL))) break;
    shingle_value_free(&value);
    shingle_slice found;
    goes_on(shingle_cursor_seek(cursor, T(key), NULL));
    shingle_cursor_entry(cursor, &found, NULL);
    if (n % 100 == seed) goes_on(shingle_flush(db, NULL));
  }
  return NULL;
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  shingle_error *error = NULL;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    OK(shingle_open(arguments[1], NULL, &db, &error));
    OK(shingle_default_keyspace(db, &keyspace, &error));
    OK(shingle_cursor_create(keyspace, NULL, &cursor, &error));
    for (int n = 0; n < THREADS; n++) {
      CHECK(pthread_create(&threads[n], NULL, use, (void *)(intptr_t)n) == 0);
    }
    struct timespec pause = {0, 10 * 1000 * 1000};
    nanosleep(&pause, NULL);
    if (round % 2) shingle_cursor_free(cursor);
    OK(shingle_close(db, &error));
    if (round % 3) shingle_keyspace_free(keyspace);
    for (int n = 0; n < THREADS; n++) CHECK(pthread_join(threads[n], NULL) == 0);
    shingle_cursor_free(cursor);
    shingle_keyspace_free(keyspace);
  }
  puts("done");
  return 0;
}
