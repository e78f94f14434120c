/* A thousand lives: memory and open files stay as they are. */
#include <dirent.h>

#include "check.h"

static shingle_error *error;

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

int main(int count, char **arguments) {
  CHECK(count == 3);
  int lives = atoi(arguments[2]), files = 0;
  long kib = 0;
  for (int n = 0; n < lives; n++) {
    shingle_db *db;
    shingle_keyspace *keyspace;
    shingle_cursor *cursor;
    shingle_value value;
    char key[16];
    snprintf(key, sizeof key, "key%05d", n % 100);
    OK(shingle_open(arguments[1], NULL, &db, &error));
    OK(shingle_default_keyspace(db, &keyspace, &error));
    OK(shingle_put(keyspace, T(key), T("some value"), SHINGLE_DEFAULT, &error));
    OK(shingle_get(keyspace, T("key00000"), &value, &error));
    CHECK(has(value, "some value"));
    OK(shingle_cursor_create(keyspace, NULL, &cursor, &error));
    OK(shingle_cursor_seek_to_first(cursor, &error));
    shingle_cursor_free(cursor);
    shingle_keyspace_free(keyspace);
    OK(shingle_close(db, &error));
    if (n == lives / 2) files = open_files(), kib = resident_kib();
  }
  printf("%d files, %ld KiB after half of the lives; %d files, %ld KiB after all\n", files, kib,
         open_files(), resident_kib());
  CHECK(open_files() == files);
  CHECK(resident_kib() < kib + 2048);
  puts("done");
  return 0;
}
