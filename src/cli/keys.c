// SPDX-License-Identifier: Apache-2.0
// Shutdown: the thread looks for the end between two keys, ten times a second.
#include "cli/keys.h"

#include "base/sync/thread.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define LOOK_MS 100

struct td_cli_keys {
    void (*press)(void *user, char key);
    void *user;
    _Atomic bool stopping;
    td_thread *thread;
};

static struct termios before; // as the terminal was

static void restore(void)
{
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void run(void *user)
{
    td_cli_keys *keys = user;
    while (!atomic_load(&keys->stopping)) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        char key;
        if (poll(&in, 1, LOOK_MS) <= 0) continue;
        if (read(STDIN_FILENO, &key, 1) != 1) return;
        keys->press(keys->user, key);
    }
}

// Without lines and echo; signals stay. However the process ends, but by a
// signal that it does not take, the terminal is as it was.
static td_err take_terminal(void)
{
    bool ours = tcgetpgrp(STDIN_FILENO) == getpgrp(); // not in the background
    if (!ours || tcgetattr(STDIN_FILENO, &before) != 0)
        return TD_ERR_UNSUPPORTED;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)atexit(restore);
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 ? TD_OK : TD_ERR_IO;
}

td_err td_cli_keys_open(void (*press)(void *user, char key), void *user,
                        td_cli_keys **ret_keys, td_errinfo *info)
{
    const td_thread_config config = {.name = "td-keys", .cpu = -1};
    td_cli_keys *keys = calloc(1, sizeof *keys);
    if (!keys) return TD_ERR_NOMEM;
    keys->press = press;
    keys->user = user;
    td_err err = take_terminal();
    if (err == TD_OK)
        err = td_thread_start(&config, run, keys, &keys->thread, info);
    if (err != TD_OK) {
        free(keys);
        return err;
    }
    *ret_keys = keys;
    return TD_OK;
}

void td_cli_keys_close(td_cli_keys *keys)
{
    atomic_store(&keys->stopping, true);
    td_thread_join(keys->thread);
    restore();
    free(keys);
}
