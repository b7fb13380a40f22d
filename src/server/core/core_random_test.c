// SPDX-License-Identifier: Apache-2.0
// Whatever clients do, every observation ends under one name and every payload
// comes back once.
#include "base/rand.h"
#include "server/core/core_fixture.h"

#define OPERATIONS 20000
#define CLIENTS 3 // listed; the server has room for two
#define REQUESTS 16

typedef struct world {
    td_rand rand;
    td_server_dispatch *dispatch;
    td_server_core *core;
    td_server_request requests[REQUESTS];
    bool held[REQUESTS]; // by the core
    td_server_client clients[CLIENTS];
    td_server_dispatch_batch batch; // the batch that runs
    uint32_t unfinished;            // of it
    uint64_t handed_in, handed_out;
    uint64_t boot[CLIENTS]; // as the robots count them
    bool running[CLIENTS];
    uint64_t episode, seq;
} world;

static uint64_t below(world *w, uint64_t limit)
{
    return td_rand_u64(&w->rand) % limit;
}

static bool is_attached(const world *w, uint32_t who)
{
    return w->clients[who].presence == TD_SERVER_ATTACHED;
}

// A request came out of the core: it must have been in there. Returns whose.
static uint32_t come_back(world *w, const td_server_request *request)
{
    size_t index = (size_t)(request - w->requests);
    assert_true(index < REQUESTS);
    assert_true(w->held[index]);
    w->held[index] = false;
    w->handed_out++;
    return (uint32_t)(request->client - w->clients);
}

static void all_come_back(world *w, const td_server_core_dropped *dropped)
{
    for (uint32_t i = 0; i < dropped->count; i++)
        (void)come_back(w, dropped->requests[i]);
}

static void attach_one(world *w, uint32_t who)
{
    w->boot[who] += below(w, 2);
    const td_wire_attach attach = {
        .client = td_wire_text_of(listed_names[who]),
        .boot = w->boot[who] - below(w, 2),
    };
    td_server_core_dropped dropped;
    td_server_client *client = &w->clients[who];
    if (td_server_core_attach(w->core, 0, &attach, client, &dropped, NULL) ==
        TD_OK)
        assert_ptr_equal(td_server_core_at(w->core, client->number), client);
    all_come_back(w, &dropped);
}

static void detach_one(world *w, uint32_t who)
{
    td_server_core_dropped dropped = {0};
    td_err err = td_server_core_detach(w->core, &w->clients[who],
                                       w->boot[who] - below(w, 2), &dropped);
    all_come_back(w, &dropped);
    if (err != TD_OK) return;
    assert_false(w->running[who]);
    assert_false(is_attached(w, who));
}

// One that is neither in the core nor runs.
static uint32_t free_request(const world *w)
{
    uint32_t index = 0;
    const td_server_request *request = w->requests;
    while (w->held[index] ||
           (request[index].client &&
            request[index].client->running == &request[index]))
        index++;
    assert_true(index < REQUESTS);
    return index;
}

static void observe_one(world *w, uint32_t who)
{
    if (below(w, 16) == 0) w->boot[who]++;
    if (below(w, 16) == 0) w->episode++;
    const td_wire_obs obs = {
        .ident = {.boot = w->boot[who] - (below(w, 8) == 0),
                  .episode = w->episode - (below(w, 8) == 0),
                  .seq = ++w->seq - (below(w, 8) == 0 ? 8 : 0)},
        .priority = (uint32_t)below(w, 3),
        .has_budget = below(w, 2) == 0,
        .budget_us = (int64_t)below(w, 100000),
        .has_rtc = below(w, 8) == 0,
    };
    uint32_t index = free_request(w);
    td_server_request *request = &w->requests[index];
    td_server_core_dropped dropped;
    w->held[index] = true;
    *request = (td_server_request){.client = &w->clients[who], .obs = obs};
    td_server_outcome outcome =
        td_server_core_observe(w->core, 0, request, &dropped);
    w->handed_in += outcome == TD_SERVER_WAITING;
    if (outcome != TD_SERVER_WAITING) w->held[index] = false;
    all_come_back(w, &dropped);
}

static void reset_one(world *w, uint32_t who)
{
    const td_wire_reset reset = {.boot = w->boot[who], .episode = ++w->episode};
    td_server_core_dropped dropped;
    td_server_core_reset(w->core, &w->clients[who], &reset, &dropped);
    all_come_back(w, &dropped);
}

static void end_one(world *w, uint32_t who)
{
    static const td_server_outcome early[] = {
        TD_SERVER_MALFORMED, TD_SERVER_REFUSED, TD_SERVER_STALE,
        TD_SERVER_SUPERSEDED};
    td_server_core_ended(w->core, &w->clients[who],
                         early[below(w, TD_COUNT_OF(early))], ++w->seq);
}

static void run_some(world *w)
{
    if (!td_server_dispatch_next(w->dispatch, 0, &w->batch)) return;
    assert_int_equal(w->unfinished, 0); // one run at a time
    w->unfinished = w->batch.count;
    for (uint32_t i = 0; i < w->batch.count; i++) {
        td_server_request *request = w->batch.picks[i].request.payload;
        uint32_t who = come_back(w, request);
        assert_false(w->running[who]);
        w->running[who] = true;
        td_server_core_started(w->core, request, w->batch.picks[i].ticket);
    }
}

static void finish_one(world *w, uint32_t who)
{
    if (!w->running[who]) return;
    td_wire_action answer = {0};
    td_server_client *client = &w->clients[who];
    answer.ident = td_server_core_present(client);
    td_server_core_add_superseded(client, &answer);
    assert_true(answer.superseded_count <= TD_WIRE_MAX_SUPERSEDED);
    td_server_outcome outcome =
        below(w, 4) ? TD_SERVER_ANSWERED : TD_SERVER_FAILED;
    assert_int_equal(td_server_core_done(w->core, 0, client->running, outcome),
                     outcome);
    w->running[who] = false;
    if (--w->unfinished == 0)
        td_server_dispatch_end(w->dispatch, 0, 0, w->batch.run, w->batch.count,
                               1);
}

static void give_up_all(world *w)
{
    td_server_request *waiting;
    while ((waiting = td_server_core_give_up(w->core, false)))
        (void)come_back(w, waiting);
}

static void act(world *w)
{
    uint32_t who = (uint32_t)below(w, CLIENTS);
    bool attached = is_attached(w, who);
    uint64_t what = below(w, 16);
    if (what == 0) attach_one(w, who);
    if (what == 1 && below(w, 4) == 0) detach_one(w, who);
    if (what == 2) run_some(w);
    if (what == 2 && below(w, 16) == 0) give_up_all(w);
    if (what >= 3 && what <= 5) finish_one(w, who);
    if (!attached) return;
    if (what == 6 && below(w, 4) == 0) reset_one(w, who);
    if (what == 7) end_one(w, who);
    if (what >= 8) observe_one(w, who);
}

static void assert_nothing_is_lost(const world *w)
{
    td_server_counts counts = server_counts(w->core); // checks the sum
    assert_int_equal(w->handed_in - w->handed_out,
                     counts.outcomes[TD_SERVER_WAITING]);
    uint64_t running = 0;
    uint32_t attached = 0;
    for (uint32_t who = 0; who < CLIENTS; who++) {
        running += w->running[who];
        attached += is_attached(w, who);
    }
    assert_int_equal(counts.outcomes[TD_SERVER_RUNNING], running);
    assert_int_equal(td_server_core_clients(w->core), attached);
    assert_int_equal(counts.attached - counts.departed, attached);
    td_sched_counts sched;
    td_sched_count(td_server_dispatch_sched(w->dispatch), &sched);
    assert_int_equal(sched.outcomes[TD_SCHED_WAITING],
                     counts.outcomes[TD_SERVER_WAITING]);
    assert_int_equal(sched.outcomes[TD_SCHED_RUNNING], running);
    assert_int_equal(sched.outcomes[TD_SCHED_ANSWERED],
                     counts.outcomes[TD_SERVER_ANSWERED]);
}

static void live(uint64_t seed, const td_engine_spec *spec)
{
    static world w;
    const td_server_settings settings = server_settings();
    td_server_dispatch *dispatch = dispatch_new(spec);
    w = (world){
        .dispatch = dispatch,
        .core = server_new(&settings, spec, dispatch),
        .boot = {10, 10, 10},
        .clients = {{.id = "arm-0"}, {.id = "arm-1"}, {.id = "arm-2"}},
        .episode = 1,
        .seq = 10,
    };
    td_rand_init(&w.rand, seed);
    for (int i = 0; i < OPERATIONS; i++) {
        act(&w);
        assert_nothing_is_lost(&w);
    }
    td_server_counts counts = server_counts(w.core);
    // Those of a queue: client/every_test.c.
    for (int i = TD_SERVER_ANSWERED; i < TD_SERVER_EXPIRED; i++)
        if (counts.outcomes[i] == 0)
            fail_msg("never %s", td_server_outcome_name(i));
    assert_true(counts.refused_attach > 0 && counts.departed > 0);
    td_server_core_free(w.core);
    td_server_dispatch_free(w.dispatch);
}

static void every_observation_ends_once_whatever_comes(void **state)
{
    (void)state;
    td_engine_spec spec;
    model_describe(&spec);
    for (uint64_t seed = 1; seed <= 5; seed++)
        live(seed, &spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_observation_ends_once_whatever_comes),
    };
    return cmocka_run_group_tests_name("server/core_random", tests, NULL, NULL);
}
