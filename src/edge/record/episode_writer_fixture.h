// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_EPISODE_WRITER_FIXTURE_H
#define TD_EDGE_RECORD_EPISODE_WRITER_FIXTURE_H

// For tests of what is recorded: a dataset in memory, which fails on demand.
// Calls come from one thread at a time; counts may be read from any.

#include "edge/record/episode_writer.h"

#include <stdatomic.h>
#include <string.h>

#define STORE_FRAMES 8192

typedef struct stored_frame {
    uint32_t episode; // by begin, from 0
    float state, action;
    bool lost;
    uint8_t pictures[2]; // their first byte; 0: missing
    size_t jpeg[2];      // their bytes; 0: pixels, or missing
    td_dataset_done done;
    char task[32];
} stored_frame;

typedef struct memory_store {
    uint32_t cameras;
    stored_frame frames[STORE_FRAMES]; // of all episodes, discarded ones too
    _Atomic size_t count;
    uint32_t begun;
    size_t open_frames;
    _Atomic uint32_t saved, discarded, closed;
    uint64_t bytes, free_bytes;
    bool spoils_jpeg; // none can be decoded
    uint64_t bad[2];
    // What fails next, once: the call's result; TD_OK: nothing does.
    td_err fail_begin, fail_add, fail_end;
    int64_t end_ns;          // how long an end takes, on `clock`
    td_clock_virtual *clock; // NULL: none
} memory_store;

static inline td_err store_fail(td_err *err, td_errinfo *info)
{
    td_err result = *err;
    *err = TD_OK;
    return result == TD_OK ? TD_OK : td_fail(info, result, "the store broke");
}

static inline td_err store_begin(void *user, td_errinfo *info)
{
    memory_store *s = user;
    TD_TRY(store_fail(&s->fail_begin, info));
    s->begun++;
    s->open_frames = 0;
    return TD_OK;
}

static inline td_err store_add(void *user, const td_dataset_frame *frame,
                               td_errinfo *info)
{
    memory_store *s = user;
    TD_TRY(store_fail(&s->fail_add, info));
    size_t at = atomic_load(&s->count);
    if (at == STORE_FRAMES) return TD_ERR_LIMIT;
    stored_frame *to = &s->frames[at];
    *to = (stored_frame){
        .episode = s->begun - 1,
        .state = frame->state[0],
        .action = frame->action[0],
        .lost = frame->lost,
        .done = frame->done,
    };
    for (uint32_t i = 0; i < s->cameras; i++) {
        const td_dataset_image *image = &frame->images[i];
        if (image->kind == TD_DATASET_IMAGE_MISSING) continue;
        to->pictures[i] = *(const uint8_t *)image->bytes.data;
        if (image->kind != TD_DATASET_IMAGE_JPEG) continue;
        to->jpeg[i] = image->bytes.size;
        s->bad[i] += s->spoils_jpeg;
    }
    strncpy(to->task, frame->task, sizeof to->task - 1);
    s->open_frames++;
    atomic_store(&s->count, at + 1);
    return TD_OK;
}

static inline td_err store_end(void *user, uint32_t *ret_episode,
                               td_errinfo *info)
{
    memory_store *s = user;
    if (s->clock)
        td_clock_virtual_advance_to(s->clock, s->clock->at_ns + s->end_ns);
    TD_TRY(store_fail(&s->fail_end, info));
    if (s->open_frames == 0) return TD_ERR_EMPTY;
    *ret_episode = atomic_fetch_add(&s->saved, 1);
    return TD_OK;
}

static inline td_err store_discard(void *user, td_errinfo *info)
{
    memory_store *s = user;
    (void)info;
    atomic_fetch_add(&s->discarded, 1);
    return TD_OK;
}

static inline td_dataset_writer_state store_look(void *user)
{
    const memory_store *s = user;
    return (td_dataset_writer_state){.bytes = s->bytes,
                                     .free_bytes = s->free_bytes,
                                     .bad = {s->bad[0], s->bad[1]}};
}

static inline void store_close(void *user)
{
    memory_store *s = user;
    atomic_fetch_add(&s->closed, 1);
}

static inline td_edge_episode_sink store_sink(memory_store *s)
{
    return (td_edge_episode_sink){
        .user = s,
        .begin = store_begin,
        .add = store_add,
        .end = store_end,
        .discard = store_discard,
        .look = store_look,
        .close = store_close,
    };
}

#endif
