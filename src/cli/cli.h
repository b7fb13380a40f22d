// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_CLI_H
#define TD_CLI_CLI_H

// One file a command, one table of commands (main.c). A command returns its
// exit code: 0 fine, 1 failed, 2 wrong usage, 3 what it is to run runs already.
//
// To add a command: write src/cli/NAME.c with td_cli_NAME(), declare it here
// and add a row to the table.

#include "base/err.h"
#include "base/log.h"
#include "config/yaml/table.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct td_cli_command {
    const char *name;
    const char *summary;
    int (*run)(int argc,
               char **argv); // argv[0]: as it is typed, "dataset info"
} td_cli_command;

int td_cli_serve(int argc, char **argv);
int td_cli_robot(int argc, char **argv);
int td_cli_router(int argc, char **argv);
int td_cli_checkpoint(int argc, char **argv);
int td_cli_profile(int argc, char **argv);
int td_cli_doctor(int argc, char **argv);
int td_cli_demo(int argc, char **argv);
int td_cli_bench(int argc, char **argv);
int td_cli_plan(int argc, char **argv);
int td_cli_dataset(int argc, char **argv);
int td_cli_native_worker(int argc, char **argv);

// For a program of ours before anything else: how Zenoh's threads share the
// work, unless the user's environment says.
void td_cli_tune_zenoh(void);

// An option of a command. `--name VALUE`, `--name=VALUE`, or `--name` alone
// when `flag` is where its being there is noted.
typedef struct td_cli_option {
    const char *name;
    const char **value; // set to the argument, or
    bool *flag;         // set to true
} td_cli_option;

// Reads the options, which end with a row without a name, and one operand when
// `operand` is not NULL. False after printing what is wrong: return 2.
bool td_cli_parse(int argc, char **argv, const td_cli_option *options,
                  const char **operand);

// The arguments of a command that takes a file: FILE [--check] [--fields]
// [--log LEVEL].
typedef struct td_cli_file {
    const char *path;
    const char *level; // NULL: not given
    bool check;        // only look at the file
} td_cli_file;

// Reads them and options of the command's own, at most TD_CLI_MORE (NULL: none;
// else they end with a row without a name), or prints `help` and the file's
// fields, or a page of the fields alone. True to go on; otherwise the exit code
// is in `ret_code`.
#define TD_CLI_MORE 4
bool td_cli_parse_file(int argc, char **argv, const char *help,
                       const td_config_table *fields, const td_cli_option *more,
                       td_cli_file *ret_file, int *ret_code);

// The arguments of a command that looks at a folder: DIR [--json].
typedef struct td_cli_folder {
    const char *path;
    bool json;
} td_cli_folder;

// Reads them, or prints `help`. True to go on; otherwise the exit code is in
// `ret_code`.
bool td_cli_parse_folder(int argc, char **argv, const char *help,
                         td_cli_folder *ret_folder, int *ret_code);

// Whether any argument is --help or -h.
bool td_cli_wants_help(int argc, char **argv);

// Prints "tendon COMMAND: what went wrong" and returns 1.
int td_cli_fail(const char *command, td_err err, const td_errinfo *info);

// Starts the log at the named level ("info" when NULL). False after a
// complaint.
bool td_cli_start_log(const char *command, const char *level);

// From now on Ctrl-C and SIGTERM are kept for td_cli_on_stop(), so that what is
// being opened is closed again. A second one ends the process at once.
void td_cli_keep_stop(void);

// From now on they call stop(user), from a signal handler; now, if one was
// kept. It may be called more than once.
void td_cli_on_stop(void (*stop)(void *user), void *user);

// From now on SIGHUP is kept for td_cli_wait_signal().
void td_cli_keep_reload(void);

typedef enum td_cli_signal {
    TD_CLI_STOP,   // Ctrl-C or SIGTERM; reported each time
    TD_CLI_RELOAD, // SIGHUP; however many came, reported once
} td_cli_signal;

// Waits for a signal. Blocks.
td_cli_signal td_cli_wait_signal(void);

// Whether Ctrl-C or SIGTERM came. Never blocks.
bool td_cli_is_stopping(void);

// From now on a second signal only hurries the process, which has something to
// remove before it ends.
void td_cli_clean_up_on_stop(void);

// Whether a second one came. Never blocks.
bool td_cli_must_hurry(void);

#endif
