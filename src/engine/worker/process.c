// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/process.h"

#include "base/log.h"
#include "engine/worker/launch.h"
#include "engine/worker/ring/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_READS 64 // of output at a time, so that no flood holds us up

static void close_fd(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

void td_engine_worker_process_release(td_engine_worker_process *process)
{
    if (process->offer) (void)munmap(process->offer, 2 * TD_WORKER_PAGE);
    if (process->requests)
        (void)munmap(process->requests,
                     process->layout.file_bytes - process->layout.requests);
    close_fd(&process->pid_fd);
    close_fd(&process->ring_fd);
    close_fd(&process->bell_fd);
    close_fd(&process->answer_fd);
    close_fd(&process->output_fd);
    *process = TD_ENGINE_WORKER_NO_PROCESS;
}

static td_err fail_errno(td_errinfo *info, const char *what)
{
    return td_fail(info, TD_ERR_IO, "%s: %s", what, strerror(errno));
}

// Sealed against shrinking: reading a file that another made shorter would end
// us.
static td_err make_memory(td_engine_worker_process *process,
                          const td_worker_offer *offer, td_errinfo *info)
{
    process->ring_fd =
        memfd_create("tendon-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (process->ring_fd < 0) return fail_errno(info, "memfd_create");
    if (ftruncate(process->ring_fd, 2 * TD_WORKER_PAGE) != 0 ||
        fcntl(process->ring_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        return fail_errno(info, "shared memory");
    void *memory = mmap(NULL, 2 * TD_WORKER_PAGE, PROT_READ | PROT_WRITE,
                        MAP_SHARED, process->ring_fd, 0);
    if (memory == MAP_FAILED) return fail_errno(info, "mmap");
    process->offer = memory;
    process->hello = (const void *)((const char *)memory + TD_WORKER_PAGE);
    *process->offer = *offer;
    process->bell_fd = eventfd(0, EFD_CLOEXEC);
    process->answer_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (process->bell_fd < 0 || process->answer_fd < 0)
        return fail_errno(info, "eventfd");
    return TD_OK;
}

static td_err launch(const td_engine_worker_command *command,
                     td_engine_worker_process *process, td_errinfo *info)
{
    int output[2];
    if (pipe2(output, O_CLOEXEC) != 0) return fail_errno(info, "pipe");
    process->output_fd = output[0];
    (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
    td_engine_worker_launch with = {
        .command = command,
        .fds = {process->ring_fd, process->bell_fd, process->answer_fd},
        .output_fd = output[1],
    };
    td_err err = td_engine_worker_launch_run(&with, &process->pid, info);
    (void)close(output[1]);
    TD_TRY(err);
    process->pid_fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pid_fd >= 0) return TD_OK;
    err = fail_errno(info, "pidfd_open");
    td_engine_worker_process_kill(process);
    (void)waitpid(process->pid, NULL, 0);
    return err;
}

td_err td_engine_worker_process_start(const td_engine_worker_command *command,
                                      const td_worker_offer *offer,
                                      td_engine_worker_process *ret_process,
                                      td_errinfo *info)
{
    td_engine_worker_process process = TD_ENGINE_WORKER_NO_PROCESS;
    td_err err = make_memory(&process, offer, info);
    if (err == TD_OK) err = launch(command, &process, info);
    if (err != TD_OK) {
        td_engine_worker_process_release(&process);
        return err;
    }
    *ret_process = process;
    return TD_OK;
}

static void set_phase(td_worker_offer *offer, td_worker_offer_phase phase)
{
    __atomic_store_n(&offer->phase, (uint32_t)phase, __ATOMIC_RELEASE);
}

td_err td_engine_worker_process_make_ring(td_engine_worker_process *process,
                                          const td_worker_spec *spec,
                                          const td_engine_worker_layout *layout,
                                          td_errinfo *info)
{
    if (ftruncate(process->ring_fd, (off_t)layout->file_bytes) != 0 ||
        fcntl(process->ring_fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return fail_errno(info, "shared memory");
    uint8_t *memory = mmap(NULL, layout->file_bytes - layout->requests,
                           PROT_READ | PROT_WRITE, MAP_SHARED, process->ring_fd,
                           (off_t)layout->requests);
    if (memory == MAP_FAILED) return fail_errno(info, "mmap");
    process->layout = *layout;
    process->requests = memory;
    process->results = memory + (layout->results - layout->requests);
    td_worker_offer *offer = process->offer;
    offer->requests = layout->requests;
    offer->request_bytes = layout->request_bytes;
    offer->results = layout->results;
    offer->result_bytes = layout->result_bytes;
    offer->actions = layout->actions;
    offer->actions_bytes = layout->actions_bytes;
    offer->values = layout->values;
    offer->values_bytes = layout->values_bytes;
    offer->spec = *spec;
    set_phase(offer, TD_WORKER_RING);
    td_engine_worker_process_ring(process);
    return TD_OK;
}

void td_engine_worker_process_ring(const td_engine_worker_process *process)
{
    const uint64_t one = 1;
    (void)!write(process->bell_fd, &one, sizeof one);
}

void td_engine_worker_process_ask_to_end(
    const td_engine_worker_process *process)
{
    set_phase(process->offer, TD_WORKER_STOP);
    td_engine_worker_process_ring(process);
}

void td_engine_worker_process_kill(const td_engine_worker_process *process)
{
    (void)kill(process->pid, SIGKILL);
    (void)kill(-process->pid, SIGKILL);
}

static void end_line(td_engine_worker_process *process, const char *name)
{
    if (process->line_size == 0) return;
    td_engine_worker_spec_text(process->line, process->line_size,
                               process->last_line);
    td_log_text(TD_LOG_INFO, "%s: %s", name, process->last_line);
    process->line_size = 0;
}

static void take_output(td_engine_worker_process *process, const char *name,
                        const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' ||
            process->line_size == TD_ENGINE_WORKER_LINE_BYTES - 1)
            end_line(process, name);
        if (text[i] != '\n') process->line[process->line_size++] = text[i];
    }
}

void td_engine_worker_process_read_output(td_engine_worker_process *process,
                                          const char *name)
{
    char text[4096];
    for (int i = 0; i < MOST_READS && process->output_fd >= 0; i++) {
        ssize_t size = read(process->output_fd, text, sizeof text);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size <= 0) { // everyone who could write is gone
            close_fd(&process->output_fd);
            return;
        }
        take_output(process, name, text, (size_t)size);
    }
}

void td_engine_worker_process_reap(td_engine_worker_process *process,
                                   const char *name, char *ret_how,
                                   size_t how_bytes)
{
    siginfo_t ended;
    while (waitid(P_PID, (id_t)process->pid, &ended, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        ;
    (void)kill(-process->pid, SIGKILL); // whoever it left behind
    int status = 0;
    (void)waitpid(process->pid, &status, 0);
    process->pid = 0;
    close_fd(&process->pid_fd);
    td_engine_worker_process_read_output(process, name);
    end_line(process, name);
    if (WIFSIGNALED(status))
        (void)snprintf(ret_how, how_bytes, "was ended by signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        (void)snprintf(ret_how, how_bytes, "ended with code %d%s%s",
                       WEXITSTATUS(status), process->last_line[0] ? ": " : "",
                       process->last_line);
}
