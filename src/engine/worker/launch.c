// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FD 3
#define ABOVE_FD 16 // so that none of ours is where one of theirs goes
#define NAME_IS(entry, name)                                                   \
    (strncmp((entry), (name), strlen(name)) == 0 &&                            \
     (entry)[strlen(name)] == '=')

// What the child needs between fork and exec, made before: only system calls
// are safe there.
typedef struct setup {
    char **argv;
    char **envp;
    char ring[64], python_path[4200];
    int fds[4];
    uint64_t memory_bytes;
    pid_t parent;
} setup;

static void setup_done(setup *made)
{
    for (size_t i = 0; i < TD_COUNT_OF(made->fds); i++)
        if (made->fds[i] >= 0) (void)close(made->fds[i]);
    free(made->envp);
}

// Our environment, without the variables that are set here.
static td_err make_environment(setup *made, const char *python_path)
{
    size_t count = 0;
    while (environ[count])
        count++;
    made->envp = calloc(count + 4, sizeof *made->envp);
    if (!made->envp) return TD_ERR_NOMEM;
    const char *before = getenv("PYTHONPATH");
    (void)snprintf(made->ring, sizeof made->ring, TD_WORKER_ENV "=%d,%d,%d",
                   FIRST_FD, FIRST_FD + 1, FIRST_FD + 2);
    (void)snprintf(made->python_path, sizeof made->python_path,
                   "PYTHONPATH=%s%s%s", python_path ? python_path : "",
                   python_path && before && *before ? ":" : "",
                   before ? before : "");
    size_t used = 0;
    made->envp[used++] = made->ring;
    made->envp[used++] = made->python_path;
    made->envp[used++] = (char *)(uintptr_t)"PYTHONUNBUFFERED=1";
    for (size_t i = 0; i < count; i++)
        if (!NAME_IS(environ[i], TD_WORKER_ENV) &&
            !NAME_IS(environ[i], "PYTHONPATH"))
            made->envp[used++] = environ[i];
    return TD_OK;
}

static td_err make_setup(const td_engine_worker_launch *launch, setup *made)
{
    const int from[] = {launch->fds[0], launch->fds[1], launch->fds[2],
                        launch->output_fd};
    made->argv = (char **)(uintptr_t)launch->command->argv;
    made->memory_bytes = launch->command->memory_bytes;
    made->parent = getpid();
    for (size_t i = 0; i < TD_COUNT_OF(from); i++) {
        made->fds[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ABOVE_FD);
        if (made->fds[i] < 0) return TD_ERR_IO;
    }
    return make_environment(made, launch->command->python_path);
}

static void become(const setup *made)
{
    sigset_t none;
    struct rlimit memory = {made->memory_bytes, made->memory_bytes};
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != made->parent) _exit(1);
    (void)dup2(made->fds[3], STDOUT_FILENO);
    (void)dup2(made->fds[3], STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        (void)dup2(made->fds[i], FIRST_FD + i);
    (void)syscall(SYS_close_range, FIRST_FD + 3, ~0U, 0U);
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    // Private memory that can be written. Not addresses: a GPU's driver
    // reserves far more of them than there is memory.
    if (made->memory_bytes) (void)setrlimit(RLIMIT_DATA, &memory);
    (void)execvpe(made->argv[0], made->argv, made->envp);
    static const char sorry[] = "this command cannot be run\n";
    (void)!write(STDERR_FILENO, sorry, sizeof sorry - 1);
    _exit(127);
}

td_err td_engine_worker_launch_run(const td_engine_worker_launch *launch,
                                   pid_t *ret_pid, td_errinfo *info)
{
    setup made = {.fds = {-1, -1, -1, -1}};
    td_err err = make_setup(launch, &made);
    pid_t pid = -1;
    if (err == TD_OK) {
        pid = fork();
        if (pid == 0) become(&made);
        if (pid < 0) err = TD_ERR_IO;
    }
    if (err != TD_OK)
        (void)td_fail(info, err, "cannot start %s: %s",
                      launch->command->argv[0], strerror(errno));
    setup_done(&made);
    if (err == TD_OK) *ret_pid = pid;
    return err;
}

bool td_engine_worker_launch_python_path(char *ret_path, size_t size)
{
    static const char *const places[] = {"../../python",
                                         "../share/tendon/python"};
    char folder[3072];
    char probe[4200];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    for (size_t i = 0; i < TD_COUNT_OF(places); i++) {
        (void)snprintf(probe, sizeof probe, "%s/%s/tendon/worker/__init__.py",
                       folder, places[i]);
        if (access(probe, R_OK) != 0) continue;
        (void)snprintf(ret_path, size, "%s/%s", folder, places[i]);
        return true;
    }
    return false;
}
