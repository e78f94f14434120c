/* Many openings and closings: memory and open files stay as they are. */

#include <dirent.h>

#include "check.h"

static int open_files(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static long resident_kib(void) {
  long size, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
  fclose(file);
  return resident * 4;
}

static void live(const char *path, int number) {
  char *error = NULL;
  char key[16];
  size_t length;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_cache_t *cache = leveldb_cache_create_lru(1 << 20);
  leveldb_filterpolicy_t *policy = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_filter_policy(options, policy);
  leveldb_t *db = leveldb_open(options, path, &error);
  OK();
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  snprintf(key, sizeof key, "key%05d", number % 100);
  leveldb_put(db, write, key, strlen(key), "some value", 10, &error);
  OK();
  char *value = leveldb_get(db, read, "key00000", 8, &length, &error);
  OK();
  CHECK(value != NULL && length == 10);
  leveldb_free(value);
  leveldb_iterator_t *it = leveldb_create_iterator(db, read);
  leveldb_iter_seek_to_first(it);
  CHECK(leveldb_iter_valid(it));
  leveldb_iter_destroy(it);
  leveldb_writeoptions_destroy(write);
  leveldb_readoptions_destroy(read);
  leveldb_close(db);
  leveldb_options_destroy(options);
  leveldb_filterpolicy_destroy(policy);
  leveldb_cache_destroy(cache);
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  int lives = atoi(arguments[2]), files = 0;
  long kib = 0;
  for (int n = 0; n < lives; n++) {
    live(arguments[1], n);
    if (n == lives / 2) files = open_files(), kib = resident_kib();
  }
  printf("%d files, %ld KiB after half of the lives; %d files, %ld KiB after all\n", files, kib,
         open_files(), resident_kib());
  CHECK(open_files() == files);
  CHECK(resident_kib() < kib + 2048);
  puts("done");
  return 0;
}
