/* The C interface of Shingle, an embedded, ordered key-value store.
 *
 * A function that can fail returns 0 (SHINGLE_OK) or the code of its error. Its last parameter is the place
 * for the error, or null; it gets null without an error. Results go to places too, and are not written
 * when the function fails.
 *
 * Databases, keyspaces, snapshots, cursors, batches, transactions, options and resources are handles.
 * They are checked: the use of one that was closed or freed is an error, and freeing it twice does
 * nothing. Any thread may use any of them. Errors, values, chunks and texts are memory: free them once,
 * and use them only before.
 *
 * This file is made by cbindgen from crates/shingle-c; do not edit it. */


#ifndef SHINGLE_H
#define SHINGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The bytes of a text that ends with a zero byte, which is not one of them. */
#define SHINGLE_TEXT(text) shingle_bytes((text), strlen(text))



/*
 A code: no error.
 */
#define SHINGLE_OK 0

/*
 A code: the call is wrong.
 */
#define SHINGLE_INVALID_ARGUMENT 1

/*
 A code: what was asked for does not exist.
 */
#define SHINGLE_NOT_FOUND 2

/*
 A code: what was to be created exists.
 */
#define SHINGLE_ALREADY_EXISTS 3

/*
 A code: stored bytes are not what was written.
 */
#define SHINGLE_CORRUPTION 4

/*
 A code: the operating system or the device refused.
 */
#define SHINGLE_IO 5

/*
 A code: the medium is full.
 */
#define SHINGLE_NO_SPACE 6

/*
 A code: an earlier failure left an unknown outcome: close and open again.
 */
#define SHINGLE_POISONED 7

/*
 A code: the write would have to wait.
 */
#define SHINGLE_WOULD_WAIT 8

/*
 A code: another process, or this one, has the database open.
 */
#define SHINGLE_LOCKED 9

/*
 A code: the files are foreign, or of a newer version.
 */
#define SHINGLE_INCOMPATIBLE 10

/*
 A code: the thing was closed.
 */
#define SHINGLE_CLOSED 11

/*
 A code: this store or configuration cannot do it.
 */
#define SHINGLE_UNSUPPORTED 12

/*
 A code: the work was cancelled.
 */
#define SHINGLE_CANCELLED 13

/*
 A code: the file has names in other directories.
 */
#define SHINGLE_SHARED 14

/*
 A code: another write came between: begin again.
 */
#define SHINGLE_CONFLICT 15

/*
 A code: what was asked for is no longer kept.
 */
#define SHINGLE_TOO_LATE 16

/*
 A code: a panic, which is a bug in Shingle.
 */
#define SHINGLE_PANIC 65535

/*
 A write flag: the database's durability.
 */
#define SHINGLE_DEFAULT 0

/*
 A write flag: the write survives the end of the process.
 */
#define SHINGLE_BUFFERED 1

/*
 A write flag: the write survives a power loss.
 */
#define SHINGLE_SYNCED 2

/*
 A write flag: a write that would have to wait fails with `SHINGLE_WOULD_WAIT`.
 */
#define SHINGLE_NO_WAIT 4

/*
 Operations that become visible and durable together.
 */
typedef struct shingle_batch shingle_batch;

/*
 Entries that a cursor passed, in memory of their own.
 */
typedef struct shingle_chunk shingle_chunk;

/*
 A position in the keys of a keyspace.
 */
typedef struct shingle_cursor shingle_cursor;

/*
 An open database.
 */
typedef struct shingle_db shingle_db;

/*
 What went wrong, where, and what to do about it.
 */
typedef struct shingle_error shingle_error;

/*
 A keyspace of an open database.
 */
typedef struct shingle_keyspace shingle_keyspace;

/*
 How to open a database.
 */
typedef struct shingle_options shingle_options;

/*
 What several databases share.
 */
typedef struct shingle_resources shingle_resources;

/*
 The state of a database at a moment.
 */
typedef struct shingle_snapshot shingle_snapshot;

/*
 A text for the caller, to be freed.
 */
typedef struct shingle_text shingle_text;

/*
 Reads and writes that happen together or not at all.
 */
typedef struct shingle_transaction shingle_transaction;

/*
 Where a function puts its error: null where the caller wants only the code.
 */
typedef struct shingle_error **shingle_error_place;

/*
 Bytes that belong to the caller: a key, a value. Null with the size 0 is empty.
 */
typedef struct shingle_slice {
  /*
   Where they begin.
   */
  const void *data;
  /*
   How many they are.
   */
  uintptr_t size;
} shingle_slice;

/*
 Which keys a cursor shows, and how it reads. All zero: all keys, the usual way.
 */
typedef struct shingle_cursor_options {
  /*
   The first key that is shown; null: no bound.
   */
  struct shingle_slice start;
  /*
   The first key behind those that are shown; null: no bound.
   */
  struct shingle_slice end;
  /*
   Only keys that begin with it are shown, in place of `start` and `end`; null: all.
   */
  struct shingle_slice prefix;
  /*
   Blocks that are read do not go to the block cache.
   */
  bool leaves_cache;
  /*
   No user waits: it prefetches in large pieces, and leaves the block cache alone.
   */
  bool is_background;
} shingle_cursor_options;

/*
 Hears how far a check is: bytes done and in all, and the file, a text that lives during the
 call. It cancels the check by returning false. It must not call back into the database's
 `shingle_close`.
 */
typedef bool (*shingle_progress)(void *argument, uint64_t done, uint64_t total, const char *what);

/*
 The fixed properties of a keyspace. All zero: the defaults.
 */
typedef struct shingle_keyspace_options {
  /*
   The name of a merge operator, or null: "append" or "add-u64".
   */
  const char *merge_operator;
  /*
   Values end after these seconds; 0: never.
   */
  uint64_t ttl_seconds;
  /*
   Filters know the first bytes of keys, as many as this; 0: none.
   */
  uint8_t prefix_bytes;
  /*
   Writes do not go to the log: what was not flushed is lost when the process ends.
   */
  bool without_wal;
} shingle_keyspace_options;

/*
 A value that the caller holds, where it lies, until `shingle_value_free`. It may be moved, but
 of its copies only one may be freed.
 */
typedef struct shingle_value {
  /*
   The bytes. Where there is no value, they begin at null.
   */
  struct shingle_slice bytes;
  /*
   What keeps the bytes where they are.
   */
  uint64_t held[4];
} shingle_value;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 An empty batch. Free it with `shingle_batch_free`.
 */
int shingle_batch_create(struct shingle_batch **batch, shingle_error_place error);

/*
 Adds a put.
 */
int shingle_batch_put(struct shingle_batch *batch,
                      struct shingle_keyspace *keyspace,
                      struct shingle_slice key,
                      struct shingle_slice value,
                      shingle_error_place error);

/*
 Adds `count` puts: of each key with the value at the same place. Cheaper than as many calls.
 After an error the batch has those before the refused one.
 */
int shingle_batch_put_many(struct shingle_batch *batch,
                           struct shingle_keyspace *keyspace,
                           const struct shingle_slice *keys,
                           const struct shingle_slice *values,
                           uintptr_t count,
                           shingle_error_place error);

/*
 Adds a put of a value that ends at `expires_millis` after 1970.
 */
int shingle_batch_put_expiring(struct shingle_batch *batch,
                               struct shingle_keyspace *keyspace,
                               struct shingle_slice key,
                               struct shingle_slice value,
                               uint64_t expires_millis,
                               shingle_error_place error);

/*
 Adds a deletion.
 */
int shingle_batch_delete(struct shingle_batch *batch,
                         struct shingle_keyspace *keyspace,
                         struct shingle_slice key,
                         shingle_error_place error);

/*
 Adds a deletion of the keys from `start` on and before `end`.
 */
int shingle_batch_delete_range(struct shingle_batch *batch,
                               struct shingle_keyspace *keyspace,
                               struct shingle_slice start,
                               struct shingle_slice end,
                               shingle_error_place error);

/*
 Adds a merge.
 */
int shingle_batch_merge(struct shingle_batch *batch,
                        struct shingle_keyspace *keyspace,
                        struct shingle_slice key,
                        struct shingle_slice operand,
                        shingle_error_place error);

/*
 Removes everything from a batch and keeps its memory.
 */
int shingle_batch_clear(struct shingle_batch *batch, shingle_error_place error);

/*
 Operations in a batch; 0 where there is no batch.
 */
uintptr_t shingle_batch_count(struct shingle_batch *batch);

/*
 Writes a batch: all of it, or nothing. The batch is empty afterwards, also after an error, and
 can be filled anew.
 */
int shingle_write(struct shingle_db *db,
                  struct shingle_batch *batch,
                  uint32_t flags,
                  shingle_error_place error);

/*
 Frees a batch. Null is allowed.
 */
void shingle_batch_free(struct shingle_batch *batch);

/*
 A cursor over a keyspace as it is now. `options` may be null. It has no position until it seeks.
 One thread uses it at a time; another one waits. Free it with `shingle_cursor_free`.
 */
int shingle_cursor_create(struct shingle_keyspace *keyspace,
                          const struct shingle_cursor_options *options,
                          struct shingle_cursor **cursor,
                          shingle_error_place error);

/*
 A cursor over the keyspace of a snapshot; see `shingle_cursor_create`.
 */
int shingle_snapshot_cursor(struct shingle_snapshot *snapshot,
                            const struct shingle_cursor_options *options,
                            struct shingle_cursor **cursor,
                            shingle_error_place error);

/*
 Goes to the first key.
 */
int shingle_cursor_seek_to_first(struct shingle_cursor *cursor, shingle_error_place error);

/*
 Goes to the last key.
 */
int shingle_cursor_seek_to_last(struct shingle_cursor *cursor, shingle_error_place error);

/*
 Goes to `key`, or the first key behind it.
 */
int shingle_cursor_seek(struct shingle_cursor *cursor,
                        struct shingle_slice key,
                        shingle_error_place error);

/*
 Goes to `key`, or the last key before it.
 */
int shingle_cursor_seek_for_prev(struct shingle_cursor *cursor,
                                 struct shingle_slice key,
                                 shingle_error_place error);

/*
 Goes to the next key.
 */
int shingle_cursor_next(struct shingle_cursor *cursor, shingle_error_place error);

/*
 Goes to the key before.
 */
int shingle_cursor_prev(struct shingle_cursor *cursor, shingle_error_place error);

/*
 Whether the cursor is at a key, and which key and value these are. The slices live until the
 cursor moves or is freed. Without a cursor: false.
 */
bool shingle_cursor_entry(struct shingle_cursor *cursor,
                          struct shingle_slice *key,
                          struct shingle_slice *value);

/*
 Frees a cursor. Null is allowed.
 */
void shingle_cursor_free(struct shingle_cursor *cursor);

/*
 Memory for the entries of `shingle_cursor_chunk`. Free it with `shingle_chunk_free`.
 */
int shingle_chunk_create(struct shingle_chunk **chunk, shingle_error_place error);

/*
 Puts the entries from the cursor's position on into `chunk`, in place of what it had, and moves
 the cursor behind them: at most `count_max` entries, and no other after `bytes_max` bytes. Empty
 means that there are no more. `in_reverse` goes to smaller keys.
 */
int shingle_cursor_chunk(struct shingle_cursor *cursor,
                         bool in_reverse,
                         uintptr_t count_max,
                         uintptr_t bytes_max,
                         struct shingle_chunk *chunk,
                         shingle_error_place error);

/*
 The entries of a chunk, for `shingle_next_entry`. They live until the chunk is filled anew or
 freed. Each is the size of the key and the size of the value, of 4 bytes, little-endian; then
 the key and the value.
 */
struct shingle_slice shingle_chunk_entries(const struct shingle_chunk *chunk);

/*
 How many entries a chunk has.
 */
uintptr_t shingle_chunk_count(const struct shingle_chunk *chunk);

/*
 Frees a chunk. Null is allowed.
 */
void shingle_chunk_free(struct shingle_chunk *chunk);

/*
 Opens the database in the directory `path`, and creates it where it does not exist. `options`
 may be null.
 */
int shingle_open(const char *path,
                 struct shingle_options *options,
                 struct shingle_db **db,
                 shingle_error_place error);

/*
 Removes the database in a directory, and the directory where nothing else is in it. Files that
 are not Shingle's stay. `SHINGLE_LOCKED` where a process has it open, `SHINGLE_NOT_FOUND` where
 there is none.
 */
int shingle_destroy(const char *path, shingle_error_place error);

/*
 Closes a database. Everything that was acknowledged survives a power loss when this returns.
 Calls of other threads that are in it end first; later ones fail with `SHINGLE_CLOSED`.
 Snapshots and cursors stay readable until they are freed. An error is that of the last flush or
 sync; the database is closed all the same. Null is allowed.
 */
int shingle_close(struct shingle_db *db, shingle_error_place error);

/*
 Flushes the memtables of all keyspaces to tables.
 */
int shingle_flush(struct shingle_db *db, shingle_error_place error);

/*
 Begins what `shingle_flush` does, and does not wait for its end. An error of the flush comes
 with a later write, or with the close.
 */
int shingle_begin_flush(struct shingle_db *db, shingle_error_place error);

/*
 Makes every earlier write durable.
 */
int shingle_sync(struct shingle_db *db, shingle_error_place error);

/*
 Compacts everything.
 */
int shingle_compact(struct shingle_db *db, shingle_error_place error);

/*
 Waits until no background work is due.
 */
int shingle_wait_idle(struct shingle_db *db, shingle_error_place error);

/*
 Copies the database as it is now to the new directory `target`, by links where the file system
 has them.
 */
int shingle_checkpoint(struct shingle_db *db, const char *target, shingle_error_place error);

/*
 Changes an option of an open database; the manual says which can be changed.
 */
int shingle_set_option(struct shingle_db *db,
                       const char *name,
                       const char *value,
                       shingle_error_place error);

/*
 The statistics as JSON (docs/manual/statistics.md). Free them with `shingle_text_free`.
 */
int shingle_stats(struct shingle_db *db, struct shingle_text **json, shingle_error_place error);

/*
 A property by its name; null where there is none of that name. Free it with
 `shingle_text_free`.
 */
int shingle_property(struct shingle_db *db,
                     const char *name,
                     struct shingle_text **value,
                     shingle_error_place error);

/*
 Reads the whole database and compares it with its checksums. `problems` gets how many there are,
 and `report` their texts, one in a line. A check that finds problems is no error. `progress` may
 be null; `argument` is handed to it.
 */
int shingle_check(struct shingle_db *db,
                  shingle_progress progress,
                  void *argument,
                  uintptr_t *problems,
                  struct shingle_text **report,
                  shingle_error_place error);

/*
 The number of the error's kind, one of `enum shingle_code`; 0 without an error.
 */
int shingle_error_code(const struct shingle_error *error);

/*
 The name of the error's kind, such as "Locked". Lives as long as the error.
 */
const char *shingle_error_kind(const struct shingle_error *error);

/*
 What happened, in words for people. Lives as long as the error.
 */
const char *shingle_error_message(const struct shingle_error *error);

/*
 What to do about it, one sentence. Lives as long as the error.
 */
const char *shingle_error_remedy(const struct shingle_error *error);

/*
 The file that the error is about, or null. Lives as long as the error.
 */
const char *shingle_error_file(const struct shingle_error *error);

/*
 Whether the error is about a byte of its file; which, goes to `offset`.
 */
bool shingle_error_offset(const struct shingle_error *error, uint64_t *offset);

/*
 Frees an error. Null is allowed.
 */
void shingle_error_free(struct shingle_error *error);

/*
 Frees a text that a function gave to the caller. Null is allowed.
 */
void shingle_text_free(struct shingle_text *text);

/*
 The characters of a text, which ends with a zero byte. They live as long as the text.
 */
const char *shingle_text_data(const struct shingle_text *text);

/*
 Creates a keyspace. `options` may be null.
 */
int shingle_create_keyspace(struct shingle_db *db,
                            const char *name,
                            const struct shingle_keyspace_options *options,
                            struct shingle_keyspace **keyspace,
                            shingle_error_place error);

/*
 Opens a keyspace, and creates it where it does not exist. One that exists must have the
 properties that `options` says; null takes it as it is.
 */
int shingle_open_keyspace(struct shingle_db *db,
                          const char *name,
                          const struct shingle_keyspace_options *options,
                          struct shingle_keyspace **keyspace,
                          shingle_error_place error);

/*
 The keyspace that every database has. Free it with `shingle_keyspace_free`.
 */
int shingle_default_keyspace(struct shingle_db *db,
                             struct shingle_keyspace **keyspace,
                             shingle_error_place error);

/*
 The names of all keyspaces, one in a line. Free them with `shingle_text_free`.
 `SHINGLE_UNSUPPORTED` where a name has a line break or a zero byte: `shingle_keyspace_names`
 gives those too.
 */
int shingle_keyspaces(struct shingle_db *db,
                      struct shingle_text **names,
                      shingle_error_place error);

/*
 Puts the names of all keyspaces into `chunk`, in place of what it had. Each is the key of an
 entry with an empty value.
 */
int shingle_keyspace_names(struct shingle_db *db,
                           struct shingle_chunk *chunk,
                           shingle_error_place error);

/*
 The keyspace called `name`. Free it with `shingle_keyspace_free`.
 */
int shingle_find_keyspace(struct shingle_db *db,
                          const char *name,
                          struct shingle_keyspace **keyspace,
                          shingle_error_place error);

/*
 Removes a keyspace with everything in it.
 */
int shingle_drop_keyspace(struct shingle_db *db, const char *name, shingle_error_place error);

/*
 Frees the handle of a keyspace; the keyspace stays. Null is allowed.
 */
void shingle_keyspace_free(struct shingle_keyspace *keyspace);

/*
 The default options, to be changed with `shingle_options_set`.
 */
int shingle_options_create(struct shingle_options **options, shingle_error_place error);

/*
 Sets an option by its name, such as "scheme" or "memory_bytes", in the form that configuration
 files have. The manual lists all names (docs/manual/options.md).
 */
int shingle_options_set(struct shingle_options *options,
                        const char *name,
                        const char *value,
                        shingle_error_place error);

/*
 Whether a database that does not exist is created. Default: yes.
 */
int shingle_options_set_create(struct shingle_options *options,
                               bool yes,
                               shingle_error_place error);

/*
 Whether the database must be new: one that exists is refused, with `SHINGLE_ALREADY_EXISTS`.
 Of several processes that create it at once, one succeeds. Default: no.
 */
int shingle_options_set_create_new(struct shingle_options *options,
                                   bool yes,
                                   shingle_error_place error);

/*
 Whether the database is opened for reading only. Default: no.
 */
int shingle_options_set_read_only(struct shingle_options *options,
                                  bool yes,
                                  shingle_error_place error);

/*
 Databases that are opened with these options share what `resources` has.
 */
int shingle_options_set_resources(struct shingle_options *options,
                                  struct shingle_resources *resources,
                                  shingle_error_place error);

/*
 Every option, and every parameter that is set, as the text of a configuration file. Free it with
 `shingle_text_free`.
 */
int shingle_options_text(struct shingle_options *options,
                         struct shingle_text **out,
                         shingle_error_place error);

/*
 Frees options. Databases that were opened with them stay as they are.
 */
void shingle_options_free(struct shingle_options *options);

/*
 A block cache of `cache_bytes` for several databases.
 */
int shingle_resources_create(uint64_t cache_bytes,
                             struct shingle_resources **resources,
                             shingle_error_place error);

/*
 Memory, background threads and a limit of background work for several databases. Memory is at
 least 1 MiB, threads are at least 1; `background_bytes_per_second` of 0 is no limit.
 */
int shingle_resources_create_within(uint64_t memory_bytes,
                                    uintptr_t background_threads,
                                    uint64_t background_bytes_per_second,
                                    struct shingle_resources **resources,
                                    shingle_error_place error);

/*
 Bytes in the shared cache now, and bytes in the memtables of all databases: 0 where memory is
 not shared. Each database says what it has when it seals or flushes a memtable.
 */
int shingle_resources_used(struct shingle_resources *resources,
                           uint64_t *cache_bytes,
                           uint64_t *memtable_bytes,
                           shingle_error_place error);

/*
 Frees resources; databases that use them keep them.
 */
void shingle_resources_free(struct shingle_resources *resources);

/*
 The value of `key`, without a copy where its block is in the cache. Where there is none, which
 is no error, its bytes begin at null. It lives until `shingle_value_free`, also after the
 database is closed.
 */
int shingle_get(struct shingle_keyspace *keyspace,
                struct shingle_slice key,
                struct shingle_value *value,
                shingle_error_place error);

/*
 The value of `key`, copied to `buffer` as far as `buffer_bytes` reach. `value_bytes` gets its
 whole size, or `SIZE_MAX` where there is none. The key must not lie in `buffer`.
 */
int shingle_get_copy(struct shingle_keyspace *keyspace,
                     struct shingle_slice key,
                     uint8_t *buffer,
                     uintptr_t buffer_bytes,
                     uintptr_t *value_bytes,
                     shingle_error_place error);

/*
 The values of `count` keys, read together, each as `shingle_get` gives it.
 */
int shingle_multi_get(struct shingle_keyspace *keyspace,
                      const struct shingle_slice *keys,
                      uintptr_t count,
                      struct shingle_value *values,
                      shingle_error_place error);

/*
 The value of `key` and when it ends, in milliseconds after 1970: `UINT64_MAX` where it does
 not.
 */
int shingle_get_with_expiry(struct shingle_keyspace *keyspace,
                            struct shingle_slice key,
                            struct shingle_value *value,
                            uint64_t *expires_millis,
                            shingle_error_place error);

/*
 Frees a value. It has no bytes then, so that freeing it again does nothing. Null is allowed.
 */
void shingle_value_free(struct shingle_value *value);

/*
 The state of all keyspaces as it is now, seen through the default keyspace. It holds what
 compactions would remove, until it is freed with `shingle_snapshot_free`.
 */
int shingle_snapshot_create(struct shingle_db *db,
                            struct shingle_snapshot **snapshot,
                            shingle_error_place error);

/*
 The same moment, seen through another keyspace. Free it too.
 */
int shingle_snapshot_of(struct shingle_snapshot *snapshot,
                        struct shingle_keyspace *keyspace,
                        struct shingle_snapshot **other,
                        shingle_error_place error);

/*
 The value of `key` at the snapshot; see `shingle_get`.
 */
int shingle_snapshot_get(struct shingle_snapshot *snapshot,
                         struct shingle_slice key,
                         struct shingle_value *value,
                         shingle_error_place error);

/*
 The values of `count` keys at the snapshot; see `shingle_multi_get`.
 */
int shingle_snapshot_multi_get(struct shingle_snapshot *snapshot,
                               const struct shingle_slice *keys,
                               uintptr_t count,
                               struct shingle_value *values,
                               shingle_error_place error);

/*
 Frees a snapshot. Null is allowed.
 */
void shingle_snapshot_free(struct shingle_snapshot *snapshot);

/*
 Begins a transaction. It sees the database as it is now, and its own writes. With
 `of_one_snapshot` its commit fails only where another wrote a key that it wrote; otherwise also
 where another wrote a key that it read. `lock_timeout_millis`: how long locks are waited for; 0:
 keys are not locked before the commit. End it with `shingle_commit` or
 `shingle_transaction_free`.
 */
int shingle_transaction_begin(struct shingle_db *db,
                              bool of_one_snapshot,
                              uint64_t lock_timeout_millis,
                              struct shingle_transaction **transaction,
                              shingle_error_place error);

/*
 The value of `key` as the transaction sees it; see `shingle_get`. `for_update`: the commit fails
 where another writes the key in the meantime, whatever the isolation.
 */
int shingle_transaction_get(struct shingle_transaction *transaction,
                            struct shingle_keyspace *keyspace,
                            struct shingle_slice key,
                            bool for_update,
                            struct shingle_value *value,
                            shingle_error_place error);

/*
 Stores `value` under `key` at the commit.
 */
int shingle_transaction_put(struct shingle_transaction *transaction,
                            struct shingle_keyspace *keyspace,
                            struct shingle_slice key,
                            struct shingle_slice value,
                            shingle_error_place error);

/*
 Removes `key` at the commit.
 */
int shingle_transaction_delete(struct shingle_transaction *transaction,
                               struct shingle_keyspace *keyspace,
                               struct shingle_slice key,
                               shingle_error_place error);

/*
 Removes the keys from `start` on and before `end` at the commit.
 */
int shingle_transaction_delete_range(struct shingle_transaction *transaction,
                                     struct shingle_keyspace *keyspace,
                                     struct shingle_slice start,
                                     struct shingle_slice end,
                                     shingle_error_place error);

/*
 Applies `operand` to the value of `key` at the commit.
 */
int shingle_transaction_merge(struct shingle_transaction *transaction,
                              struct shingle_keyspace *keyspace,
                              struct shingle_slice key,
                              struct shingle_slice operand,
                              shingle_error_place error);

/*
 Commits a transaction and frees it, also where the commit fails. `SHINGLE_CONFLICT`: another
 write came between; begin again.
 */
int shingle_commit(struct shingle_transaction *transaction,
                   uint32_t flags,
                   shingle_error_place error);

/*
 Ends a transaction without its writes. Null is allowed.
 */
void shingle_transaction_free(struct shingle_transaction *transaction);

/*
 Stores `value` under `key`.
 */
int shingle_put(struct shingle_keyspace *keyspace,
                struct shingle_slice key,
                struct shingle_slice value,
                uint32_t flags,
                shingle_error_place error);

/*
 Stores `value` under `key` until `expires_millis` after 1970.
 */
int shingle_put_expiring(struct shingle_keyspace *keyspace,
                         struct shingle_slice key,
                         struct shingle_slice value,
                         uint64_t expires_millis,
                         uint32_t flags,
                         shingle_error_place error);

/*
 Removes `key`; it need not be there.
 */
int shingle_delete(struct shingle_keyspace *keyspace,
                   struct shingle_slice key,
                   uint32_t flags,
                   shingle_error_place error);

/*
 Removes the keys from `start` on and before `end`.
 */
int shingle_delete_range(struct shingle_keyspace *keyspace,
                         struct shingle_slice start,
                         struct shingle_slice end,
                         uint32_t flags,
                         shingle_error_place error);

/*
 Applies `operand` to the value of `key`, by the keyspace's merge operator.
 */
int shingle_merge(struct shingle_keyspace *keyspace,
                  struct shingle_slice key,
                  struct shingle_slice operand,
                  uint32_t flags,
                  shingle_error_place error);

/*
 Waits until `bytes` can be written without a wait, at most `timeout_millis`. `is_writable` gets
 whether they can.
 */
int shingle_wait_writable(struct shingle_db *db,
                          uint64_t bytes,
                          uint64_t timeout_millis,
                          bool *is_writable,
                          shingle_error_place error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SHINGLE_H */

/* `size` bytes from `data` on. */
static inline shingle_slice shingle_bytes(const void *data, size_t size) {
  shingle_slice slice;
  slice.data = data;
  slice.size = size;
  return slice;
}

static inline uint32_t shingle_little_endian(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Takes the first entry from `entries`, which begin as `shingle_chunk_entries` gives them: false where
 * none is left. It is here so that a step of a scan is no call. */
static inline bool shingle_next_entry(shingle_slice *entries, shingle_slice *key, shingle_slice *value) {
  const uint8_t *bytes = (const uint8_t *)entries->data;
  size_t entry_bytes;
  if (entries->size == 0) return false;
  *key = shingle_bytes(bytes + 8, shingle_little_endian(bytes));
  *value = shingle_bytes(bytes + 8 + key->size, shingle_little_endian(bytes + 4));
  entry_bytes = 8 + key->size + value->size;
  *entries = shingle_bytes(bytes + entry_bytes, entries->size - entry_bytes);
  return true;
}
