// SPDX-License-Identifier: Apache-2.0
// What is kept for each client, and for how long: answers that were missed.
#include "engine/results.h"
#include "server/model_fixture.h"

#include <stdatomic.h>

static client *attached(world *w, const char *id)
{
    client *c = client_open(w, 0, id, 1);
    assert_true(client_attach(c, "gpu-1"));
    return c;
}

static bool nobody_is_here(world *w)
{
    return w->report.clients == 0;
}

static void who_is_no_longer_allowed_is_let_go(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = attached(w, "arm-0");
    td_server_settings settings = w->config.settings;
    settings.accept_unknown = false;
    assert_int_equal(
        td_server_model_use(w->server, &settings, &w->config.model), TD_OK);
    world_until(w, nobody_is_here);
    assert_false(client_attach(c, "gpu-1"));
    assert_int_equal(
        td_server_model_use(w->server, &w->config.settings, &w->config.model),
        TD_OK);
    assert_true(client_attach(c, "gpu-1"));
}

static td_wire_obs asking(client *c, uint64_t seq, uint64_t missed)
{
    td_wire_obs obs = client_obs(c, seq);
    obs.state = (td_wire_tensor){0};
    obs.image_count = 0;
    obs.has_again = true;
    obs.again = missed;
    return obs;
}

static void assert_is_the_models_answer(client *c, uint64_t seq)
{
    float expected[ROWS * ACTIONS];
    const td_wire_obs obs = client_obs(c, seq);
    const td_wire_action *answer = client_hear(c);
    td_engine_synthetic_model_answer(c->world->model, c->state, obs.cursor,
                                     expected);
    assert_int_equal(answer->error_code.size, 0);
    assert_int_equal(answer->ident.seq, seq);
    assert_int_equal(answer->actions.size, sizeof expected);
    assert_memory_equal(answer->actions.data, expected, sizeof expected);
}

static void a_missed_chunk_is_sent_again(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle); // until then its answer is on its way
    uint64_t chunk_id = c->answer.chunk_id;
    for (uint64_t seq = 2; seq <= 3; seq++) {
        td_wire_obs obs = asking(c, seq, 1);
        client_send(c, &obs);
        assert_is_the_models_answer(c, 1);
        assert_int_equal(c->answer.chunk_id, chunk_id);
        assert_int_equal(c->answer.superseded_count, 1);
        assert_int_equal(c->answer.superseded[0], seq);
    }
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.kept_chunk_hits, 2);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 3);
}

// The chunk was missed and a newer episode has begun.
static void a_missed_chunk_is_gone_with_its_episode(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    td_wire_obs obs = asking(c, 2, 1);
    obs.ident.episode = 2;
    client_send(c, &obs);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "NOTFOUND"));
    assert_int_equal(world_counts(w).again_misses, 1);
}

static void assert_has_the_results(const td_wire_action *answer)
{
    assert_int_equal(answer->error_code.size, 0);
    assert_true(td_wire_text_is(answer->text, "go left"));
    assert_int_equal(answer->result_count, 1);
    assert_true(td_wire_text_is(answer->results[0].name, "value"));
    assert_memory_equal(answer->results[0].tensor.data, ((double[]){0.5}), 8);
}

static void what_a_model_gives_beside_actions_is_sent_and_kept(void **state)
{
    world *w = *state;
    const td_wire_tensor value = {.dtype = TD_WIRE_F64,
                                  .rank = 1,
                                  .shape = {1},
                                  .data = (double[]){0.5},
                                  .size = 8};
    world_open_gated(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    world_until(w, is_running_one);
    td_engine_results *results = atomic_load(&w->gate.batch)->items[0]->results;
    assert_int_equal(results->count, 0);
    assert_int_equal(
        td_engine_results_add(results, td_wire_text_of("value"), &value, NULL),
        TD_OK);
    assert_int_equal(
        td_engine_results_set_text(results, td_wire_text_of("go left"), NULL),
        TD_OK);
    gate_finish(&w->gate, TD_OK);
    assert_has_the_results(client_hear(c));
    world_until(w, is_idle);
    td_wire_obs obs = asking(c, 2, 1);
    client_send(c, &obs);
    assert_has_the_results(client_hear(c));
    client_send_seq(c, 3); // the place of none is empty again
    world_until(w, is_running_one);
    gate_finish(&w->gate, TD_OK);
    assert_int_equal(client_hear(c)->result_count, 0);
    assert_int_equal(c->answer.text.size, 0);
}

// The synthetic engine, which says that it can do real-time chunking, counts
// the halves that it runs, keeps the last seed that it was given, and may lose
// what it keeps.
typedef struct halves {
    td_engine base;
    td_engine *inner;
    td_engine_spec spec;
    _Atomic uint32_t wholes, prefixes, decodes, drops;
    _Atomic uint64_t seed; // of the last decode
    _Atomic bool loses;    // before the next decode
    td_engine_done done;
    void *user;
} halves;

static const td_engine_spec *halves_spec(const td_engine *engine)
{
    return &((const halves *)engine)->spec;
}

static td_err halves_submit(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    halves *h = (halves *)engine;
    atomic_fetch_add(&h->wholes, 1);
    return h->inner->ops->submit(h->inner, batch, done, user);
}

static td_err halves_prefix(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    halves *h = (halves *)engine;
    atomic_fetch_add(&h->prefixes, 1);
    return h->inner->ops->prefix(h->inner, batch, done, user);
}

static void lose(void *user, td_engine_batch *batch)
{
    halves *h = user;
    for (uint32_t i = 0; i < batch->count; i++)
        batch->items[i]->status = TD_ERR_NOTFOUND;
    h->done(h->user, batch);
}

static td_err halves_decode(td_engine *engine, td_engine_batch *batch,
                            td_engine_done done, void *user)
{
    halves *h = (halves *)engine;
    atomic_fetch_add(&h->decodes, 1);
    atomic_store(&h->seed, batch->items[0]->seed);
    if (atomic_exchange(&h->loses, false)) {
        h->done = done;
        h->user = user;
        return h->inner->ops->decode(h->inner, batch, lose, h);
    }
    return h->inner->ops->decode(h->inner, batch, done, user);
}

static void halves_drop(td_engine *engine, td_engine_prefix *prefix)
{
    halves *h = (halves *)engine;
    atomic_fetch_add(&h->drops, 1);
    h->inner->ops->drop(h->inner, prefix);
}

static const td_engine_ops halves_ops = {.name = "halves",
                                         .spec = halves_spec,
                                         .submit = halves_submit,
                                         .prefix = halves_prefix,
                                         .decode = halves_decode,
                                         .drop = halves_drop};

static halves *open_halves(world *w)
{
    static halves h;
    world_open(w); // makes the engine and the model
    world_close(w);
    h = (halves){.base = {&halves_ops},
                 .inner = w->engine,
                 .spec = *w->engine->ops->spec(w->engine)};
    h.spec.rtc = true;
    world_open_with(w, &h.base);
    return &h;
}

// What the missed chunk continues has changed: it has to be made again.
static void ask_to_continue(client *c, uint64_t seq, uint64_t missed)
{
    const float promised[ACTIONS] = {0};
    td_wire_obs obs = asking(c, seq, missed);
    obs.has_rtc = true;
    obs.rtc_prefix = (td_wire_tensor){.dtype = TD_WIRE_F32,
                                      .rank = 2,
                                      .shape = {1, ACTIONS},
                                      .data = promised,
                                      .size = sizeof promised};
    client_send(c, &obs);
}

static void a_kept_prefix_is_decoded_without_being_made_again(void **state)
{
    world *w = *state;
    w->config.model.prefix_bytes = 1 << 20;
    halves *h = open_halves(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    ask_to_continue(c, 2, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.prefix_hits, 1);
    assert_int_equal(counts.prefixes.kept, 1);
    assert_int_equal(counts.prefixes.present, 1);
    client_send_seq(c, 3);
    assert_is_the_models_answer(c, 3);
    world_until(w, is_idle);
    assert_int_equal(world_counts(w).prefixes.kept, 2);
    assert_int_equal(atomic_load(&h->wholes), 0);
    assert_int_equal(atomic_load(&h->prefixes), 2);
    assert_int_equal(atomic_load(&h->decodes), 3);
    world_close(w);
    assert_int_equal(atomic_load(&h->drops), 2); // each once
}

static uint64_t seed_of(const client *c, uint64_t seq)
{
    return td_engine_seed(td_wire_text_of(c->id), 1, seq);
}

static uint64_t number_of(const world *w, td_server_counter_id id)
{
    return td_server_stats_counter(td_server_model_stats(w->server), id);
}

// The policy needs no real-time chunking for it.
static void another_chunk_of_what_was_seen_has_the_askers_noise(void **state)
{
    world *w = *state;
    w->config.model.prefix_bytes = 1 << 20;
    halves *h = open_halves(w);
    h->spec.rtc = false;
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    assert_true(atomic_load(&h->seed) == seed_of(c, 1));
    uint64_t chunk_id = c->answer.chunk_id;
    td_wire_obs obs = asking(c, 2, 1);
    obs.anew = true;
    client_send(c, &obs);
    assert_is_the_models_answer(c, 1);
    assert_int_equal(c->answer.superseded[0], 2);
    assert_true(c->answer.chunk_id > chunk_id);
    assert_true(atomic_load(&h->seed) == seed_of(c, 2));
    world_until(w, is_idle);
    assert_int_equal(number_of(w, TD_SERVER_COUNT_PREFIXES_MADE), 1);
    assert_int_equal(number_of(w, TD_SERVER_COUNT_CHUNKS_DECODED), 2);
    obs = asking(c, 3, 1); // the same again is the newer of the two
    chunk_id = c->answer.chunk_id;
    client_send(c, &obs);
    assert_is_the_models_answer(c, 1);
    assert_int_equal(c->answer.chunk_id, chunk_id);
}

static void an_observation_whose_prefix_is_lost_runs_whole(void **state)
{
    world *w = *state;
    w->config.model.prefix_bytes = 1 << 20;
    halves *h = open_halves(w);
    client *c = attached(w, "arm-0");
    atomic_store(&h->loses, true);
    client_send_seq(c, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.prefix_lost, 1);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 1);
    assert_int_equal(atomic_load(&h->wholes), 1);
    assert_int_equal(atomic_load(&h->drops), 1);
    client_send_seq(c, 2); // and the next in halves
    assert_is_the_models_answer(c, 2);
    assert_int_equal(atomic_load(&h->wholes), 1);
}

static void who_asks_for_what_is_lost_is_told_and_it_is_forgotten(void **state)
{
    world *w = *state;
    w->config.model.prefix_bytes = 1 << 20;
    halves *h = open_halves(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    atomic_store(&h->loses, true);
    ask_to_continue(c, 2, 1);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "NOTFOUND"));
    world_until(w, is_idle);
    assert_int_equal(atomic_load(&h->drops), 1);
    ask_to_continue(c, 3, 1);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "NOTFOUND"));
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.prefix_lost, 1);
    assert_int_equal(counts.prefix_hits, 1);
    assert_int_equal(counts.again_misses, 1);
    assert_int_equal(counts.prefixes.present, 0);
}

static bool one_waits(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_WAITING] == 1;
}

static void without_precompute_nothing_runs_until_asked(void **state)
{
    world *w = *state;
    w->config.model.precompute = false;
    world_open(w);
    client *c = attached(w, "arm-0");
    client_send_seq(c, 1);
    world_until(w, one_waits);
    td_wire_obs obs = asking(c, 2, 1);
    client_send(c, &obs);
    assert_is_the_models_answer(c, 1);
    world_until(w, is_idle);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 1);
    assert_int_equal(counts.outcomes[TD_SERVER_SUPERSEDED], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(who_is_no_longer_allowed_is_let_go),
        WORLD_TEST(a_missed_chunk_is_sent_again),
        WORLD_TEST(a_missed_chunk_is_gone_with_its_episode),
        WORLD_TEST(what_a_model_gives_beside_actions_is_sent_and_kept),
        WORLD_TEST(a_kept_prefix_is_decoded_without_being_made_again),
        WORLD_TEST(another_chunk_of_what_was_seen_has_the_askers_noise),
        WORLD_TEST(an_observation_whose_prefix_is_lost_runs_whole),
        WORLD_TEST(who_asks_for_what_is_lost_is_told_and_it_is_forgotten),
        WORLD_TEST(without_precompute_nothing_runs_until_asked),
    };
    return cmocka_run_group_tests_name("server/server_keep", tests, NULL, NULL);
}
