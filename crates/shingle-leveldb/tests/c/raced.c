/* Processes that open, remove, repair and create one database at once. Only for Shingle.

     raced destroy|repair|new PATH ROUNDS

   Who has opened a database is alone, finds its files, and what it wrote stays. A removal and a
   repair are as good as an opener. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *path;

static char *inside(const char *name) {
  static char text[4096];
  snprintf(text, sizeof text, "%s%s", path, name);
  return text;
}

/* Opens the database; null where another process has it. */
static leveldb_t *opened(int creates, int is_new) {
  char *error = NULL;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, creates);
  leveldb_options_set_error_if_exists(options, is_new);
  leveldb_t *db = leveldb_open(options, path, &error);
  leveldb_options_destroy(options);
  if (error != NULL) {
    int is_kept_out = strstr(error, "is opened by") || strstr(error, "or replaced by another") ||
                      (is_new && strstr(error, "error_if_exists is true"));
    if (!is_kept_out) fprintf(stderr, "open: %s\n", error);
    CHECK(is_kept_out && db == NULL);
    leveldb_free(error);
  }
  return db;
}

/* Writes, and reads what it wrote. No other process does so meanwhile. */
static void use(leveldb_t *db, const char *key) {
  char *error = NULL;
  size_t length;
  leveldb_writeoptions_t *write = leveldb_writeoptions_create();
  leveldb_readoptions_t *read = leveldb_readoptions_create();
  int marker = open(inside(".marker"), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (marker < 0) fprintf(stderr, "two have the database: %s\n", strerror(errno));
  CHECK(marker >= 0);
  leveldb_put(db, write, key, strlen(key), "v", 1, &error);
  OK();
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(access(inside("/CURRENT"), F_OK) == 0);
  char *value = leveldb_get(db, read, key, strlen(key), &length, &error);
  OK();
  CHECK(value != NULL);
  leveldb_free(value);
  CHECK(unlink(inside(".marker")) == 0);
  close(marker);
  leveldb_readoptions_destroy(read);
  leveldb_writeoptions_destroy(write);
}

/* Whether a failed removal or repair only met another process. */
static void check_kept_out(char *error) {
  if (error == NULL) return;
  int is_kept_out = strstr(error, "is opened by") || strstr(error, "or replaced by another");
  if (!is_kept_out) fprintf(stderr, "%s\n", error);
  CHECK(is_kept_out);
  leveldb_free(error);
}

static void destroys(void) {
  char *error = NULL;
  leveldb_options_t *options = leveldb_options_create();
  leveldb_destroy_db(options, path, &error);
  check_kept_out(error);
  leveldb_options_destroy(options);
}

static void ended(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t forked(void) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  return child;
}

static void race_of_removals(int rounds) {
  int over[2];
  pid_t children[4];
  char byte;
  CHECK(pipe(over) == 0 && fcntl(over[0], F_SETFL, O_NONBLOCK) == 0);
  for (int n = 0; n < 4; n++) {
    children[n] = forked();
    if (children[n] != 0) continue;
    close(over[1]);
    /* Two remove, until the other two have had the database often enough. */
    while (n < 2 && read(over[0], &byte, 1) < 0 && errno == EAGAIN) destroys();
    for (int round = 0; n >= 2 && round < rounds;) {
      leveldb_t *db = opened(1, 0);
      if (db == NULL) continue;
      use(db, "key");
      leveldb_close(db);
      round++;
    }
    _exit(0);
  }
  for (int n = 2; n < 4; n++) ended(children[n]);
  close(over[1]);
  for (int n = 0; n < 2; n++) ended(children[n]);
}

/* The database is damaged. Every process that could open it finds its key in what was repaired. */
static void race_of_repairs(void) {
  int wrote[2], repaired[2];
  pid_t children[4];
  CHECK(pipe(wrote) == 0 && pipe(repaired) == 0);
  CHECK(fcntl(repaired[0], F_SETFL, O_NONBLOCK) == 0);
  for (int n = 0; n < 4; n++) {
    children[n] = forked();
    if (children[n] != 0) continue;
    close(repaired[1]);
    char byte, name[16];
    int writes = 0;
    /* Until all who repair are done. */
    while (n > 0 && read(repaired[0], &byte, 1) < 0 && errno == EAGAIN) {
      leveldb_t *db = opened(0, 0);
      if (db == NULL) continue;
      char *error = NULL;
      leveldb_writeoptions_t *options = leveldb_writeoptions_create();
      snprintf(name, sizeof name, "%d-%d", n, writes++);
      leveldb_put(db, options, name, strlen(name), "", 0, &error);
      OK();
      leveldb_writeoptions_destroy(options);
      leveldb_close(db);
      CHECK(write(wrote[1], name, sizeof name) == sizeof name);
    }
    _exit(0);
  }
  close(wrote[1]);
  leveldb_options_t *options = leveldb_options_create();
  char *error;
  int tries = 0;
  do {
    error = NULL;
    leveldb_repair_db(options, path, &error);
    check_kept_out(error);
  } while (error != NULL && ++tries < 100000);
  CHECK(error == NULL);
  close(repaired[1]);
  char name[16];
  size_t length;
  int found = 0;
  for (int n = 1; n < 4; n++) ended(children[n]);
  leveldb_t *db = opened(0, 0);
  CHECK(db != NULL);
  leveldb_readoptions_t *read_options = leveldb_readoptions_create();
  while (read(wrote[0], name, sizeof name) == sizeof name) {
    char *value = leveldb_get(db, read_options, name, strlen(name), &length, &error);
    OK();
    if (value == NULL) fprintf(stderr, "lost: %s\n", name);
    CHECK(value != NULL);
    leveldb_free(value);
    found++;
  }
  printf("%d writes beside the repair\n", found);
  ended(children[0]);
  leveldb_readoptions_destroy(read_options);
  leveldb_close(db);
  leveldb_options_destroy(options);
}

/* Of processes that want a new database at once, one gets it. */
static void race_of_creations(int rounds) {
  for (int round = 0; round < rounds; round++) {
    int go[2], status, winners = 0;
    pid_t children[4];
    char byte;
    CHECK(pipe(go) == 0);
    for (int n = 0; n < 4; n++) {
      children[n] = forked();
      if (children[n] != 0) continue;
      close(go[1]);
      CHECK(read(go[0], &byte, 1) == 0);
      leveldb_t *db = opened(1, 1);
      int won = db != NULL;
      if (won) use(db, "winner");
      leveldb_close(db);
      _exit(won ? 7 : 0);
    }
    close(go[0]);
    close(go[1]);
    for (int n = 0; n < 4; n++) {
      CHECK(waitpid(children[n], &status, 0) == children[n] && WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7);
      winners += WEXITSTATUS(status) == 7;
    }
    if (winners != 1) fprintf(stderr, "%d winners\n", winners);
    CHECK(winners == 1);
    destroys();
    CHECK(access(path, F_OK) != 0);
  }
}

int main(int count, char **arguments) {
  CHECK(count == 4);
  path = arguments[2];
  const int rounds = atoi(arguments[3]);
  if (strcmp(arguments[1], "destroy") == 0) race_of_removals(rounds);
  else if (strcmp(arguments[1], "repair") == 0) race_of_repairs();
  else race_of_creations(rounds);
  printf("done\n");
  return 0;
}
