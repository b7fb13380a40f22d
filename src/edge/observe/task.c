// SPDX-License-Identifier: Apache-2.0
// A text under a lock of its own.
//
// The task changes when somebody sets it, which may be any thread, and is read
// by two: the publisher, before each observation, and the recorder, before
// each row. The publisher keeps a copy of its own, which it compares here, so
// that it notices a change: nothing is similar in another task.
//
// Lock: one, held while the text is checked against a copy, copied or set.
// Whoever holds it takes no other. A count of the settings lies beside it, so
// that the publisher takes it only after one. The control tick never comes
// here.
//
// End: a plain value, freed when both readers have ended.
#include "edge/observe/task.h"

#include "wire/msgpack/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct td_edge_task {
    _Atomic uint64_t settings; // so far; changes after `text`
    pthread_mutex_t lock;      // guards `text`
    char text[TD_WIRE_MAX_TEXT + 1];
};

td_err td_edge_task_new(const char *text, td_edge_task **ret_task,
                        td_errinfo *info)
{
    td_edge_task *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_task) *task = made;
    pthread_mutex_init(&task->lock, NULL);
    TD_TRY(td_edge_task_set(task, text, info));
    *ret_task = TD_TAKE(task);
    return TD_OK;
}

void td_edge_task_free(td_edge_task *task)
{
    pthread_mutex_destroy(&task->lock);
    free(task);
}

td_err td_edge_task_set(td_edge_task *task, const char *text, td_errinfo *info)
{
    const td_wire_at at = {.name = td_wire_text_of("task"), .info = info};
    TD_TRY(td_wire_text_check(&at, td_wire_text_of(text)));
    pthread_mutex_lock(&task->lock);
    memcpy(task->text, text, strlen(text) + 1);
    atomic_fetch_add_explicit(&task->settings, 1, memory_order_release);
    pthread_mutex_unlock(&task->lock);
    return TD_OK;
}

bool td_edge_task_update(td_edge_task *task, td_edge_task_copy *copy)
{
    uint64_t settings =
        atomic_load_explicit(&task->settings, memory_order_acquire);
    if (settings == copy->settings) return false;
    copy->settings = settings;
    pthread_mutex_lock(&task->lock);
    bool changed = strcmp(copy->text, task->text) != 0;
    if (changed) memcpy(copy->text, task->text, sizeof task->text);
    pthread_mutex_unlock(&task->lock);
    return changed;
}

void td_edge_task_cut(td_edge_task *task, const char *otherwise, size_t size,
                      char *ret_text)
{
    pthread_mutex_lock(&task->lock);
    const char *text = task->text[0] ? task->text : otherwise;
    size_t length = strnlen(text, size);
    if (length == size) length--;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    memcpy(ret_text, text, length);
    ret_text[length] = 0;
    pthread_mutex_unlock(&task->lock);
}
