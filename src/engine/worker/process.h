// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_PROCESS_H
#define TD_ENGINE_WORKER_PROCESS_H

// A worker's process and the memory that it shares with us. One thread, but for
// what says otherwise; that thread must outlive the process, which dies with
// it.
//
// Memory and eventfds are new for each start, so that nothing left over from an
// earlier one can write into them.

#include "base/err.h"
#include "engine/worker/ring/ring.h"

#include <stdbool.h>
#include <sys/types.h>

#define TD_ENGINE_WORKER_LINE_BYTES 512
#define TD_ENGINE_WORKER_NO_PROCESS                                            \
    (td_engine_worker_process){.pid_fd = -1,                                   \
                               .ring_fd = -1,                                  \
                               .bell_fd = -1,                                  \
                               .answer_fd = -1,                                \
                               .output_fd = -1}

typedef struct td_engine_worker_process {
    pid_t pid; // 0: none; also the number of its group
    int pid_fd, ring_fd, bell_fd, answer_fd, output_fd;
    td_worker_offer *offer;
    const td_worker_hello *hello;
    uint8_t *requests;      // NULL until the ring is made
    const uint8_t *results; // likewise
    td_engine_worker_layout layout;
    char line[TD_ENGINE_WORKER_LINE_BYTES]; // of its output, not yet whole
    size_t line_size;
    char last_line[TD_ENGINE_WORKER_LINE_BYTES];
} td_engine_worker_process;

typedef struct td_engine_worker_command {
    const char *name;        // for the log
    const char *const *argv; // ends with NULL
    const char *python_path; // goes before PYTHONPATH; NULL: nothing
    uint64_t memory_bytes;   // most private memory; 0: no limit
} td_engine_worker_command;

// Makes the memory with `offer` in it and starts the process. IO, NOMEM.
TD_NODISCARD td_err td_engine_worker_process_start(
    const td_engine_worker_command *command, const td_worker_offer *offer,
    td_engine_worker_process *ret_process, td_errinfo *info);

// Makes room for the batches of the agreed spec, and says so. NOMEM, IO.
TD_NODISCARD td_err td_engine_worker_process_make_ring(
    td_engine_worker_process *process, const td_worker_spec *spec,
    const td_engine_worker_layout *layout, td_errinfo *info);

// Wakes the process, which finds the phase or a batch. Any thread.
void td_engine_worker_process_ring(const td_engine_worker_process *process);
void td_engine_worker_process_ask_to_end(
    const td_engine_worker_process *process);

// SIGKILL for the process and all that it started.
void td_engine_worker_process_kill(const td_engine_worker_process *process);

// Takes what it printed to the log, a line at a time. Never blocks.
void td_engine_worker_process_read_output(td_engine_worker_process *process,
                                          const char *name);

// Waits for its end, which has come or is about to, and says in words how it
// ended. The memory stays. Blocks.
void td_engine_worker_process_reap(td_engine_worker_process *process,
                                   const char *name, char *ret_how,
                                   size_t how_bytes);

// Lets everything go; after reap, or where nothing was started.
void td_engine_worker_process_release(td_engine_worker_process *process);

#endif
