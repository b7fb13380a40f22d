// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_TASK_H
#define TD_EDGE_OBSERVE_TASK_H

// What the policy is to do, in words: every observation carries it, and every
// recorded frame. It may change while the robot runs.
//
// Any thread but the tick's; never blocks for long.

#include "base/err.h"
#include "tendon/wire.h"

#include <stdbool.h>

typedef struct td_edge_task td_edge_task;

// Owned by the caller. NOMEM, and as td_edge_task_set().
TD_NODISCARD td_err td_edge_task_new(const char *text, td_edge_task **ret_task,
                                     td_errinfo *info);
void td_edge_task_free(td_edge_task *task);
TD_AUTO_FREE(td_edge_task, td_edge_task_free)

// FORMAT (not UTF-8), LIMIT (longer than TD_WIRE_MAX_TEXT).
TD_NODISCARD td_err td_edge_task_set(td_edge_task *task, const char *text,
                                     td_errinfo *info);

// A reader's own. {0}: no task yet.
typedef struct td_edge_task_copy {
    uint64_t settings; // that it knows of
    char text[TD_WIRE_MAX_TEXT + 1];
} td_edge_task_copy;

// Makes `copy` the present task. True: it was another. Takes no lock unless one
// was set since.
bool td_edge_task_update(td_edge_task *task, td_edge_task_copy *copy);

// The task, or `otherwise` where it is empty; cut to `size` with its end, but
// never inside a character.
void td_edge_task_cut(td_edge_task *task, const char *otherwise, size_t size,
                      char *ret_text);

#endif
