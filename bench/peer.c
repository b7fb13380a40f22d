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

// Beside the build of this program.
static const struct {
    const char *scripts; // that begin with this
    const char *python;
    const char *made_by;
} environments[] = {
    {"lerobot_", "../venv-lerobot/bin/python", "tools/setup --lerobot"},
    {"", "../venv-bench/bin/python", "tools/setup --bench"},
};

static size_t environment_of(const char *script)
{
    size_t i = 0;
    while (strncmp(script, environments[i].scripts,
                   strlen(environments[i].scripts)) != 0)
        i++;
    return i;
}

bool td_bench_find(const char *relative, const char *name,
                   char ret_path[TD_BENCH_LINE_BYTES])
{
    char here[TD_BENCH_LINE_BYTES / 2];
    ret_path[0] = 0;
    ssize_t size = readlink("/proc/self/exe", here, sizeof here - 1);
    if (size <= 0 || size == sizeof here - 1) return false;
    here[size] = 0;
    char *slash = strrchr(here, '/');
    if (slash) *slash = 0;
    (void)snprintf(ret_path, TD_BENCH_LINE_BYTES, "%s/%s%s%s", here, relative,
                   *name ? "/" : "", name);
    return access(ret_path, R_OK) == 0;
}

bool td_bench_peer_there(const td_bench_options *options)
{
    return td_bench_peer_can(options, "Inferential", "");
}

bool td_bench_peer_can(const td_bench_options *options, const char *name,
                       const char *script)
{
    char path[TD_BENCH_LINE_BYTES];
    size_t i = environment_of(script);
    bool can = td_bench_find(environments[i].python, "", path) &&
               td_bench_find(SCRIPTS, script, path);
    if (!can)
        td_bench_say(options, "%s is not installed (%s): figures without it",
                     name, environments[i].made_by);
    return can;
}

static td_err start(const char *const *args, td_bench_peer *peer,
                    td_errinfo *info)
{
    char python[TD_BENCH_LINE_BYTES];
    char script[TD_BENCH_LINE_BYTES];
    const char *all[MAX_ARGS + 1] = {script};
    size_t i = environment_of(args[0]);
    if (!td_bench_find(environments[i].python, "", python) ||
        !td_bench_find(SCRIPTS, args[0], script))
        return td_fail(info, TD_ERR_NOTFOUND, "%s cannot run here: %s", args[0],
                       environments[i].made_by);
    for (i = 1; i < MAX_ARGS && args[i]; i++)
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
