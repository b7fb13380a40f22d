// SPDX-License-Identifier: Apache-2.0
// What a client is answered depends on what it sent, and on nothing else: each
// observation is answered once by a server that has only this client, and then
// among others, in any order and in any batch, to the same bits.
#include "server/model_fixture.h"

#include "base/rand.h"

#include <stdlib.h>

#define OBSERVATIONS 40 // of each client
#define SEEDS 3

typedef struct chunk {
    float rows[ROWS * ACTIONS];
} chunk;

static const char *const ids[MAX_CLIENTS] = {"arm-0", "arm-1", "arm-2",
                                             "arm-3"};
static chunk alone[MAX_CLIENTS][OBSERVATIONS + 1]; // by seq

// The observation of this seq, the same whoever else is there.
static void send(client *c, uint64_t seq)
{
    static const uint8_t rgb[48 * 64 * 3];
    td_rand rand;
    td_rand_init(&rand, td_engine_seed(td_wire_text_of(c->id), 0, seq));
    for (int i = 0; i < STATES; i++)
        c->state[i] = (float)td_rand_normal(&rand);
    td_wire_obs obs = client_obs(c, seq);
    obs.cursor = td_rand_u64(&rand) % 1000;
    obs.priority = (uint32_t)(td_rand_u64(&rand) % 3);
    obs.urgency = (float)td_rand_unit(&rand);
    if (td_rand_u64(&rand) % 2)
        obs.images[0] = (td_wire_image){.name = obs.images[0].name,
                                        .codec = TD_WIRE_RAW,
                                        .shape = {48, 64, 3},
                                        .data = rgb,
                                        .size = sizeof rgb};
    client_send(c, &obs);
}

static const float *actions_of(const td_wire_action *answer)
{
    assert_int_equal(answer->error_code.size, 0);
    assert_int_equal(answer->actions.size, sizeof(chunk));
    return answer->actions.data;
}

static bool same_bits(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(chunk)) == 0;
}

static void record_alone(void)
{
    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        void *state = NULL;
        assert_int_equal(world_setup(&state), 0);
        world_open(state);
        client *c = client_open(state, 0, ids[i], 1);
        assert_true(client_attach(c, "gpu-1"));
        for (uint64_t seq = 1; seq <= OBSERVATIONS; seq++) {
            send(c, seq);
            memcpy(&alone[i][seq], actions_of(client_hear(c)), sizeof(chunk));
        }
        world_teardown(&state);
    }
}

// Who has sent and heard how much, by seq.
typedef struct company {
    world *world;
    td_rand rand;
    uint64_t sent[MAX_CLIENTS], heard[MAX_CLIENTS];
} company;

// An answer with an error is to the noise in between.
static void take_answer(company *all, size_t number)
{
    const client *c = &all->world->clients[number];
    const td_wire_action *answer = &c->answer;
    uint64_t seq = answer->ident.seq;
    if (answer->error_code.size > 0) return;
    assert_in_range(seq, 1, OBSERVATIONS);
    if (!same_bits(actions_of(answer), &alone[number][seq]))
        fail_msg("%s: seq %d has another answer in company", c->id, (int)seq);
    all->heard[number] = seq;
}

// Until the newest is answered, which nothing supersedes.
static void hear_newest(company *all, size_t number)
{
    while (all->heard[number] < all->sent[number]) {
        (void)client_hear(&all->world->clients[number]);
        take_answer(all, number);
    }
}

// Somebody sends its next, as a rule after the answer to its last.
static void send_one(company *all)
{
    size_t i = td_rand_u64(&all->rand) % MAX_CLIENTS;
    client *c = &all->world->clients[i];
    if (all->sent[i] == OBSERVATIONS) return;
    if (td_rand_u64(&all->rand) % 8 != 0) hear_newest(all, i);
    if (td_rand_u64(&all->rand) % 8 == 0)
        client_send_bytes(c->obs, "not an observation", 18);
    send(c, ++all->sent[i]);
}

static void run_in_company(world *w, uint64_t seed)
{
    company all = {.world = w};
    td_rand_init(&all.rand, seed);
    world_open(w);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        assert_true(client_attach(client_open(w, i, ids[i], 1), "gpu-1"));
    for (int i = 0; i < 2 * MAX_CLIENTS * OBSERVATIONS; i++)
        send_one(&all);
    for (size_t i = 0; i < MAX_CLIENTS; i++)
        hear_newest(&all, i);
}

static void an_answer_depends_on_its_observation_alone(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool continuous;
        td_engine_latency latency;
    } cases[] = {
        {"at once", false, {.kind = TD_ENGINE_LATENCY_NONE}},
        {"batches",
         false,
         {.kind = TD_ENGINE_LATENCY_NORMAL, .ms = 0.3, .std_ms = 0.3}},
        {"prepared meanwhile",
         false,
         {.kind = TD_ENGINE_LATENCY_FIXED, .ms = 0.3, .prepare_ms = 0.3}},
        {"continuous",
         true,
         {.kind = TD_ENGINE_LATENCY_NORMAL, .ms = 0.3, .per_batch_ms = 0.1}},
    };
    record_alone();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            void *made = NULL;
            print_message("%s, seed %d\n", cases[i].name, (int)seed);
            assert_int_equal(world_setup(&made), 0);
            world *w = made;
            w->settings.continuous = cases[i].continuous;
            w->settings.latency = cases[i].latency;
            run_in_company(w, seed);
            world_teardown(&made);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_depends_on_its_observation_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
