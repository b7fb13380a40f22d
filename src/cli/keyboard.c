// SPDX-License-Identifier: Apache-2.0
// Keys of the terminal, each as it is pressed, on a thread of their own.
//
// Opening takes the terminal out of line mode and turns its echo off; Ctrl-C
// stays a signal. How the terminal was is kept in this file and put back when
// the keyboard is closed or the process exits, so that a person finds it as it
// was.
//
// The thread waits in poll() for at most a tenth of a second and looks for the
// end between two keys; `stopping` is all that it shares. Stop: `stopping` is
// set. Drain: the thread is joined, which waits for a press under way. Free:
// the terminal is put back.
#include "cli/keyboard.h"

#include "base/sync/thread.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define LOOK_MS 100

struct td_cli_keyboard {
    void (*on_key)(void *user, char key);
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
    td_cli_keyboard *keyboard = user;
    while (!atomic_load(&keyboard->stopping)) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        char key;
        if (poll(&in, 1, LOOK_MS) <= 0) continue;
        if (read(STDIN_FILENO, &key, 1) != 1) return;
        keyboard->on_key(keyboard->user, key);
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

td_err td_cli_keyboard_open(void (*on_key)(void *user, char key), void *user,
                            td_cli_keyboard **ret_keyboard, td_errinfo *info)
{
    const td_thread_config config = {.name = "td-keys", .cpu = -1};
    td_cli_keyboard *keyboard = calloc(1, sizeof *keyboard);
    if (!keyboard) return TD_ERR_NOMEM;
    keyboard->on_key = on_key;
    keyboard->user = user;
    td_err err = take_terminal();
    if (err == TD_OK)
        err = td_thread_start(&config, run, keyboard, &keyboard->thread, info);
    if (err != TD_OK) {
        free(keyboard);
        return err;
    }
    *ret_keyboard = keyboard;
    return TD_OK;
}

void td_cli_keyboard_close(td_cli_keyboard *keyboard)
{
    atomic_store(&keyboard->stopping, true);
    td_thread_join(keyboard->thread);
    restore();
    free(keyboard);
}
