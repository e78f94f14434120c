/* Counts the instructions of each thread of a program that runs in QEMU, as a plugin for its user mode:
 *
 *     cc -shared -fPIC -O2 instructions.c -o instructions.so
 *     qemu-x86_64 -plugin ./instructions.so -d plugin -D COUNTS PROGRAM
 *
 * COUNTS gets the instructions of a thread whenever it asks for the space of a file system, which a
 * program does before and after what it wants counted. Java's machine runs in QEMU, but not in valgrind.
 * What is used of qemu-plugin.h, version 1 of the interface, is declared here, because distributions do
 * not package it. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

enum { THREADS_MAX = 1024, SYSCALL_STATFS = 137 };

typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*callback)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                          void (*callback)(unsigned int, void *),
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_syscall_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, unsigned int, int64_t, uint64_t, uint64_t,
                                          uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_outs(const char *text);

EXPORT int qemu_plugin_version = 1;

static uint64_t counts[THREADS_MAX];

static void executed(unsigned int thread, void *instructions) {
  if (thread < THREADS_MAX) counts[thread] += (uintptr_t)instructions;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_cb(block, executed, QEMU_PLUGIN_CB_NO_REGS,
                                       (void *)qemu_plugin_tb_n_insns(block));
}

static void called(qemu_plugin_id_t id, unsigned int thread, int64_t number, uint64_t a, uint64_t b,
                   uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  char line[64];
  (void)id, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
  if (number != SYSCALL_STATFS || thread >= THREADS_MAX) return;
  snprintf(line, sizeof line, "%u %llu\n", thread, (unsigned long long)counts[thread]);
  qemu_plugin_outs(line);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count, char **options) {
  (void)info, (void)count, (void)options;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  return 0;
}
