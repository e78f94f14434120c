/* Damage is an error that names the file and the byte. */
#include "check.h"

static shingle_error *error;

int main(int count, char **arguments) {
  CHECK(count == 2);
  shingle_options *options;
  shingle_db *db;
  shingle_keyspace *keyspace;
  OK(shingle_options_create(&options, &error));
  OK(shingle_options_set_read_only(options, true, &error));
  OK(shingle_open(arguments[1], options, &db, &error));
  OK(shingle_default_keyspace(db, &keyspace, &error));
  int code = SHINGLE_OK;
  for (int n = 0; n < 1000 && code == SHINGLE_OK; n++) {
    char key[16];
    shingle_value value;
    snprintf(key, sizeof key, "key%04d", n);
    code = shingle_get(keyspace, T(key), &value, &error);
    if (code == SHINGLE_OK) shingle_value_free(&value);
  }
  CHECK(code == SHINGLE_CORRUPTION);
  CHECK(strcmp(shingle_error_kind(error), "Corruption") == 0);
  uint64_t offset = 0;
  CHECK(strstr(shingle_error_file(error), ".table") && shingle_error_offset(error, &offset));
  CHECK(strstr(shingle_error_message(error), shingle_error_file(error)));
  shingle_error_free(error);
  error = NULL;

  size_t problems;
  shingle_text *report;
  OK(shingle_check(db, NULL, NULL, &problems, &report, &error));
  CHECK(problems > 0 && strstr(shingle_text_data(report), ".table"));
  shingle_text_free(report);
  shingle_keyspace_free(keyspace);
  OK(shingle_close(db, &error));
  shingle_options_free(options);
  puts("done");
  return 0;
}
