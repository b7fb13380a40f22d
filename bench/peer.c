// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "bench/bench.h"
#include "cli/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGS 14
#define SCRIPTS "../../bench/peers" // of the sources around this build
#define PYTHON "bin/python"         // of an environment

// Beside the build of this program.
typedef struct environment {
    const char *scripts; // that begin with this
    const char *folder;
    const char *list; // of what is in the folder, which has a copy of it
    const char *made_by;
} environment;

static const environment environments[] = {
    {"lerobot_", "../venv-lerobot", "../../tests/lerobot/requirements.lock",
     "tools/setup --lerobot"},
    {"", "../venv-bench", SCRIPTS "/requirements.txt", "tools/setup --bench"},
};

static const environment *environment_of(const char *script)
{
    const environment *found = environments;
    while (strncmp(script, found->scripts, strlen(found->scripts)) != 0)
        found++;
    return found;
}

bool td_bench_find(const char *relative, const char *name,
                   char ret_path[TD_BENCH_LINE_BYTES])
{
    char here[TD_BENCH_LINE_BYTES];
    ret_path[0] = 0;
    ssize_t size = readlink("/proc/self/exe", here, sizeof here - 1);
    if (size <= 0 || size == sizeof here - 1) return false;
    here[size] = 0;
    char *slash = strrchr(here, '/');
    if (slash) *slash = 0;
    int length = snprintf(ret_path, TD_BENCH_LINE_BYTES, "%s/%s%s%s", here,
                          relative, *name ? "/" : "", name);
    return length < TD_BENCH_LINE_BYTES && access(ret_path, R_OK) == 0;
}

static bool have_same_bytes(const char *path, const char *other_path)
{
    FILE *file = fopen(path, "re"), *other = fopen(other_path, "re");
    int byte = EOF;
    bool same = file && other;
    do
        same = same && (byte = fgetc(file)) == fgetc(other);
    while (same && byte != EOF);
    if (file) (void)fclose(file);
    if (other) (void)fclose(other);
    return same;
}

static bool is_current(const environment *made)
{
    char list[TD_BENCH_LINE_BYTES];
    char copy[TD_BENCH_LINE_BYTES];
    return td_bench_find(made->list, "", list) &&
           td_bench_find(made->folder, strrchr(made->list, '/') + 1, copy) &&
           have_same_bytes(list, copy);
}

// Why the script cannot run; NULL: it can.
static const char *obstacle_of(const environment *made, const char *script)
{
    char path[TD_BENCH_LINE_BYTES];
    if (!td_bench_find(made->folder, PYTHON, path) ||
        !td_bench_find(SCRIPTS, script, path))
        return "is not installed";
    return is_current(made) ? NULL : "is installed from an older list";
}

bool td_bench_peer_there(const td_bench_options *options)
{
    return td_bench_peer_can(options, "Inferential", "");
}

bool td_bench_peer_can(const td_bench_options *options, const char *name,
                       const char *script)
{
    const environment *made = environment_of(script);
    const char *obstacle = obstacle_of(made, script);
    if (obstacle)
        td_bench_say(options, "%s %s (%s): figures without it", name, obstacle,
                     made->made_by);
    return !obstacle;
}

static td_err start(const char *const *args, td_bench_peer *peer,
                    td_errinfo *info)
{
    char python[TD_BENCH_LINE_BYTES];
    char script[TD_BENCH_LINE_BYTES];
    const char *all[MAX_ARGS + 1] = {script};
    const environment *made = environment_of(args[0]);
    const char *obstacle = obstacle_of(made, args[0]);
    if (obstacle)
        return td_fail(info, TD_ERR_NOTFOUND, "what %s needs %s: %s", args[0],
                       obstacle, made->made_by);
    (void)td_bench_find(made->folder, PYTHON, python);
    (void)td_bench_find(SCRIPTS, args[0], script);
    for (size_t i = 1; i < MAX_ARGS && args[i]; i++)
        all[i] = args[i];
    TD_TRY(td_bench_file("log", peer->child.log, info));
    return td_cli_child_start_other(python, all, peer->child.log,
                                    &peer->child.pid, info);
}

td_err td_bench_peer_start(const char *const *args, td_bench_peer *ret_peer,
                           td_errinfo *info)
{
    td_bench_peer peer = {0};
    td_err err = start(args, &peer, info);
    if (err == TD_OK) err = td_bench_child_ready(&peer.child, info);
    if (err != TD_OK) {
        td_bench_child_end(&peer.child);
        return err;
    }
    *ret_peer = peer;
    return TD_OK;
}

td_err td_bench_peer_block(td_bench_peer *peer, double *ret_values,
                           size_t count, td_errinfo *info)
{
    char line[TD_BENCH_LINE_BYTES];
    (void)kill(peer->child.pid, SIGUSR1);
    TD_TRY(td_bench_child_line(&peer->child, ++peer->blocks, line, info));
    char *at = line;
    for (size_t i = 0; i < count; i++) {
        char *end;
        ret_values[i] = strtod(at, &end);
        if (end == at) return td_fail(info, TD_ERR_IO, "the peer: %s", line);
        at = end;
    }
    return TD_OK;
}
