/* What calls cost through the C interface. The same work through the Rust interface is in
 * examples/cost.rs; `run` runs both, and Python and Java.
 *
 *     cost DIRECTORY ENTRIES
 */

#include <shingle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 100, CHUNK_ENTRIES = 2048, CHUNK_BYTES = 256 << 10 };

static shingle_db *db;
static shingle_keyspace *keyspace;
static int entries;
/* Made before anything is counted. */
static char (*keys)[16];

static shingle_error *error;

static void stop(void) {
  fprintf(stderr, "%s\n", shingle_error_message(error));
  exit(1);
}

#define CHECK(call) \
  do { \
    if ((call) != 0) stop(); \
  } while (0)

/* The keys of all numbers below `entries`, in an order without a pattern. */
static void make_keys(void) {
  keys = malloc((size_t)entries * sizeof *keys);
  for (int n = 0; n < entries; n++) {
    uint64_t number = (uint64_t)n * 2654435761u % 10000000019u;
    for (int at = 15; at >= 0; at--, number /= 10) keys[n][at] = (char)('0' + number % 10);
  }
}

static shingle_slice key_of(int n) {
  return (shingle_slice){(const uint8_t *)keys[n], 16};
}

static shingle_slice value_of(shingle_slice key, char value[100]) {
  memcpy(value, key.data, key.size);
  return (shingle_slice){(const uint8_t *)value, 100};
}

__attribute__((noinline)) void cost_puts(void) {
  char value[100] = {0};
  for (int n = 0; n < entries; n++) {
    shingle_slice k = key_of(n);
    CHECK(shingle_put(keyspace, k, value_of(k, value), SHINGLE_BUFFERED, &error));
  }
}

__attribute__((noinline)) void cost_batches(void) {
  shingle_batch *batch;
  char value[100] = {0};
  CHECK(shingle_batch_create(&batch, &error));
  for (int n = 0; n < entries; n += BATCH) {
    for (int at = n; at < n + BATCH; at++) {
      shingle_slice k = key_of(at);
      CHECK(shingle_batch_put(batch, keyspace, k, value_of(k, value), &error));
    }
    CHECK(shingle_write(db, batch, SHINGLE_BUFFERED, &error));
  }
  shingle_batch_free(batch);
}

__attribute__((noinline)) void cost_many(void) {
  shingle_batch *batch;
  static char values[BATCH][100];
  shingle_slice batch_keys[BATCH], batch_values[BATCH];
  CHECK(shingle_batch_create(&batch, &error));
  for (int n = 0; n < entries; n += BATCH) {
    for (int at = 0; at < BATCH; at++) {
      batch_keys[at] = key_of(n + at);
      batch_values[at] = value_of(batch_keys[at], values[at]);
    }
    CHECK(shingle_batch_put_many(batch, keyspace, batch_keys, batch_values, BATCH, &error));
    CHECK(shingle_write(db, batch, SHINGLE_BUFFERED, &error));
  }
  shingle_batch_free(batch);
}

__attribute__((noinline)) void cost_gets(void) {
  shingle_value value;
  size_t bytes = 0;
  for (int n = entries - 1; n >= 0; n--) {
    CHECK(shingle_get(keyspace, key_of(n), &value, &error));
    bytes += value.bytes.size;
    shingle_value_free(&value);
  }
  if (bytes != (size_t)entries * 100) exit(1);
}

__attribute__((noinline)) void cost_copies(void) {
  uint8_t value[100];
  uintptr_t size;
  for (int n = entries - 1; n >= 0; n--) {
    CHECK(shingle_get_copy(keyspace, key_of(n), value, sizeof value, &size, &error));
    if (size != 100) exit(1);
  }
}

/* The bytes of an entry and its ends, which every scan looks at that wants its entries. */
static size_t looked_at(shingle_slice key, shingle_slice value) {
  return key.size + value.size + ((const uint8_t *)key.data)[0] +
         ((const uint8_t *)value.data)[value.size - 1];
}

__attribute__((noinline)) void cost_steps(void) {
  shingle_cursor *cursor;
  shingle_slice key, value;
  size_t found = 0;
  CHECK(shingle_cursor_create(keyspace, NULL, &cursor, &error));
  CHECK(shingle_cursor_seek_to_first(cursor, &error));
  while (shingle_cursor_entry(cursor, &key, &value)) {
    found += looked_at(key, value);
    CHECK(shingle_cursor_next(cursor, &error));
  }
  shingle_cursor_free(cursor);
  if (found != (size_t)entries * (116 + '0')) exit(1);
}

__attribute__((noinline)) void cost_chunks(void) {
  shingle_cursor *cursor;
  shingle_chunk *chunk;
  shingle_slice key, value, chunk_entries;
  size_t found = 0;
  CHECK(shingle_cursor_create(keyspace, NULL, &cursor, &error));
  CHECK(shingle_chunk_create(&chunk, &error));
  CHECK(shingle_cursor_seek_to_first(cursor, &error));
  do {
    CHECK(shingle_cursor_chunk(cursor, false, CHUNK_ENTRIES, CHUNK_BYTES, chunk, &error));
    chunk_entries = shingle_chunk_entries(chunk);
    while (shingle_next_entry(&chunk_entries, &key, &value)) found += looked_at(key, value);
  } while (shingle_chunk_count(chunk) > 0);
  shingle_chunk_free(chunk);
  shingle_cursor_free(cursor);
  if (found != (size_t)entries * (116 + '0')) exit(1);
}

static void timed(const char *what, void (*work)(void)) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  work();
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
  printf("%s %.0f\n", what, ns / entries);
}

static void fill_cache(void) {
  uint8_t value[100];
  uintptr_t size;
  for (int n = 0; n < entries; n++) {
    CHECK(shingle_get_copy(keyspace, key_of(n), value, sizeof value, &size, &error));
  }
}

static void open_at(const char *folder, const char *name) {
  shingle_options *options;
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  CHECK(shingle_options_create(&options, &error));
  CHECK(shingle_options_set(options, "memory_bytes", "640M", &error));
  CHECK(shingle_options_set(options, "write_buffer_bytes", "64M", &error));
  CHECK(shingle_options_set(options, "compression", "none", &error));
  CHECK(shingle_open(path, options, &db, &error));
  CHECK(shingle_default_keyspace(db, &keyspace, &error));
  shingle_options_free(options);
}

static void close_all(void) {
  shingle_keyspace_free(keyspace);
  CHECK(shingle_close(db, &error));
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  entries = atoi(arguments[2]) / BATCH * BATCH;
  make_keys();
  /* First what the Rust program does, in its order, so that both have the same past. */
  open_at(arguments[1], "c-many");
  timed("batch_many", cost_many);
  close_all();
  open_at(arguments[1], "c-puts");
  timed("put", cost_puts);
  CHECK(shingle_compact(db, &error));
  fill_cache();
  timed("get_copy", cost_copies);
  timed("scan_chunks", cost_chunks);
  timed("get", cost_gets);
  timed("scan", cost_steps);
  close_all();
  open_at(arguments[1], "c-batches");
  timed("batch", cost_batches);
  close_all();
  return 0;
}
