/* Makes a database with LevelDB's own library: several levels, a log that is in no table, overwritten
 * and deleted keys. `fill FOLDER COMPRESSION KEYS ROUNDS` prints what it must hold, a key and a value in
 * a line. */
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *error;

static void check(const char *what) {
  if (error != NULL) {
    fprintf(stderr, "%s: %s\n", what, error);
    exit(1);
  }
}

int main(int count, char **arguments) {
  if (count != 5) return 2;
  const int compression = atoi(arguments[2]), keys = atoi(arguments[3]), rounds = atoi(arguments[4]);
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_compression(options, compression);
  leveldb_options_set_write_buffer_size(options, 64 << 10);
  leveldb_options_set_block_size(options, 1024);
  leveldb_filterpolicy_t *bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_set_filter_policy(options, bloom);
  leveldb_t *db = leveldb_open(options, arguments[1], &error);
  check("open");
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  char **values = calloc(keys, sizeof *values);
  unsigned random = 7;
  for (int round = 0; round < rounds; round++) {
    for (int n = 0; n < keys; n++) {
      random = random * 1103515245 + 12345;
      const int key_number = (random >> 8) % keys;
      char key[16], value[64];
      snprintf(key, sizeof key, "key%06d", key_number);
      snprintf(value, sizeof value, "round %d, %u, abcabcabcabcabcabc", round, random);
      free(values[key_number]);
      if (random % 5 == 0) {
        leveldb_delete(db, write, key, strlen(key), &error);
        values[key_number] = NULL;
      } else {
        leveldb_put(db, write, key, strlen(key), value, strlen(value), &error);
        values[key_number] = strdup(value);
      }
      check("write");
    }
    /* The last round stays in the log. */
    if (round + 2 == rounds) leveldb_compact_range(db, NULL, 0, NULL, 0);
  }
  leveldb_writebatch_t *batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "", 0, "empty key", 9);
  leveldb_writebatch_put(batch, "zzz", 3, "", 0);
  leveldb_write(db, write, batch, &error);
  check("batch");
  printf("\tempty key\n");
  for (int n = 0; n < keys; n++) {
    if (values[n] != NULL) printf("key%06d\t%s\n", n, values[n]);
  }
  printf("zzz\t\n");
  leveldb_close(db);
  return 0;
}
