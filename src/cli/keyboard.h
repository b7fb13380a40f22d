// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_KEYBOARD_H
#define TD_CLI_KEYBOARD_H

// Keys of the terminal that a command runs in, each as it is pressed.

#include "base/err.h"

typedef struct td_cli_keyboard td_cli_keyboard;

// Calls press(user, key) on a thread of its own, which may block; Ctrl-C stays
// a signal. UNSUPPORTED where standard input is no terminal of its own. Owned
// by the caller.
TD_NODISCARD td_err td_cli_keyboard_open(void (*on_key)(void *user, char key),
                                         void *user,
                                         td_cli_keyboard **ret_keyboard,
                                         td_errinfo *info);

// Leaves the terminal as it was. Waits for a press under way. Blocks.
void td_cli_keyboard_close(td_cli_keyboard *keyboard);

#endif
