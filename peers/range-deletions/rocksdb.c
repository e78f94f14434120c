/* What range deletions cost in RocksDB: the same work, in the same order and with the same output, as
 * crates/shingle/examples/measure_range_deletions.rs does with Shingle. It is C, so that no binding
 * adds to a call. `run.sh` beside it builds and runs both.
 *
 *     rocksdb DIR SHAPE DELETIONS [defaults | MEMTABLE_MAX_RANGE_DELETIONS]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
rocksdb_options_t *rocksdb_options_create(void);
void rocksdb_options_set_create_if_missing(rocksdb_options_t *, unsigned char);
void rocksdb_options_set_write_buffer_size(rocksdb_options_t *, size_t);
void rocksdb_options_set_compression(rocksdb_options_t *, int);
void rocksdb_options_set_memtable_max_range_deletions(rocksdb_options_t *, int);
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t *,
                                                   rocksdb_block_based_table_options_t *);
rocksdb_block_based_table_options_t *rocksdb_block_based_options_create(void);
void rocksdb_block_based_options_set_block_cache(rocksdb_block_based_table_options_t *,
                                                 rocksdb_cache_t *);
void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t *,
                                                   rocksdb_filterpolicy_t *);
rocksdb_filterpolicy_t *rocksdb_filterpolicy_create_bloom_full(double);
rocksdb_cache_t *rocksdb_cache_create_lru(size_t);
rocksdb_readoptions_t *rocksdb_readoptions_create(void);
rocksdb_writeoptions_t *rocksdb_writeoptions_create(void);
rocksdb_flushoptions_t *rocksdb_flushoptions_create(void);
rocksdb_t *rocksdb_open(const rocksdb_options_t *, const char *, char **);
void rocksdb_close(rocksdb_t *);
rocksdb_column_family_handle_t *rocksdb_get_default_column_family_handle(rocksdb_t *);
void rocksdb_put(rocksdb_t *, const rocksdb_writeoptions_t *, const char *, size_t, const char *,
                 size_t, char **);
void rocksdb_delete_range_cf(rocksdb_t *, const rocksdb_writeoptions_t *,
                             rocksdb_column_family_handle_t *, const char *, size_t, const char *,
                             size_t, char **);
rocksdb_pinnableslice_t *rocksdb_get_pinned(rocksdb_t *, const rocksdb_readoptions_t *, const char *,
                                            size_t, char **);
void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t *);
void rocksdb_flush(rocksdb_t *, const rocksdb_flushoptions_t *, char **);
void rocksdb_compact_range(rocksdb_t *, const char *, size_t, const char *, size_t);
rocksdb_iterator_t *rocksdb_create_iterator(rocksdb_t *, const rocksdb_readoptions_t *);
void rocksdb_iter_destroy(rocksdb_iterator_t *);
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t *);
void rocksdb_iter_seek(rocksdb_iterator_t *, const char *, size_t);
void rocksdb_iter_seek_to_first(rocksdb_iterator_t *);
void rocksdb_iter_seek_to_last(rocksdb_iterator_t *);
void rocksdb_iter_next(rocksdb_iterator_t *);
void rocksdb_iter_prev(rocksdb_iterator_t *);

#define ENTRIES 200000ull /* at the even and at some odd numbers below SPACE */
#define SPACE 2000000ull
#define VALUE_BYTES 100
#define KEY_BYTES 16
#define LIMIT_NS 4e9 /* no measurement repeats itself for longer */

static rocksdb_t *db;
static rocksdb_column_family_handle_t *family;
static rocksdb_readoptions_t *reads;
static rocksdb_writeoptions_t *writes;
static rocksdb_flushoptions_t *flushes;
static char *error;
static uint64_t state = 88172645463325252ull, rolling, deletions;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Of this thread: other work on the machine does not count. */
static double processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t below(uint64_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % bound;
}

static void check(const char *what) {
    if (error) {
        fprintf(stderr, "%s: %s\n", what, error);
        exit(1);
    }
}

static void key_of(uint64_t n, char *key) {
    memset(key, '0', KEY_BYTES - 8);
    for (int i = 0; i < 8; i++) key[KEY_BYTES - 1 - i] = (char)(n >> (8 * i));
}

/* Entry i: a victim and a survivor in each 20 numbers. */
static uint64_t entry(uint64_t i) { return i / 2 * 20 + i % 2; }

static uint64_t survivor(void) {
    uint64_t half = ENTRIES / 2;
    return entry(2 * (rolling ? half / 2 + below(half / 2) : below(half)));
}

static uint64_t victim(void) {
    if (rolling) return entry(below(ENTRIES / 2));
    uint64_t count = deletions < ENTRIES / 2 ? deletions : ENTRIES / 2;
    return entry(2 * (below(count ? count : 1) * (ENTRIES / 2 / (count ? count : 1))) + 1);
}

static void put(uint64_t n) {
    char key[KEY_BYTES], value[VALUE_BYTES];
    key_of(n, key);
    memset(value, 'v', sizeof value);
    rocksdb_put(db, writes, key, KEY_BYTES, value, VALUE_BYTES, &error);
    check("put");
}

static void delete_range(uint64_t i) {
    char start[KEY_BYTES], end[KEY_BYTES];
    uint64_t from = 0, to;
    if (rolling) {
        to = SPACE / 2 * (i % deletions + 1) / deletions;
    } else {
        i = i * 7919 % deletions; /* in no order */
        uint64_t half = ENTRIES / 2;
        from = deletions <= half ? i * (half / deletions) * 20 + 1
                                 : i / (deletions / half) * 20 + 1 + 2 * (i % (deletions / half));
        to = from + 1;
    }
    key_of(from, start);
    key_of(to, end);
    rocksdb_delete_range_cf(db, writes, family, start, rolling ? 0 : KEY_BYTES, end, KEY_BYTES, &error);
    check("delete range");
}

static void get(uint64_t n) {
    char key[KEY_BYTES];
    key_of(n, key);
    rocksdb_pinnableslice_t *value = rocksdb_get_pinned(db, reads, key, KEY_BYTES, &error);
    check("get");
    if (value) rocksdb_pinnableslice_destroy(value);
}

static void get_survivor(uint64_t i) { (void)i, get(survivor()); }
static void get_victim(uint64_t i) { (void)i, get(victim()); }
static void put_survivor(uint64_t i) { (void)i, put(survivor()); }
static void delete_and_get(uint64_t i) { delete_range(i), get(survivor()); }

static void seek(uint64_t i) {
    char key[KEY_BYTES];
    (void)i;
    key_of(survivor(), key);
    rocksdb_iterator_t *entries = rocksdb_create_iterator(db, reads);
    rocksdb_iter_seek(entries, key, KEY_BYTES);
    for (int n = 0; n < 10 && rocksdb_iter_valid(entries); n++) rocksdb_iter_next(entries);
    rocksdb_iter_destroy(entries);
}

static double longest;

/* Microseconds of processor time of a call, on average; the longest by the clock is kept. */
static double timed(uint64_t count, void (*call)(uint64_t)) {
    double begin = now_ns(), last = begin, processor = processor_ns();
    uint64_t done = 0;
    longest = 0;
    while (done < count && last - begin < LIMIT_NS) {
        call(done++);
        double now = now_ns();
        if (now - last > longest) longest = now - last;
        last = now;
    }
    return done ? (processor_ns() - processor) / done / 1e3 : 0;
}

/* Nanoseconds of processor time for each key of a whole scan. */
static double scan(int reverse, uint64_t *count) {
    double begin = processor_ns();
    rocksdb_iterator_t *entries = rocksdb_create_iterator(db, reads);
    reverse ? rocksdb_iter_seek_to_last(entries) : rocksdb_iter_seek_to_first(entries);
    for (*count = 0; rocksdb_iter_valid(entries); ++*count)
        reverse ? rocksdb_iter_prev(entries) : rocksdb_iter_next(entries);
    rocksdb_iter_destroy(entries);
    return (processor_ns() - begin) / (*count ? *count : 1);
}

static void measure(const char *shape, const char *place) {
    uint64_t count;
    printf("rocksdb\t%s\t%llu\t%s", shape, (unsigned long long)deletions, place);
    double put_us = timed(10000, put_survivor);
    printf("\t%.2f\t%.2f", put_us, longest / 1e6);
    printf("\t%.2f", timed(20000, get_survivor));
    printf("\t%.2f", timed(20000, get_victim));
    printf("\t%.2f", timed(2000, seek));
    printf("\t%.0f", scan(0, &count));
    printf("\t%.0f\t%llu", scan(1, &count), (unsigned long long)count);
    printf("\t%.2f\n", deletions ? timed(200, delete_and_get) : 0);
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "rocksdb DIR SHAPE DELETIONS [MAX]\n"), 2;
    rolling = !strcmp(argv[2], "rolling");
    deletions = strtoull(argv[3], NULL, 10);
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    int defaults = argc > 4 && !strcmp(argv[4], "defaults");
    if (!defaults) rocksdb_options_set_write_buffer_size(options, 1ull << 30);
    rocksdb_options_set_compression(options, 0);
    if (argc > 4 && !defaults)
        rocksdb_options_set_memtable_max_range_deletions(options, atoi(argv[4]));
    rocksdb_block_based_table_options_t *blocks = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(blocks, rocksdb_cache_create_lru(256 << 20));
    rocksdb_block_based_options_set_filter_policy(blocks,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, blocks);
    db = rocksdb_open(options, argv[1], &error);
    check("open");
    family = rocksdb_get_default_column_family_handle(db);
    reads = rocksdb_readoptions_create();
    writes = rocksdb_writeoptions_create();
    flushes = rocksdb_flushoptions_create();
    for (uint64_t i = 0; i < ENTRIES; i++) put(entry(i));
    rocksdb_flush(db, flushes, &error);
    check("flush");
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    double begin = processor_ns();
    longest = 0;
    for (uint64_t i = 0; i < deletions; i++) {
        double from = now_ns();
        delete_range(i);
        if (now_ns() - from > longest) longest = now_ns() - from;
    }
    double each = deletions ? (processor_ns() - begin) / deletions / 1e3 : 0;
    printf("rocksdb\t%s\t%llu\tdeletions\t%.2f\t%.2f\n", argv[2], (unsigned long long)deletions, each,
           longest / 1e6);
    measure(argv[2], "memory");
    begin = now_ns();
    rocksdb_flush(db, flushes, &error);
    check("flush");
    printf("rocksdb\t%s\t%llu\tflush\t%.0f\n", argv[2], (unsigned long long)deletions,
           (now_ns() - begin) / 1e6);
    measure(argv[2], "flushed");
    rocksdb_close(db);
    return 0;
}
