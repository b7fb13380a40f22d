// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include "base/sync/event.h"
#include "config/yaml/table.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What a signal does.
static struct {
    void (*call)(void *user);
    void *user;
    _Atomic bool ready;     // to be called
    _Atomic bool cleans_up; // a second one does not end the process
    _Atomic int signals;
} on_stop;

// Zenoh's sockets are read by the threads that call us back. By default others
// read them and hand over, which every message pays for.
static const char zenoh_threads[] = "(acc:(handover:rx),net:(handover:rx))";

void td_cli_tune_zenoh(void)
{
    (void)setenv("ZENOH_RUNTIME", zenoh_threads, 0);
}

static const td_cli_option *find_option(const td_cli_option *options,
                                        const char *name, size_t size)
{
    for (; options->name; options++)
        if (strlen(options->name) == size &&
            memcmp(options->name, name, size) == 0)
            return options;
    return NULL;
}

static bool usage(const char *command, const char *what, const char *argument)
{
    (void)fprintf(stderr, "tendon %s: %s \"%s\"; try `tendon %s --help`\n",
                  command, what, argument, command);
    return false;
}

// Reads argv[*at], and the value after it where one belongs there.
static bool read_option(int argc, char **argv, int *at,
                        const td_cli_option *options)
{
    const char *argument = argv[*at];
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    size_t size = equals ? (size_t)(equals - name) : strlen(name);
    const td_cli_option *option = find_option(options, name, size);
    if (!option) return usage(argv[0], "unknown option", argument);
    if (option->flag) {
        *option->flag = true;
        return equals ? usage(argv[0], "takes no value:", argument) : true;
    }
    if (equals) {
        *option->value = equals + 1;
        return true;
    }
    if (*at + 1 >= argc) return usage(argv[0], "needs a value:", argument);
    *option->value = argv[++*at];
    return true;
}

bool td_cli_parse(int argc, char **argv, const td_cli_option *options,
                  const char **operand)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            if (!read_option(argc, argv, &i, options)) return false;
        } else if (operand && !*operand) {
            *operand = argv[i];
        } else {
            return usage(argv[0], "unexpected argument", argv[i]);
        }
    }
    return true;
}

bool td_cli_wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

bool td_cli_parse_file(int argc, char **argv, const char *help,
                       const td_config_table *fields, const td_cli_option *more,
                       td_cli_file *ret_file, int *ret_code)
{
    td_cli_file file = {0};
    bool page = false;
    td_cli_option options[3 + TD_CLI_MORE + 1] = {
        {"check", NULL, &file.check},
        {"fields", NULL, &page},
        {"log", &file.level, NULL},
    };
    for (size_t i = 0; more && more[i].name; i++)
        options[3 + i] = more[i];
    if (td_cli_wants_help(argc, argv)) {
        (void)printf("%s\nThe file's fields:\n", help);
        td_config_table_help(fields, stdout);
        *ret_code = 0;
        return false;
    }
    *ret_code = 2;
    if (!td_cli_parse(argc, argv, options, &file.path)) return false;
    if (page) {
        td_config_page_write(fields, stdout);
        *ret_code = 0;
        return false;
    }
    if (!file.path) {
        (void)fprintf(stderr, "tendon %s: which file?\n\n%s", argv[0], help);
        return false;
    }
    *ret_file = file;
    return true;
}

bool td_cli_parse_folder(int argc, char **argv, const char *help,
                         td_cli_folder *ret_folder, int *ret_code)
{
    td_cli_folder folder = {0};
    const td_cli_option options[] = {{"json", NULL, &folder.json}, {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)printf("%s", help);
        *ret_code = 0;
        return false;
    }
    *ret_code = 2;
    if (!td_cli_parse(argc, argv, options, &folder.path)) return false;
    if (!folder.path) {
        (void)fprintf(stderr, "tendon %s: which folder?\n\n%s", argv[0], help);
        return false;
    }
    *ret_folder = folder;
    return true;
}

int td_cli_fail(const char *command, td_err err, const td_errinfo *info)
{
    td_errinfo shown = {.text = ""};
    if (info) shown = *info;
    td_log_blank(shown.text, strlen(shown.text));
    td_log_stop();
    (void)fprintf(stderr, "tendon %s: %s\n", command,
                  shown.text[0] ? shown.text : td_err_text(err));
    return 1;
}

bool td_cli_start_log(const char *command, const char *level)
{
    td_log_level parsed = TD_LOG_INFO;
    if (level && td_log_level_parse(level, &parsed) != TD_OK)
        return usage(command, "--log is debug, info, warn or error, not",
                     level);
    td_err err = td_log_start(STDERR_FILENO, parsed);
    if (err == TD_OK) return true;
    (void)td_cli_fail(command, err, NULL);
    return false;
}

static void handle_stop(int number)
{
    if (atomic_fetch_add(&on_stop.signals, 1) > 0 &&
        !atomic_load(&on_stop.cleans_up))
        _exit(128 + number);
    if (atomic_load(&on_stop.ready)) on_stop.call(on_stop.user);
}

void td_cli_keep_stop(void)
{
    struct sigaction action = {.sa_handler = handle_stop,
                               .sa_flags = SA_RESTART};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void td_cli_on_stop(void (*stop)(void *user), void *user)
{
    atomic_store(&on_stop.ready, false);
    on_stop.call = stop;
    on_stop.user = user;
    atomic_store(&on_stop.ready, true);
    td_cli_keep_stop();
    if (atomic_load(&on_stop.signals) > 0) stop(user);
}

static td_event signalled; // static: a late signal may still reach it
static _Atomic bool wants_reload;

static void wake_up(void *user)
{
    (void)user;
    td_event_signal(&signalled);
}

static void handle_reload(int number)
{
    (void)number;
    atomic_store(&wants_reload, true);
    td_event_signal(&signalled);
}

void td_cli_keep_reload(void)
{
    struct sigaction action = {.sa_handler = handle_reload,
                               .sa_flags = SA_RESTART};
    (void)sigaction(SIGHUP, &action, NULL);
}

bool td_cli_is_stopping(void)
{
    return atomic_load(&on_stop.signals) > 0;
}

void td_cli_clean_up_on_stop(void)
{
    atomic_store(&on_stop.cleans_up, true);
}

bool td_cli_must_hurry(void)
{
    return atomic_load(&on_stop.signals) > 1;
}

td_cli_signal td_cli_wait_signal(void)
{
    td_cli_on_stop(wake_up, NULL);
    for (;;) {
        if (td_cli_is_stopping()) return TD_CLI_STOP;
        if (atomic_exchange(&wants_reload, false)) return TD_CLI_RELOAD;
        (void)td_event_wait_until(&signalled, INT64_MAX);
    }
}
