// SPDX-License-Identifier: Apache-2.0
#include "server/dispatch/turns.h"

#include "base/clock.h"
#include "sched/strategy/heap.h"
#include "tendon/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const td_server_device_settings td_server_device_defaults = {
    .policy = {.strategy = TD_SCHED_MODEL_DEADLINE,
               .weights = TD_SCHED_WEIGHTS_PUBLISHED,
               .tiers = 4},
    .queue = TD_SCHED_QUEUE_DEFAULTS,
    .flush = {.wait = TD_SCHED_WAIT_FIXED,
              .most = 8,
              .wait_ns = 10 * TD_NS_PER_MS},
    .cadence = TD_SCHED_CADENCE_DEFAULTS,
    .models = 1,
    .clients = 64,
};

const td_server_model_settings td_server_model_defaults = {
    .batch = {.wait = TD_SCHED_WAIT_SLACK},
    .max_inflight = 2,
    .precompute = true,
    .prefix_age_ns = 60 * TD_NS_PER_S,
    .inputs = TD_SERVER_ALIGN_DEFAULTS,
};

typedef struct name {
    char id[TD_WIRE_MAX_NAME + 1];
    uint32_t members; // 0: free
} name;

typedef struct place { // of a member
    uint32_t name;
    uint32_t model;
} place;

struct td_server_turns {
    td_sched *sched;
    td_sched_arbiter arbiter;
    uint32_t capacity, models;
    uint64_t used, open; // models, a bit each
    int64_t wake_ns;
    name *names;   // [capacity]
    place *places; // [capacity], by member
};

static td_sched_settings sched_settings(const td_server_device_settings *s)
{
    td_sched_settings sched = td_sched_defaults;
    sched.policy = s->policy;
    sched.queue = s->queue;
    sched.flush = s->flush;
    sched.clients = s->clients;
    sched.members = s->clients;
    sched.models = s->models;
    if (s->policy.tiers > 0) sched.mixes = TD_SCHED_MAX_LANES / s->policy.tiers;
    return sched;
}

td_err td_server_turns_new(const td_server_device_settings *settings,
                           td_server_turns **ret_turns, td_errinfo *info)
{
    td_sched_settings sched = sched_settings(settings);
    TD_AUTO(td_server_turns) *turns = calloc(1, sizeof *turns);
    if (!turns) return TD_ERR_NOMEM;
    turns->capacity = settings->clients;
    turns->models = settings->models;
    turns->wake_ns = TD_SCHED_NEVER_NS;
    TD_TRY(td_sched_new(&sched, &turns->sched, info));
    turns->names = calloc(turns->capacity, sizeof *turns->names);
    turns->places = calloc(turns->capacity, sizeof *turns->places);
    if (!turns->names || !turns->places) return TD_ERR_NOMEM;
    *ret_turns = TD_TAKE(turns);
    return TD_OK;
}

void td_server_turns_free(td_server_turns *turns)
{
    if (turns->sched) td_sched_free(turns->sched);
    free(turns->names);
    free(turns->places);
    free(turns);
}

td_sched *td_server_turns_sched(td_server_turns *turns)
{
    return turns->sched;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

td_err td_server_turns_set(td_server_turns *turns, uint32_t model,
                           const td_engine_spec *spec,
                           const td_server_model_settings *how)
{
    td_sched_batch_rule rule = how->batch;
    if (rule.most == 0 || rule.most > spec->max_batch)
        rule.most = spec->max_batch;
    uint32_t takes = spec->most_inflight > 0 ? spec->most_inflight : 1;
    const td_sched_arbiter_model runs = {
        .most_inflight =
            least(takes, how->max_inflight > 0 ? how->max_inflight : 1),
        .continuous = spec->continuous,
        .rule = rule,
        .times = td_sched_times(turns->sched, model),
    };
    td_sched_batch_rule one = {.wait = TD_SCHED_WAIT_NONE, .most = 1};
    TD_TRY(td_sched_batching(turns->sched, model, &rule));
    if (spec->continuous) TD_TRY(td_sched_batching(turns->sched, model, &one));
    td_sched_arbiter_set(&turns->arbiter, model, &runs);
    return TD_OK;
}

td_err td_server_turns_add(td_server_turns *turns, const td_engine_spec *spec,
                           const td_server_model_settings *how,
                           uint32_t *ret_model)
{
    uint32_t model = 0;
    while (model < turns->models && turns->used >> model & 1)
        model++;
    if (model == turns->models) return TD_ERR_FULL;
    TD_TRY(td_server_turns_set(turns, model, spec, how));
    turns->used |= UINT64_C(1) << model;
    *ret_model = model;
    return TD_OK;
}

void td_server_turns_open(td_server_turns *turns, uint32_t model, bool open)
{
    uint64_t bit = UINT64_C(1) << model;
    turns->open = open ? turns->open | bit : turns->open & ~bit;
}

void td_server_turns_remove(td_server_turns *turns, uint32_t model)
{
    td_server_turns_open(turns, model, false);
    turns->used &= ~(UINT64_C(1) << model);
}

// The client's number, or a free one.
static uint32_t find_name(const td_server_turns *turns, const char *id)
{
    uint32_t spare = turns->capacity;
    for (uint32_t i = 0; i < turns->capacity; i++) {
        const name *n = &turns->names[i];
        if (n->members > 0 && strcmp(n->id, id) == 0) return i;
        if (n->members == 0 && spare == turns->capacity) spare = i;
    }
    return spare;
}

td_err td_server_turns_join(td_server_turns *turns, const char *id,
                            const td_sched_member *member, uint32_t *ret_member)
{
    td_sched_member joining = *member;
    joining.client = find_name(turns, id);
    if (joining.client == turns->capacity) return TD_ERR_FULL;
    TD_TRY(td_sched_join(turns->sched, &joining, ret_member));
    name *n = &turns->names[joining.client];
    assert(strlen(id) < sizeof n->id);
    if (n->members++ == 0) memcpy(n->id, id, strlen(id) + 1);
    turns->places[*ret_member] = (place){joining.client, member->model};
    return TD_OK;
}

void td_server_turns_leave(td_server_turns *turns, uint32_t member)
{
    td_err err = td_sched_leave(turns->sched, member);
    assert(err == TD_OK);
    (void)err;
    turns->names[turns->places[member].name].members--;
}

static int64_t earliest_ns(const td_server_turn *turn)
{
    int64_t due_ns = TD_SCHED_NEVER_NS;
    for (uint32_t i = 0; i < turn->count; i++)
        if (turn->picks[i].due_ns < due_ns) due_ns = turn->picks[i].due_ns;
    return due_ns;
}

bool td_server_turns_next(td_server_turns *turns, int64_t now_ns,
                          td_server_turn *ret_turn)
{
    uint64_t waiting = td_sched_models_waiting(turns->sched) & turns->open;
    td_sched_grant grant =
        td_sched_arbiter_grant(&turns->arbiter, now_ns, waiting);
    // The time of a retry may have come, of which the arbiter does not know.
    if (turns->arbiter.running == 0) grant.models = turns->open;
    turns->wake_ns = TD_SCHED_NEVER_NS;
    if (grant.models == 0) return false;
    ret_turn->count = (grant.full ? td_sched_next_full : td_sched_next)(
        turns->sched, now_ns, grant.models, TD_SCHED_MAX_BATCH,
        ret_turn->picks);
    if (!grant.full) turns->wake_ns = td_sched_wake_ns(turns->sched);
    if (ret_turn->count == 0) return false;
    ret_turn->model = turns->places[ret_turn->picks[0].member].model;
    ret_turn->run = td_sched_arbiter_start(
        &turns->arbiter, now_ns, ret_turn->model, earliest_ns(ret_turn));
    return true;
}

bool td_server_turns_alone(td_server_turns *turns, int64_t now_ns,
                           uint32_t model, uint32_t *ret_run)
{
    if (turns->arbiter.running > 0) return false;
    *ret_run = td_sched_arbiter_start(&turns->arbiter, now_ns, model,
                                      TD_SCHED_NEVER_NS);
    return true;
}

void td_server_turns_end(td_server_turns *turns, int64_t now_ns, uint32_t model,
                         uint32_t run, uint32_t n, int64_t took_ns)
{
    uint32_t beside = td_sched_arbiter_end(&turns->arbiter, now_ns, run);
    uint32_t size = turns->arbiter.models[model].continuous ? beside : n;
    if (took_ns > 0)
        td_sched_measured(turns->sched, now_ns, model, size, took_ns);
}

double td_server_turns_busy(td_server_turns *turns, int64_t now_ns)
{
    return td_sched_arbiter_busy(&turns->arbiter, now_ns);
}

int64_t td_server_turns_wake_ns(const td_server_turns *turns)
{
    return turns->wake_ns;
}
