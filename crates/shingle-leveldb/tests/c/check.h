/* What the test programs share. A failed check ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* There is no error. `error` is in scope. */
#define OK()                                                       \
  do {                                                             \
    if (error != NULL) {                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error);   \
      exit(1);                                                     \
    }                                                              \
  } while (0)

/* There is an error with this text in it; frees it. */
#define FAILED(text)                                                            \
  do {                                                                          \
    if (error == NULL || strstr(error, (text)) == NULL) {                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error ? error : "OK"); \
      exit(1);                                                                  \
    }                                                                           \
    leveldb_free(error);                                                        \
    error = NULL;                                                               \
  } while (0)

static inline void show(const char *what, const char *data, size_t size) {
  printf("%s: %zu ", what, size);
  fwrite(data, 1, size < 40 ? size : 40, stdout);
  printf("\n");
}

#endif
