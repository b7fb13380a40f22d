// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include "base/clock.h"
#include "bench/bench.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS (3 * TD_NS_PER_S)
#define LOOK_NS (20 * TD_NS_PER_MS)

static char folder[TD_CLI_FOLDER_MAX]; // empty: none
static int files;

td_err td_bench_file(const char *ending, char ret_path[TD_BENCH_PATH_BYTES],
                     td_errinfo *info)
{
    if (!folder[0]) TD_TRY(td_cli_folder_make(folder, info));
    (void)snprintf(ret_path, TD_BENCH_PATH_BYTES, "%s/%d.%s", folder, ++files,
                   ending);
    return TD_OK;
}

void td_bench_folder_remove(void)
{
    if (folder[0]) td_cli_folder_remove(folder);
    folder[0] = 0;
}

void td_bench_folder_clear(const char *path)
{
    DIR *listed = opendir(path);
    int fd = listed ? dirfd(listed) : -1;
    if (fd < 0) return;
    for (const struct dirent *at; (at = readdir(listed));)
        if (at->d_name[0] != '.') (void)unlinkat(fd, at->d_name, 0);
    (void)closedir(listed);
    (void)rmdir(path);
}

td_err td_bench_child_start(const char *const *args, td_bench_child *ret_child,
                            td_errinfo *info)
{
    td_bench_child child;
    TD_TRY(td_bench_file("log", child.log, info));
    TD_TRY(td_cli_child_start(args, child.log, &child.pid, info));
    *ret_child = child;
    return TD_OK;
}

td_err td_bench_tendon(char ret_path[TD_BENCH_LINE_BYTES], td_errinfo *info)
{
    char path[TD_BENCH_LINE_BYTES];
    if (!td_bench_find(".", "tendon", path))
        return td_fail(info, TD_ERR_NOTFOUND,
                       "%s: it is not there, and this measures it; `make all` "
                       "builds both",
                       path);
    memcpy(ret_path, path, sizeof path);
    return TD_OK;
}

td_err td_bench_tendon_start(const char *const *args, td_bench_child *ret_child,
                             td_errinfo *info)
{
    td_bench_child child;
    char program[TD_BENCH_LINE_BYTES];
    TD_TRY(td_bench_tendon(program, info));
    TD_TRY(td_bench_file("log", child.log, info));
    TD_TRY(
        td_cli_child_start_other(program, args, child.log, &child.pid, info));
    *ret_child = child;
    return TD_OK;
}

// Whether the child has written that line whole, without its end.
static bool read_line(const td_bench_child *child, size_t index,
                      char ret_line[TD_BENCH_LINE_BYTES])
{
    FILE *file = fopen(child->log, "re");
    char *line = ret_line;
    line[0] = 0;
    if (!file) return false;
    for (size_t i = 0; line && i <= index; i++)
        line = fgets(ret_line, TD_BENCH_LINE_BYTES, file);
    (void)fclose(file);
    char *end = strchr(ret_line, '\n');
    if (end) *end = 0;
    return line && end;
}

td_err td_bench_child_line(const td_bench_child *child, size_t index,
                           char ret_line[TD_BENCH_LINE_BYTES], td_errinfo *info)
{
    while (!td_cli_child_ended(child->pid)) {
        if (read_line(child, index, ret_line)) return TD_OK;
        TD_TRY(td_bench_sleep(LOOK_NS));
    }
    (void)read_line(child, index, ret_line);
    return td_fail(info, TD_ERR_IO, "the other process ended: %s", ret_line);
}

td_err td_bench_child_ready(const td_bench_child *child, td_errinfo *info)
{
    char line[TD_BENCH_LINE_BYTES];
    TD_TRY(td_bench_child_line(child, 0, line, info));
    if (strcmp(line, TD_BENCH_READY) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s", line);
}

void td_bench_child_end(td_bench_child *child)
{
    if (child->pid > 0) (void)td_cli_child_stop(child->pid, PATIENCE_NS);
    child->pid = 0;
}

void td_bench_child_kill(td_bench_child *child)
{
    if (child->pid > 0) (void)kill(child->pid, SIGKILL);
    td_bench_child_end(child);
}
