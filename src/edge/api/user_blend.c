// SPDX-License-Identifier: Apache-2.0
// The two threads hand one job to and fro; its stage says whose it is:
//
//   IDLE     the edge's, which fills it
//   ASKED    the first that takes it: the thread to run it, the edge to give up
//   RUNNING  the thread's; the edge still waits
//   DONE     the edge's, which takes the rows
//   LATE     the thread's; the edge has gone on without
//
// Rows are copied in and out, so that a late function never sees memory that is
// somebody else's by then.
//
// Close: after the edge, so nobody asks any more. The thread gets a flag to
// stop and joined, then everything is freed.
#include "edge/api/user_blend.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS                                                            \
    (2 * TD_NS_PER_S) // before a wait is reported, with its reason

enum { IDLE, ASKED, RUNNING, DONE, LATE };

struct td_edge_user_blend {
    td_edge_user_blend_config config;
    td_thread *thread;
    td_event wake; // the thread
    td_event done; // the edge
    atomic_bool stop;
    atomic_int stage;
    td_robot_overlap job;
    float *rows; // old, new and the result, one after another
    td_err err;  // of the job
};

static size_t cells(const td_edge_user_blend *blend)
{
    return blend->config.most_rows * blend->config.channels;
}

static float *result(const td_edge_user_blend *blend)
{
    return &blend->rows[2 * cells(blend)];
}

static bool pass(td_edge_user_blend *blend, int from, int to)
{
    return atomic_compare_exchange_strong(&blend->stage, &from, to);
}

static void run_one(td_edge_user_blend *blend)
{
    if (!pass(blend, ASKED, RUNNING)) return;
    blend->err =
        blend->config.fn(blend->config.user, &blend->job, result(blend));
    if (pass(blend, RUNNING, DONE))
        td_event_signal(&blend->done);
    else
        atomic_store(&blend->stage, IDLE);
}

static void run(void *user)
{
    td_edge_user_blend *blend = user;
    while (!atomic_load(&blend->stop)) {
        (void)td_event_wait_until(&blend->wake, INT64_MAX);
        run_one(blend);
    }
}

td_err td_edge_user_blend_open(const td_edge_user_blend_config *config,
                               td_edge_user_blend **ret_blend, td_errinfo *info)
{
    const td_thread_config thread = {.name = "td-blend", .cpu = -1};
    TD_AUTO(td_edge_user_blend) *blend = calloc(1, sizeof *blend);
    if (!blend) return TD_ERR_NOMEM;
    blend->config = *config;
    td_event_init(&blend->wake);
    td_event_init(&blend->done);
    blend->rows = calloc(3 * cells(blend), sizeof *blend->rows);
    if (!blend->rows) return TD_ERR_NOMEM;
    TD_TRY(td_thread_start(&thread, run, blend, &blend->thread, info));
    *ret_blend = TD_TAKE(blend);
    return TD_OK;
}

static void ask(td_edge_user_blend *blend, const td_edge_overlap *overlap)
{
    size_t count = (size_t)overlap->rows * overlap->channels;
    float *old_rows = blend->rows, *new_rows = &blend->rows[cells(blend)];
    memcpy(old_rows, overlap->old_rows, count * sizeof *old_rows);
    memcpy(new_rows, overlap->new_rows, count * sizeof *new_rows);
    for (size_t i = 0; i < count; i++)
        result(blend)[i] = NAN;
    blend->job = (td_robot_overlap){
        .first = overlap->first,
        .rows = overlap->rows,
        .count = overlap->channels,
        .old_rows = old_rows,
        .new_rows = new_rows,
    };
    atomic_store(&blend->stage, ASKED);
    td_event_signal(&blend->wake);
}

static bool is_done(td_edge_user_blend *blend)
{
    return atomic_load(&blend->stage) == DONE;
}

// False: given up. A signal may be left from a job that was done as the edge
// gave it up.
static bool wait_done(td_edge_user_blend *blend)
{
    int64_t until_ns = td_clock_monotonic_ns() + blend->config.limit_ns;
    while (!is_done(blend))
        if (!td_event_wait_until(&blend->done, until_ns))
            return !pass(blend, ASKED, IDLE) && !pass(blend, RUNNING, LATE);
    return true;
}

td_err td_edge_user_blend_all(void *user, const td_edge_overlap *overlap,
                              float *ret_rows)
{
    td_edge_user_blend *blend = user;
    if (atomic_load(&blend->stage) != IDLE) return TD_ERR_TIMEOUT;
    ask(blend, overlap);
    if (!wait_done(blend)) return TD_ERR_TIMEOUT;
    td_err err = blend->err == TD_OK ? TD_OK : TD_ERR_IO;
    if (err == TD_OK)
        memcpy(ret_rows, result(blend),
               (size_t)overlap->rows * overlap->channels * sizeof *ret_rows);
    atomic_store(&blend->stage, IDLE);
    return err;
}

// The user's function may be in it.
static void end_thread(td_thread *thread)
{
    int64_t until_ns = td_clock_monotonic_ns() + PATIENCE_NS;
    if (td_thread_join_until(thread, until_ns)) return;
    td_log_text(TD_LOG_ERROR, "robot: cannot close: blend() has not returned");
    td_thread_join(thread);
}

void td_edge_user_blend_close(td_edge_user_blend *blend)
{
    if (blend->thread) {
        atomic_store(&blend->stop, true);
        td_event_signal(&blend->wake);
        end_thread(blend->thread);
    }
    free(blend->rows);
    free(blend);
}
