// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_CHILD_H
#define TD_CLI_CHILD_H

// This program, or another, as a child process, and a folder for what children
// need. A child dies with its parent, however that ends.

#include "base/err.h"

#include <sys/types.h>

// Starts `tendon ARGS...` (argv ends with NULL and begins with the command)
// with its output in the file `log_path`, or nowhere when NULL. IO.
TD_NODISCARD td_err td_cli_child_start(const char *const *argv,
                                       const char *log_path, pid_t *ret_pid,
                                       td_errinfo *info);

// The same with another program than this one. IO.
TD_NODISCARD td_err td_cli_child_start_other(const char *program,
                                             const char *const *argv,
                                             const char *log_path,
                                             pid_t *ret_pid, td_errinfo *info);

// Asks it to stop (SIGINT), and kills it after `patience_ns`. Blocks. Returns
// its exit code, or 128 + the signal that ended it.
int td_cli_child_stop(pid_t pid, int64_t patience_ns);

// From now on td_cli_child_stop() kills without patience. Signal-safe.
void td_cli_child_hurry(void);

// Whether it has ended by itself; then it must still be stopped.
int td_cli_child_ended(pid_t pid);

#define TD_CLI_FOLDER_MAX 64

// Makes a new folder under $TMPDIR or /tmp.
TD_NODISCARD td_err td_cli_folder_make(char ret_path[TD_CLI_FOLDER_MAX],
                                       td_errinfo *info);

// Removes it with the files in it; it has no folders in it.
void td_cli_folder_remove(const char *path);

#endif
