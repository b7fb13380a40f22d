// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/shared.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool runs(const td_engine_synthetic_shared *shared,
                 const td_engine_synthetic_share *share)
{
    return share->start_ns <= shared->now_ns;
}

// t of as many as run now.
static double present_time_ns(const td_engine_synthetic_shared *shared)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < shared->count; i++)
        if (runs(shared, &shared->shares[i]))
            running += shared->shares[i].members;
    return (double)shared->time_ns[running];
}

void td_engine_synthetic_shared_join(td_engine_synthetic_shared *shared,
                                     const td_engine_synthetic_share *share)
{
    assert(share->members >= 1 &&
           shared->members + share->members <= TD_ENGINE_MAX_BATCH);
    shared->shares[shared->count++] = *share;
    shared->members += share->members;
}

// What it still takes while as many run as now.
static int64_t left_ns(const td_engine_synthetic_share *share, double time_ns)
{
    return llrint(fmax(0, share->left) * time_ns);
}

int64_t
td_engine_synthetic_shared_next_ns(const td_engine_synthetic_shared *shared)
{
    double time_ns = present_time_ns(shared);
    int64_t next_ns = TD_ENGINE_SYNTHETIC_NEVER_NS;
    for (uint32_t i = 0; i < shared->count; i++) {
        const td_engine_synthetic_share *share = &shared->shares[i];
        int64_t at_ns = share->start_ns;
        if (runs(shared, share))
            at_ns = shared->now_ns + left_ns(share, time_ns);
        if (at_ns < next_ns) next_ns = at_ns;
    }
    return next_ns;
}

// As far as nothing starts or ends in between.
static void advance(td_engine_synthetic_shared *shared, int64_t to_ns)
{
    double passed_ns = (double)(to_ns - shared->now_ns);
    double time_ns = present_time_ns(shared);
    if (passed_ns <= 0) return;
    for (uint32_t i = 0; i < shared->count; i++)
        if (runs(shared, &shared->shares[i]))
            shared->shares[i].left -= passed_ns / fmax(time_ns, 1);
    shared->now_ns = to_ns;
}

static void *take_out(td_engine_synthetic_shared *shared)
{
    double time_ns = present_time_ns(shared);
    for (uint32_t i = 0; i < shared->count; i++) {
        td_engine_synthetic_share *share = &shared->shares[i];
        if (!runs(shared, share) || left_ns(share, time_ns) > 0) continue;
        void *user = share->user;
        shared->members -= share->members;
        shared->count--;
        memmove(share, share + 1, (shared->count - i) * sizeof *share);
        return user;
    }
    return NULL;
}

void *td_engine_synthetic_shared_ended(td_engine_synthetic_shared *shared,
                                       int64_t now_ns)
{
    for (;;) {
        void *ended = take_out(shared);
        if (ended) return ended;
        int64_t next_ns = td_engine_synthetic_shared_next_ns(shared);
        advance(shared, next_ns < now_ns ? next_ns : now_ns);
        if (next_ns > now_ns) return NULL;
    }
}

static int64_t later_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

int64_t td_engine_synthetic_serial_take(td_engine_synthetic_serial *serial,
                                        int64_t submitted_ns,
                                        int64_t prepare_ns, int64_t device_ns)
{
    serial->prepared_ns =
        later_ns(submitted_ns, serial->prepared_ns) + prepare_ns;
    serial->free_ns =
        later_ns(serial->prepared_ns, serial->free_ns) + device_ns;
    return serial->free_ns;
}
