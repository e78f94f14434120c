/* What the test programs share. A failed check ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shingle.h"

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* The call succeeds. `error` is in scope. */
#define OK(call)                                                                          \
  do {                                                                                    \
    if ((call) != SHINGLE_OK) {                                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, shingle_error_message(error));   \
      exit(1);                                                                            \
    }                                                                                     \
    CHECK(error == NULL);                                                                 \
  } while (0)

/* The call fails with this code, and its error says so in words. */
#define FAILS(expected, call)                            \
  do {                                                   \
    CHECK((call) == (expected));                         \
    CHECK(error != NULL);                                \
    CHECK(shingle_error_code(error) == (expected));      \
    CHECK(strlen(shingle_error_message(error)) > 8);     \
    CHECK(strlen(shingle_error_remedy(error)) > 4);      \
    shingle_error_free(error);                           \
    error = NULL;                                        \
  } while (0)

#define T(text) SHINGLE_TEXT(text)

static inline int equals(shingle_slice slice, const char *text) {
  return slice.size == strlen(text) && memcmp(slice.data, text, slice.size) == 0;
}

/* The value has this text; null: there is no value. Frees it. */
static inline int has(shingle_value value, const char *text) {
  int is_so = text == NULL ? value.bytes.data == NULL
                           : value.bytes.data != NULL && equals(value.bytes, text);
  shingle_value_free(&value);
  shingle_value_free(&value); /* does nothing */
  return is_so;
}

#endif
