/* Every function, in one life of a database and a second one. */
#include "check.h"

static shingle_error *error;

static void writes_and_gets(shingle_db *db, shingle_keyspace *fruit) {
  shingle_value value, moved;
  OK(shingle_put(fruit, T("apple"), T("red"), SHINGLE_DEFAULT, &error));
  OK(shingle_put(fruit, T("pear"), T("green"), SHINGLE_SYNCED, &error));
  OK(shingle_put(fruit, T(""), shingle_bytes(NULL, 0), SHINGLE_BUFFERED | SHINGLE_NO_WAIT, &error));
  OK(shingle_get(fruit, T("apple"), &value, &error));
  moved = value;
  memset(&value, 0, sizeof value);
  CHECK(has(moved, "red"));
  shingle_value_free(&value);
  OK(shingle_get(fruit, T(""), &value, &error));
  CHECK(has(value, ""));
  OK(shingle_get(fruit, T("plum"), &value, &error));
  CHECK(has(value, NULL));

  char buffer[4];
  size_t size;
  OK(shingle_get_copy(fruit, T("pear"), (uint8_t *)buffer, sizeof buffer, &size, &error));
  CHECK(size == 5 && memcmp(buffer, "gree", 4) == 0);
  OK(shingle_get_copy(fruit, T("pear"), NULL, 0, &size, &error));
  CHECK(size == 5);
  OK(shingle_get_copy(fruit, T("plum"), (uint8_t *)buffer, sizeof buffer, &size, &error));
  CHECK(size == SIZE_MAX);

  shingle_slice keys[] = {T("apple"), T("plum"), T("pear")};
  shingle_value values[3];
  OK(shingle_multi_get(fruit, keys, 3, values, &error));
  CHECK(has(values[0], "red") && has(values[1], NULL) && has(values[2], "green"));
  OK(shingle_multi_get(fruit, NULL, 0, NULL, &error));

  OK(shingle_delete(fruit, T("apple"), SHINGLE_DEFAULT, &error));
  OK(shingle_get(fruit, T("apple"), &value, &error));
  CHECK(has(value, NULL));

  uint64_t expires;
  OK(shingle_put_expiring(fruit, T("melon"), T("ripe"), UINT64_C(4102444800000), 0, &error));
  OK(shingle_get_with_expiry(fruit, T("melon"), &value, &expires, &error));
  CHECK(has(value, "ripe") && expires == UINT64_C(4102444800000));
  OK(shingle_get_with_expiry(fruit, T("pear"), &value, &expires, &error));
  CHECK(has(value, "green") && expires == UINT64_MAX);
  OK(shingle_put_expiring(fruit, T("melon"), T("old"), 1, 0, &error));
  OK(shingle_get(fruit, T("melon"), &value, &error));
  CHECK(has(value, NULL));

  bool is_writable;
  OK(shingle_wait_writable(db, 100, 1000, &is_writable, &error));
  CHECK(is_writable);
}

static void batches(shingle_db *db, shingle_keyspace *fruit) {
  shingle_keyspace *counts;
  shingle_keyspace_options options = {0};
  options.merge_operator = "add-u64";
  OK(shingle_create_keyspace(db, "counts", &options, &counts, &error));
  shingle_batch *batch;
  OK(shingle_batch_create(&batch, &error));
  uint64_t two = 2, sum = 0;
  OK(shingle_batch_put(batch, fruit, T("fig"), T("blue"), &error));
  OK(shingle_batch_put_expiring(batch, fruit, T("date"), T("x"), 1, &error));
  OK(shingle_batch_delete(batch, fruit, T("pear"), &error));
  OK(shingle_batch_delete_range(batch, fruit, T("m"), T("n"), &error));
  OK(shingle_batch_merge(batch, counts, T("figs"), shingle_bytes(&two, 8), &error));
  CHECK(shingle_batch_count(batch) == 5);
  OK(shingle_write(db, batch, SHINGLE_SYNCED, &error));
  CHECK(shingle_batch_count(batch) == 0);
  shingle_slice keys[] = {T("kiwi"), T("lime")}, values[] = {T("green"), T("")};
  OK(shingle_batch_put_many(batch, fruit, keys, values, 2, &error));
  OK(shingle_batch_put_many(batch, fruit, NULL, NULL, 0, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_batch_put_many(batch, fruit, keys, NULL, 2, &error));
  CHECK(shingle_batch_count(batch) == 2);
  OK(shingle_write(db, batch, SHINGLE_DEFAULT, &error));
  OK(shingle_batch_put(batch, fruit, T("never"), T("x"), &error));
  OK(shingle_batch_clear(batch, &error));
  OK(shingle_write(db, batch, SHINGLE_DEFAULT, &error));
  OK(shingle_batch_put(batch, fruit, T("never"), T("x"), &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_write(db, batch, 1u << 31, &error));
  CHECK(shingle_batch_count(batch) == 0);
  OK(shingle_merge(counts, T("figs"), shingle_bytes(&two, 8), SHINGLE_DEFAULT, &error));

  size_t size;
  OK(shingle_get_copy(counts, T("figs"), (uint8_t *)&sum, 8, &size, &error));
  CHECK(size == 8 && sum == 4);
  shingle_value value;
  OK(shingle_get(fruit, T("pear"), &value, &error));
  CHECK(has(value, NULL));
  OK(shingle_get(fruit, T("fig"), &value, &error));
  CHECK(has(value, "blue"));
  OK(shingle_get(fruit, T("never"), &value, &error));
  CHECK(has(value, NULL));
  OK(shingle_get(fruit, T("kiwi"), &value, &error));
  CHECK(has(value, "green"));
  OK(shingle_get(fruit, T("lime"), &value, &error));
  CHECK(has(value, ""));
  OK(shingle_delete(fruit, T("kiwi"), SHINGLE_DEFAULT, &error));
  OK(shingle_delete(fruit, T("lime"), SHINGLE_DEFAULT, &error));

  shingle_batch_free(batch);
  shingle_batch_free(batch);
  FAILS(SHINGLE_CLOSED, shingle_batch_put(batch, fruit, T("a"), T("b"), &error));
  CHECK(shingle_batch_count(batch) == 0);
  shingle_keyspace_free(counts);

  shingle_text *names;
  OK(shingle_keyspaces(db, &names, &error));
  CHECK(strcmp(shingle_text_data(names), "default\ncounts") == 0);
  shingle_text_free(names);
  shingle_keyspace *lines;
  OK(shingle_create_keyspace(db, "two\nlines", NULL, &lines, &error));
  shingle_keyspace_free(lines);
  FAILS(SHINGLE_UNSUPPORTED, shingle_keyspaces(db, &names, &error));
  shingle_chunk *chunk;
  OK(shingle_chunk_create(&chunk, &error));
  OK(shingle_keyspace_names(db, chunk, &error));
  CHECK(shingle_chunk_count(chunk) == 3);
  shingle_slice entries = shingle_chunk_entries(chunk), name, nothing;
  const char *expected[] = {"default", "counts", "two\nlines"};
  for (int i = 0; i < 3; i++) {
    CHECK(shingle_next_entry(&entries, &name, &nothing));
    CHECK(equals(name, expected[i]) && nothing.size == 0);
  }
  CHECK(!shingle_next_entry(&entries, &name, &nothing));
  shingle_chunk_free(chunk);
  OK(shingle_drop_keyspace(db, "two\nlines", &error));
  OK(shingle_open_keyspace(db, "counts", NULL, &counts, &error));
  shingle_keyspace_free(counts);
  FAILS(SHINGLE_ALREADY_EXISTS, shingle_create_keyspace(db, "counts", NULL, &counts, &error));
  FAILS(SHINGLE_NOT_FOUND, shingle_find_keyspace(db, "colours", &counts, &error));
  OK(shingle_find_keyspace(db, "counts", &counts, &error));
  OK(shingle_drop_keyspace(db, "counts", &error));
  FAILS(SHINGLE_CLOSED, shingle_put(counts, T("a"), T("12345678"), 0, &error));
  shingle_keyspace_free(counts);
}

static void fill(shingle_keyspace *keyspace, int from, int to) {
  for (int n = from; n < to; n++) {
    char key[16], value[16];
    snprintf(key, sizeof key, "key%04d", n);
    snprintf(value, sizeof value, "%d", n);
    OK(shingle_put(keyspace, T(key), T(value), SHINGLE_DEFAULT, &error));
  }
}

static int count_by_chunks(shingle_cursor *cursor, bool in_reverse) {
  shingle_chunk *chunk;
  OK(shingle_chunk_create(&chunk, &error));
  int count = 0;
  for (;;) {
    OK(shingle_cursor_chunk(cursor, in_reverse, 64, 4096, chunk, &error));
    if (shingle_chunk_count(chunk) == 0) break;
    shingle_slice entries = shingle_chunk_entries(chunk), key, value;
    int found = 0;
    while (shingle_next_entry(&entries, &key, &value)) {
      CHECK(key.size == 7 && memcmp(key.data, "key", 3) == 0 && value.size > 0);
      found++;
    }
    CHECK(entries.size == 0 && !shingle_next_entry(&entries, &key, &value));
    CHECK(found == (int)shingle_chunk_count(chunk) && found <= 64);
    count += found;
  }
  shingle_chunk_free(chunk);
  return count;
}

static void cursors_and_snapshots(shingle_db *db) {
  shingle_keyspace *many;
  OK(shingle_open_keyspace(db, "many", NULL, &many, &error));
  fill(many, 0, 500);
  shingle_snapshot *all, *snapshot, *other;
  OK(shingle_snapshot_create(db, &all, &error));
  OK(shingle_snapshot_of(all, many, &snapshot, &error));
  fill(many, 500, 1000);
  OK(shingle_begin_flush(db, &error));
  OK(shingle_flush(db, &error));

  shingle_cursor *cursor;
  shingle_slice key, value;
  OK(shingle_cursor_create(many, NULL, &cursor, &error));
  CHECK(!shingle_cursor_entry(cursor, &key, &value));
  OK(shingle_cursor_seek(cursor, T("key0100x"), &error));
  CHECK(shingle_cursor_entry(cursor, &key, &value) && equals(key, "key0101") && equals(value, "101"));
  OK(shingle_cursor_next(cursor, &error));
  OK(shingle_cursor_next(cursor, &error));
  OK(shingle_cursor_prev(cursor, &error));
  CHECK(shingle_cursor_entry(cursor, &key, NULL) && equals(key, "key0102"));
  OK(shingle_cursor_seek_for_prev(cursor, T("key0100x"), &error));
  CHECK(shingle_cursor_entry(cursor, &key, NULL) && equals(key, "key0100"));
  OK(shingle_cursor_seek_to_last(cursor, &error));
  CHECK(shingle_cursor_entry(cursor, &key, NULL) && equals(key, "key0999"));
  CHECK(count_by_chunks(cursor, true) == 1000);
  OK(shingle_cursor_seek_to_first(cursor, &error));
  CHECK(count_by_chunks(cursor, false) == 1000);
  shingle_cursor_free(cursor);
  CHECK(!shingle_cursor_entry(cursor, &key, &value));
  FAILS(SHINGLE_CLOSED, shingle_cursor_next(cursor, &error));

  shingle_cursor_options options = {0};
  options.prefix = T("key01");
  options.is_background = true;
  OK(shingle_cursor_create(many, &options, &cursor, &error));
  OK(shingle_cursor_seek_to_first(cursor, &error));
  CHECK(count_by_chunks(cursor, false) == 100);
  shingle_cursor_free(cursor);
  memset(&options, 0, sizeof options);
  options.start = T("key0300");
  options.end = T("key0700");
  options.leaves_cache = true;
  OK(shingle_snapshot_cursor(snapshot, &options, &cursor, &error));
  OK(shingle_cursor_seek_to_first(cursor, &error));
  CHECK(count_by_chunks(cursor, false) == 200);
  shingle_cursor_free(cursor);

  shingle_value found;
  OK(shingle_snapshot_get(snapshot, T("key0499"), &found, &error));
  CHECK(has(found, "499"));
  shingle_slice keys[] = {T("key0001"), T("key0500")};
  shingle_value values[2];
  OK(shingle_snapshot_multi_get(snapshot, keys, 2, values, &error));
  CHECK(has(values[0], "1") && has(values[1], NULL));
  shingle_snapshot_free(all);
  shingle_snapshot_free(snapshot);
  shingle_snapshot_free(snapshot);
  FAILS(SHINGLE_CLOSED, shingle_snapshot_of(snapshot, many, &other, &error));

  OK(shingle_delete_range(many, T("key0000"), T("key0990"), SHINGLE_DEFAULT, &error));
  OK(shingle_cursor_create(many, NULL, &cursor, &error));
  OK(shingle_cursor_seek_to_first(cursor, &error));
  CHECK(count_by_chunks(cursor, false) == 10);
  shingle_cursor_free(cursor);
  shingle_keyspace_free(many);
}

static void transactions(shingle_db *db, shingle_keyspace *fruit) {
  shingle_transaction *first, *second;
  shingle_value value;
  OK(shingle_put(fruit, T("kiwi"), T("1"), SHINGLE_DEFAULT, &error));
  OK(shingle_transaction_begin(db, false, 0, &first, &error));
  OK(shingle_transaction_begin(db, true, 0, &second, &error));
  OK(shingle_transaction_get(first, fruit, T("kiwi"), false, &value, &error));
  CHECK(has(value, "1"));
  OK(shingle_transaction_put(first, fruit, T("kiwi"), T("2"), &error));
  OK(shingle_transaction_delete(first, fruit, T("fig"), &error));
  OK(shingle_transaction_delete_range(first, fruit, T("x"), T("y"), &error));
  OK(shingle_transaction_get(first, fruit, T("kiwi"), true, &value, &error));
  CHECK(has(value, "2"));
  OK(shingle_transaction_put(second, fruit, T("kiwi"), T("3"), &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_transaction_merge(second, fruit, T("a"), T("b"), &error));
  OK(shingle_commit(first, SHINGLE_SYNCED, &error));
  FAILS(SHINGLE_CONFLICT, shingle_commit(second, SHINGLE_DEFAULT, &error));
  FAILS(SHINGLE_CLOSED, shingle_commit(second, SHINGLE_DEFAULT, &error));
  shingle_transaction_free(first);
  OK(shingle_transaction_begin(db, false, 0, &first, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_commit(first, 1u << 31, &error));
  FAILS(SHINGLE_CLOSED, shingle_commit(first, SHINGLE_DEFAULT, &error));
  OK(shingle_get(fruit, T("kiwi"), &value, &error));
  CHECK(has(value, "2"));
  OK(shingle_transaction_begin(db, false, 50, &first, &error));
  OK(shingle_transaction_put(first, fruit, T("kiwi"), T("4"), &error));
  shingle_transaction_free(first);
  OK(shingle_get(fruit, T("kiwi"), &value, &error));
  CHECK(has(value, "2"));
}

static bool count_progress(void *argument, uint64_t done, uint64_t total, const char *what) {
  CHECK(done <= total && what != NULL);
  ++*(int *)argument;
  return true;
}

static bool cancel(void *argument, uint64_t done, uint64_t total, const char *what) {
  (void)argument, (void)done, (void)total, (void)what;
  return false;
}

static void work_on_the_whole(shingle_db *db, const char *folder) {
  shingle_text *text;
  OK(shingle_sync(db, &error));
  OK(shingle_compact(db, &error));
  OK(shingle_wait_idle(db, &error));
  OK(shingle_set_option(db, "durability", "synced", &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_set_option(db, "durabilty", "synced", &error));
  OK(shingle_stats(db, &text, &error));
  CHECK(shingle_text_data(text)[0] == '{' && strstr(shingle_text_data(text), "latency_ns"));
  shingle_text_free(text);
  OK(shingle_property(db, "shingle.stats", &text, &error));
  shingle_text_free(text);
  OK(shingle_property(db, "no such property", &text, &error));
  CHECK(text == NULL);

  int steps = 0;
  size_t problems;
  OK(shingle_check(db, count_progress, &steps, &problems, &text, &error));
  CHECK(steps > 0 && problems == 0 && strlen(shingle_text_data(text)) == 0);
  shingle_text_free(text);
  FAILS(SHINGLE_CANCELLED, shingle_check(db, cancel, NULL, &problems, &text, &error));

  char target[512];
  snprintf(target, sizeof target, "%s-copy", folder);
  OK(shingle_checkpoint(db, target, &error));
  FAILS(SHINGLE_ALREADY_EXISTS, shingle_checkpoint(db, target, &error));
  shingle_db *copy;
  OK(shingle_open(target, NULL, &copy, &error));
  OK(shingle_close(copy, &error));
}

int main(int count, char **arguments) {
  CHECK(count == 2);
  const char *folder = arguments[1];
  shingle_options *options;
  shingle_resources *resources;
  shingle_db *db = NULL, *again = NULL;
  shingle_keyspace *fruit;
  shingle_value value, kept;

  uint64_t cache_bytes, memtable_bytes;

  OK(shingle_resources_create_within(64 << 20, 2, 0, &resources, &error));
  OK(shingle_options_create(&options, &error));
  OK(shingle_options_set(options, "write_buffer_bytes", "256K", &error));
  OK(shingle_options_set_resources(options, resources, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_options_set(options, "no_such_option", "1", &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_options_set(options, "cache_bytes", "many", &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_options_set(options, NULL, "many", &error));
  OK(shingle_options_set_create(options, false, &error));
  FAILS(SHINGLE_NOT_FOUND, shingle_open(folder, options, &db, &error));
  OK(shingle_options_set_create(options, true, &error));
  OK(shingle_open(folder, options, &db, &error));
  FAILS(SHINGLE_LOCKED, shingle_open(folder, options, &again, &error));
  FAILS(SHINGLE_LOCKED, shingle_destroy(folder, &error));
  CHECK(shingle_open(folder, options, &again, NULL) == SHINGLE_LOCKED);

  OK(shingle_default_keyspace(db, &fruit, &error));
  writes_and_gets(db, fruit);
  batches(db, fruit);
  cursors_and_snapshots(db);
  transactions(db, fruit);
  work_on_the_whole(db, folder);
  OK(shingle_resources_used(resources, &cache_bytes, &memtable_bytes, &error));
  CHECK(cache_bytes > 0 && cache_bytes <= 64 << 20 && memtable_bytes <= 64 << 20);
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_resources_used(NULL, &cache_bytes, &memtable_bytes, &error));

  /* Wrong calls are errors. */
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_put(NULL, T("a"), T("b"), 0, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_put((shingle_keyspace *)db, T("a"), T("b"), 0, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_put(fruit, shingle_bytes(NULL, 3), T("b"), 0, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_put(fruit, T("a"), T("b"), 3, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_put(fruit, T("a"), T("b"), 64, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_get(fruit, T("a"), NULL, &error));
  FAILS(SHINGLE_INVALID_ARGUMENT, shingle_multi_get(fruit, NULL, 2, NULL, &error));

  /* After the end, handles are errors, and values live. */
  OK(shingle_get(fruit, T("kiwi"), &kept, &error));
  shingle_snapshot *snapshot;
  OK(shingle_snapshot_create(db, &snapshot, &error));
  OK(shingle_close(db, &error));
  FAILS(SHINGLE_CLOSED, shingle_close(db, &error));
  FAILS(SHINGLE_CLOSED, shingle_flush(db, &error));
  FAILS(SHINGLE_CLOSED, shingle_begin_flush(db, &error));
  FAILS(SHINGLE_CLOSED, shingle_put(fruit, T("a"), T("b"), 0, &error));
  OK(shingle_snapshot_get(snapshot, T("kiwi"), &value, &error));
  CHECK(has(value, "2") && has(kept, "2"));
  shingle_snapshot_free(snapshot);
  shingle_keyspace_free(fruit);
  FAILS(SHINGLE_CLOSED, shingle_put(fruit, T("a"), T("b"), 0, &error));
  OK(shingle_close(NULL, &error));

  OK(shingle_options_set_create_new(options, true, &error));
  FAILS(SHINGLE_ALREADY_EXISTS, shingle_open(folder, options, &db, &error));
  OK(shingle_options_set_create_new(options, false, &error));
  OK(shingle_options_set_read_only(options, true, &error));
  shingle_text *text;
  OK(shingle_options_text(options, &text, &error));
  CHECK(strstr(shingle_text_data(text), "write_buffer_bytes=262144"));
  shingle_text_free(text);
  OK(shingle_open(folder, options, &db, &error));
  OK(shingle_default_keyspace(db, &fruit, &error));
  OK(shingle_get(fruit, T("kiwi"), &value, &error));
  CHECK(has(value, "2"));
  FAILS(SHINGLE_UNSUPPORTED, shingle_put(fruit, T("a"), T("b"), 0, &error));
  shingle_keyspace_free(fruit);
  OK(shingle_close(db, &error));
  shingle_options_free(options);
  shingle_resources_free(resources);
  FAILS(SHINGLE_CLOSED, shingle_open(folder, options, &db, &error));
  puts("done");
  return 0;
}
