// SPDX-License-Identifier: Apache-2.0
// What a device gets done, in virtual time: the dispatch decides what starts,
// the clockwork of the synthetic engine says when it ends.
#include "engine/synthetic/shared.h"
#include "sched/sched_fixture.h"
#include "server/core/dispatch.h"

#include <math.h>

#define MOST_RUNS 8
#define LENGTH_NS (100 * INT64_C(1000000000))

// Every client always has one waiting.
typedef struct load {
    const char *name;
    uint32_t clients;
    uint32_t max_batch;
    bool continuous;
    uint32_t max_inflight;
    int64_t prepare_ms, ms, per_batch_ms;
    double per_second; // answers, as they should be
} load;

typedef struct run {
    td_server_dispatch_batch batch; // count 0: free
    int64_t started_ns;
    int64_t end_ns; // NEVER where the shares decide
} run;

typedef struct world {
    const load *load;
    td_server_dispatch *dispatch;
    td_engine_synthetic_serial device; // in turn
    td_engine_synthetic_shared shared; // continuous
    run runs[MOST_RUNS];
    uint64_t seq, answered;
} world;

static int64_t time_ns(const load *l, uint32_t n)
{
    return (l->ms + l->per_batch_ms * (n - 1)) * MS;
}

static void wait_again(world *w, int64_t now_ns, uint32_t member)
{
    td_sched_item item = item_of(member, ++w->seq);
    (void)submit(td_server_dispatch_sched(w->dispatch), now_ns, &item);
}

static void world_init(world *w, const load *l)
{
    *w = (world){.load = l};
    td_server_device_settings device = td_server_device_defaults;
    td_server_model_settings how = td_server_model_defaults;
    const td_engine_spec spec = {
        .max_batch = l->max_batch,
        .most_inflight = l->continuous ? l->max_batch : 2,
        .continuous = l->continuous,
    };
    uint32_t model, member;
    how.max_inflight = l->max_inflight;
    assert_int_equal(td_server_dispatch_new(&device, &w->dispatch, NULL),
                     TD_OK);
    assert_int_equal(td_server_dispatch_add(w->dispatch, &spec, &how, &model),
                     TD_OK);
    td_server_dispatch_open(w->dispatch, model, true);
    for (uint32_t n = 1; n <= l->max_batch; n++) {
        w->shared.time_ns[n] = time_ns(l, n);
        td_sched_measured(td_server_dispatch_sched(w->dispatch), 0, model, n,
                          l->prepare_ms * MS + time_ns(l, n));
    }
    for (uint32_t i = 0; i < l->clients; i++) {
        const td_sched_member client = {.model = model, .most_urgency = 1};
        assert_int_equal(td_server_dispatch_join(w->dispatch, &client, &member),
                         TD_OK);
        wait_again(w, 0, member);
    }
}

static run *free_run(world *w)
{
    for (size_t i = 0; i < MOST_RUNS; i++)
        if (w->runs[i].batch.count == 0) return &w->runs[i];
    fail_msg("%s: more runs than there may be", w->load->name);
    return NULL;
}

static void submit_run(world *w, int64_t now_ns, run *begun)
{
    const load *l = w->load;
    int64_t prepare_ns = l->prepare_ms * MS;
    uint32_t count = begun->batch.count;
    begun->started_ns = now_ns;
    begun->end_ns = NEVER;
    if (l->continuous) {
        td_engine_synthetic_share share = {.user = begun,
                                           .members = count,
                                           .start_ns = now_ns + prepare_ns,
                                           .left = 1};
        td_engine_synthetic_shared_join(&w->shared, &share);
    } else {
        begun->end_ns = td_engine_synthetic_serial_take(
            &w->device, now_ns, prepare_ns, time_ns(l, count));
    }
}

static void begin(world *w, int64_t now_ns)
{
    run *next = free_run(w);
    while (td_server_dispatch_next(w->dispatch, now_ns, &next->batch)) {
        for (uint32_t i = 0; i < next->batch.count; i++)
            wait_again(w, now_ns, next->batch.picks[i].member);
        submit_run(w, now_ns, next);
        next = free_run(w);
    }
    next->batch.count = 0;
}

static void end(world *w, int64_t now_ns, run *ended)
{
    const td_server_dispatch_batch *batch = &ended->batch;
    int64_t took_ns = now_ns - ended->started_ns;
    for (uint32_t i = 0; i < batch->count; i++)
        (void)td_sched_done(td_server_dispatch_sched(w->dispatch), now_ns,
                            batch->picks[i].ticket, TD_SCHED_ANSWERED);
    w->answered += batch->count;
    td_server_dispatch_end(w->dispatch, now_ns, batch->model, batch->run,
                           batch->count, took_ns);
    ended->batch.count = 0;
}

// When something ends next, or the dispatch wants to look again.
static int64_t next_ns(const world *w)
{
    int64_t at_ns = td_server_dispatch_wake_ns(w->dispatch);
    int64_t shared_ns = td_engine_synthetic_shared_next_ns(&w->shared);
    if (shared_ns < at_ns) at_ns = shared_ns;
    for (size_t i = 0; i < MOST_RUNS; i++)
        if (w->runs[i].batch.count > 0 && w->runs[i].end_ns < at_ns)
            at_ns = w->runs[i].end_ns;
    return at_ns;
}

static void play(world *w)
{
    begin(w, 0);
    for (int64_t now_ns; (now_ns = next_ns(w)) <= LENGTH_NS;) {
        for (run *ended;
             (ended = td_engine_synthetic_shared_ended(&w->shared, now_ns));)
            end(w, now_ns, ended);
        for (size_t i = 0; i < MOST_RUNS; i++)
            if (w->runs[i].batch.count > 0 && w->runs[i].end_ns <= now_ns)
                end(w, now_ns, &w->runs[i]);
        begin(w, now_ns);
    }
}

static void a_device_gets_done_what_its_clockwork_allows(void **state)
{
    (void)state;
    static const load loads[] = {
        // clients, batch, continuous, in flight, prepare, t(1), each further
        {"one at a time", 8, 4, false, 1, 10, 30, 0, 4 / 0.040},
        {"prepared meanwhile", 8, 4, false, 2, 10, 30, 0, 4 / 0.030},
        {"preparing takes longer", 8, 4, false, 2, 30, 10, 0, 4 / 0.030},
        {"nothing to prepare", 8, 4, false, 2, 0, 30, 0, 4 / 0.030},
        {"all are in the one that runs", 4, 4, false, 2, 10, 30, 0, 4 / 0.040},
        {"larger batches take longer", 8, 4, false, 2, 10, 30, 2, 4 / 0.036},
        {"continuous", 8, 4, true, 2, 0, 30, 10, 4 / 0.060},
        {"continuous, prepared", 8, 4, true, 2, 5, 30, 10, 4 / 0.065},
        {"continuous, room left", 2, 4, true, 2, 0, 30, 10, 2 / 0.040},
        {"continuous, alone", 1, 4, true, 1, 0, 30, 10, 1 / 0.030},
    };
    for (size_t i = 0; i < TD_COUNT_OF(loads); i++) {
        world w;
        world_init(&w, &loads[i]);
        play(&w);
        td_server_dispatch_free(w.dispatch);
        double per_second = (double)w.answered * 1e9 / LENGTH_NS;
        if (fabs(per_second / loads[i].per_second - 1) > 0.01)
            fail_msg("%s: %.1f a second, not %.1f", loads[i].name, per_second,
                     loads[i].per_second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_gets_done_what_its_clockwork_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
