// SPDX-License-Identifier: Apache-2.0
// An engine of bad moods: it fails batches and members, refuses to take them
// and goes away. Whatever it does, every observation has one end and its robot
// is told of it once.
#include "server/model_fixture.h"

#include "base/rand.h"
#include "engine/blocking.h"

#include <stdatomic.h>

#define OBSERVATIONS 300
#define NUDGES 100
#define AHEAD 6   // that are sent before the next answer is waited for
#define LOOKS 500 // of a millisecond, before another is sent

typedef struct moody {
    td_engine base;
    const td_engine_spec *spec;
    td_engine_blocking *blocking;
    td_rand rand; // of the engine's thread
    _Atomic uint64_t submits;
    _Atomic int health;
} moody;

static const td_engine_spec *moody_spec(const td_engine *engine)
{
    return ((const moody *)engine)->spec;
}

static td_engine_health moody_health(const td_engine *engine)
{
    const moody *m = (const moody *)engine;
    return (td_engine_health)atomic_load(&m->health);
}

static td_err moody_submit(td_engine *engine, td_engine_batch *batch,
                           td_engine_done done, void *user)
{
    moody *m = (moody *)engine;
    if (moody_health(engine) != TD_ENGINE_READY) return TD_ERR_CLOSED;
    if (atomic_fetch_add(&m->submits, 1) % 11 == 0) return TD_ERR_BUSY;
    return td_engine_blocking_submit(m->blocking, TD_ENGINE_WHOLE, batch, done,
                                     user);
}

static const td_engine_ops moody_ops = {.name = "moody",
                                        .spec = moody_spec,
                                        .submit = moody_submit,
                                        .health = moody_health};

static void moody_run(void *model, const td_engine_job *job)
{
    moody *m = model;
    uint64_t mood = td_rand_u64(&m->rand) % 8;
    for (uint32_t i = 0; i < job->batch->count; i++) {
        td_engine_item *item = job->batch->items[i];
        bool fails = mood == 0 || (mood == 1 && i == 0);
        memset(item->actions, 0, ROWS * ACTIONS * sizeof(float));
        item->rows = ROWS;
        item->status = fails ? TD_ERR_INTERNAL : TD_OK;
    }
}

static moody the_engine;

static void open_moody(world *w)
{
    moody *m = &the_engine;
    world_open(w); // makes the model
    world_close(w);
    *m = (moody){.base = {&moody_ops},
                 .spec = td_engine_synthetic_model_spec(w->model)};
    td_rand_init(&m->rand, 7);
    const td_engine_blocking_config config = {
        .thread_name = "moody",
        .max_batch = m->spec->max_batch,
        .run = moody_run,
        .model = m,
    };
    assert_int_equal(td_engine_blocking_new(&config, &m->blocking, NULL),
                     TD_OK);
    world_open_with(w, &m->base);
}

// How often each seq of a client ended.
typedef struct account {
    uint32_t ends[OBSERVATIONS + NUDGES + 1];
    uint64_t sent, open;
} account;

static void ended(account *a, uint64_t seq)
{
    assert_in_range(seq, 1, a->sent);
    assert_int_equal(a->ends[seq]++, 0);
    a->open--;
}

static void send_next(client *c, account *a)
{
    assert_true(a->sent < OBSERVATIONS + NUDGES);
    client_send_seq(c, ++a->sent);
    a->open++;
}

// What was overtaken after the last answer left is told with the next one, for
// which something has to be asked.
static void listen(client *c, account *a)
{
    for (int looks = 0; !client_has_heard(c); looks++) {
        if (looks % LOOKS == LOOKS - 1) send_next(c, a);
        (void)td_event_wait_until(&c->world->wake,
                                  td_clock_now_ns(&td_clock_monotonic) +
                                      TD_NS_PER_MS);
    }
    ended(a, c->answer.ident.seq);
    for (uint32_t i = 0; i < c->answer.superseded_count; i++)
        ended(a, c->answer.superseded[i]);
}

static void go_on(client *c, account *a)
{
    send_next(c, a);
    while (a->open > AHEAD)
        listen(c, a);
}

static void every_observation_has_one_end_that_is_told(void **state)
{
    world *w = *state;
    static const char *const ids[] = {"arm-0", "arm-1", "arm-2", "arm-3"};
    static account accounts[MAX_CLIENTS];
    memset(accounts, 0, sizeof accounts);
    open_moody(w);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        assert_true(client_attach(client_open(w, i, ids[i], 1), "gpu-1"));
    for (int n = 0; n < OBSERVATIONS; n++) {
        if (n % 50 == 40) atomic_store(&the_engine.health, TD_ENGINE_WARMING);
        if (n % 50 == 45) atomic_store(&the_engine.health, TD_ENGINE_READY);
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            go_on(&w->clients[i], &accounts[i]);
    }
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        while (accounts[i].open > 0)
            listen(&w->clients[i], &accounts[i]);
    world_until(w, is_idle);
    td_server_counts counts = world_counts(w); // checks the sum
    uint64_t sent = 0;
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        sent += accounts[i].sent;
    assert_int_equal(counts.received, sent);
    assert_true(counts.outcomes[TD_SERVER_ANSWERED] > 0);
    assert_true(counts.outcomes[TD_SERVER_FAILED] > 0);
    world_close(w);
    td_engine_blocking_free(the_engine.blocking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(every_observation_has_one_end_that_is_told),
    };
    return cmocka_run_group_tests_name("server/server_moody", tests, NULL,
                                       NULL);
}
