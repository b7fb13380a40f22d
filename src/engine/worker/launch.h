// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_LAUNCH_H
#define TD_ENGINE_WORKER_LAUNCH_H

// From a command to a running process: its arguments, environment, limits and
// the file descriptors that it inherits, which are these and no others.

#include "engine/worker/process.h"

typedef struct td_engine_worker_launch {
    const td_engine_worker_command *command;
    int fds[3];    // as TD_WORKER_ENV names them; from 3 on over there
    int output_fd; // its standard output and error
} td_engine_worker_launch;

// Starts it as the leader of a group of its own: Ctrl-C in a terminal is for
// us. It dies with the calling thread. IO, NOMEM.
TD_NODISCARD td_err td_engine_worker_launch_run(
    const td_engine_worker_launch *launch, pid_t *ret_pid, td_errinfo *info);

// Where the Python package `tendon` is: in the tree that this program was built
// in, or beside where it was installed. False: neither; then it must be known
// to Python.
bool td_engine_worker_launch_python_path(char *ret_path, size_t size);

#endif
