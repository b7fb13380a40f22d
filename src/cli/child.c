// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ARGS 16
#define LOOK_NS (10 * TD_NS_PER_MS)

// Between fork and exec: only what is safe there. A terminal's Ctrl-C reaches
// the whole group, so the child leaves it, and its parent stops it.
static void become(const char *program, const char *name,
                   const char *const *argv, int log_fd, pid_t parent)
{
    char *args[MAX_ARGS + 2];
    args[0] = (char *)(uintptr_t)name;
    int count = 1;
    for (; argv[count - 1] && count < MAX_ARGS; count++)
        args[count] = (char *)(uintptr_t)argv[count - 1];
    args[count] = NULL;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    (void)dup2(log_fd, STDOUT_FILENO);
    (void)dup2(log_fd, STDERR_FILENO);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)execv(program, args);
    _exit(127);
}

static td_err start(const char *program, const char *name,
                    const char *const *argv, const char *log_path,
                    pid_t *ret_pid, td_errinfo *info)
{
    const char *path = log_path ? log_path : "/dev/null";
    int log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log_fd < 0)
        return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) become(program, name, argv, log_fd, parent);
    int why = errno;
    (void)close(log_fd);
    if (pid < 0)
        return td_fail(info, TD_ERR_IO, "cannot start %s %s: %s", name, argv[0],
                       strerror(why));
    *ret_pid = pid;
    return TD_OK;
}

td_err td_cli_child_start(const char *const *argv, const char *log_path,
                          pid_t *ret_pid, td_errinfo *info)
{
    return start("/proc/self/exe", "tendon", argv, log_path, ret_pid, info);
}

td_err td_cli_child_start_other(const char *program, const char *const *argv,
                                const char *log_path, pid_t *ret_pid,
                                td_errinfo *info)
{
    return start(program, program, argv, log_path, ret_pid, info);
}

int td_cli_child_ended(pid_t pid)
{
    siginfo_t found = {0};
    return waitid(P_PID, (id_t)pid, &found, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           found.si_pid == pid;
}

static _Atomic bool must_hurry;

void td_cli_child_hurry(void)
{
    atomic_store(&must_hurry, true);
}

int td_cli_child_stop(pid_t pid, int64_t patience_ns)
{
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t until_ns = now_ns + patience_ns;
    (void)kill(pid, SIGINT);
    while (!td_cli_child_ended(pid) && now_ns < until_ns &&
           !atomic_load(&must_hurry)) {
        td_clock_sleep_until(now_ns + LOOK_NS);
        now_ns = td_clock_monotonic_ns();
    }
    if (!td_cli_child_ended(pid)) (void)kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

td_err td_cli_folder_make(char ret_path[TD_CLI_FOLDER_MAX], td_errinfo *info)
{
    const char *base = getenv("TMPDIR");
    char path[TD_CLI_FOLDER_MAX];
    if (!base || strlen(base) > TD_CLI_FOLDER_MAX - 20) base = "/tmp";
    (void)snprintf(path, sizeof path, "%s/tendon-XXXXXX", base);
    if (!mkdtemp(path))
        return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    memcpy(ret_path, path, sizeof path);
    return TD_OK;
}

static int remove_one(const char *path, const struct stat *unused, int flag,
                      struct FTW *place)
{
    (void)unused, (void)flag, (void)place;
    (void)remove(path);
    return 0;
}

void td_cli_folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
