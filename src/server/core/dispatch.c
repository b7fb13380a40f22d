// SPDX-License-Identifier: Apache-2.0
#include "server/core/dispatch.h"

#include "base/clock.h"
#include "sched/strategy/heap.h"

#include <assert.h>
#include <stdlib.h>

const td_server_device_settings td_server_device_defaults = {
    .policy = {.strategy = TD_SCHED_MODEL_DEADLINE,
               .weights = TD_SCHED_WEIGHTS_PUBLISHED,
               .tiers = 4,
               .fairness = TD_SCHED_FAIRNESS},
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
    .inputs = TD_SERVER_FIT_LIMITS,
};

struct td_server_dispatch {
    td_sched *sched;
    td_sched_arbiter arbiter;
    uint32_t models;
    uint64_t used, open; // models, a bit each
    int64_t wake_ns;
    uint32_t *models_of; // [clients], by member
};

static td_sched_settings sched_settings(const td_server_device_settings *s)
{
    td_sched_settings sched = td_sched_defaults;
    sched.policy = s->policy;
    sched.queue = s->queue;
    sched.flush = s->flush;
    sched.members = s->clients;
    sched.models = s->models;
    if (s->policy.tiers > 0) sched.mixes = TD_SCHED_MAX_LANES / s->policy.tiers;
    return sched;
}

td_err td_server_dispatch_new(const td_server_device_settings *settings,
                              td_server_dispatch **ret_dispatch,
                              td_errinfo *info)
{
    td_sched_settings sched = sched_settings(settings);
    TD_AUTO(td_server_dispatch) *dispatch = calloc(1, sizeof *dispatch);
    if (!dispatch) return TD_ERR_NOMEM;
    dispatch->models = settings->models;
    dispatch->arbiter.side_by_side = settings->side_by_side;
    dispatch->wake_ns = TD_SCHED_NEVER_NS;
    TD_TRY(td_sched_new(&sched, &dispatch->sched, info));
    dispatch->models_of =
        calloc(settings->clients, sizeof *dispatch->models_of);
    if (!dispatch->models_of) return TD_ERR_NOMEM;
    *ret_dispatch = TD_TAKE(dispatch);
    return TD_OK;
}

void td_server_dispatch_free(td_server_dispatch *dispatch)
{
    if (dispatch->sched) td_sched_free(dispatch->sched);
    free(dispatch->models_of);
    free(dispatch);
}

td_sched *td_server_dispatch_sched(td_server_dispatch *dispatch)
{
    return dispatch->sched;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

td_err td_server_dispatch_set(td_server_dispatch *dispatch, uint32_t model,
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
        .parallel = spec->parallel,
        .rule = rule,
        .times = td_sched_times(dispatch->sched, model),
    };
    td_sched_batch_rule one = {.wait = TD_SCHED_WAIT_NONE, .most = 1};
    TD_TRY(td_sched_batching(dispatch->sched, model, &rule));
    if (spec->continuous)
        TD_TRY(td_sched_batching(dispatch->sched, model, &one));
    td_sched_arbiter_set(&dispatch->arbiter, model, &runs);
    return TD_OK;
}

td_err td_server_dispatch_add(td_server_dispatch *dispatch,
                              const td_engine_spec *spec,
                              const td_server_model_settings *how,
                              uint32_t *ret_model)
{
    uint32_t model = 0;
    while (model < dispatch->models && dispatch->used >> model & 1)
        model++;
    if (model == dispatch->models) return TD_ERR_FULL;
    TD_TRY(td_server_dispatch_set(dispatch, model, spec, how));
    dispatch->used |= UINT64_C(1) << model;
    *ret_model = model;
    return TD_OK;
}

void td_server_dispatch_open(td_server_dispatch *dispatch, uint32_t model,
                             bool open)
{
    uint64_t bit = UINT64_C(1) << model;
    dispatch->open = open ? dispatch->open | bit : dispatch->open & ~bit;
}

void td_server_dispatch_remove(td_server_dispatch *dispatch, uint32_t model)
{
    td_server_dispatch_open(dispatch, model, false);
    dispatch->used &= ~(UINT64_C(1) << model);
}

td_err td_server_dispatch_join(td_server_dispatch *dispatch,
                               const td_sched_member *member,
                               uint32_t *ret_member)
{
    TD_TRY(td_sched_join(dispatch->sched, member, ret_member));
    dispatch->models_of[*ret_member] = member->model;
    return TD_OK;
}

void td_server_dispatch_leave(td_server_dispatch *dispatch, uint32_t member)
{
    td_err err = td_sched_leave(dispatch->sched, member);
    assert(err == TD_OK);
    (void)err;
}

static int64_t earliest_ns(const td_server_dispatch_batch *batch)
{
    int64_t due_ns = TD_SCHED_NEVER_NS;
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->picks[i].due_ns < due_ns) due_ns = batch->picks[i].due_ns;
    return due_ns;
}

static uint64_t free_models(const td_server_dispatch *dispatch)
{
    uint64_t models = 0;
    for (uint64_t left = dispatch->open; left; left &= left - 1)
        if (td_sched_arbiter_is_free(&dispatch->arbiter,
                                     (uint32_t)__builtin_ctzll(left)))
            models |= left & -left;
    return models;
}

bool td_server_dispatch_next(td_server_dispatch *dispatch, int64_t now_ns,
                             td_server_dispatch_batch *ret_batch)
{
    uint64_t waiting =
        td_sched_models_waiting(dispatch->sched) & dispatch->open;
    td_sched_grant grant =
        td_sched_arbiter_grant(&dispatch->arbiter, now_ns, waiting);
    // The time of a retry may have come, of which the arbiter does not know.
    grant.models |= free_models(dispatch);
    dispatch->wake_ns = TD_SCHED_NEVER_NS;
    uint32_t count = 0;
    if (grant.models) {
        count = td_sched_next(dispatch->sched, now_ns, grant.models,
                              TD_SCHED_MAX_BATCH, ret_batch->picks);
        dispatch->wake_ns = td_sched_wake_ns(dispatch->sched);
    }
    if (count == 0 && grant.full)
        count = td_sched_next_full(dispatch->sched, now_ns, grant.full,
                                   TD_SCHED_MAX_BATCH, ret_batch->picks);
    if (count == 0) return false;
    ret_batch->count = count;
    ret_batch->model = dispatch->models_of[ret_batch->picks[0].member];
    ret_batch->run = td_sched_arbiter_start(
        &dispatch->arbiter, now_ns, ret_batch->model, earliest_ns(ret_batch));
    return true;
}

bool td_server_dispatch_alone(td_server_dispatch *dispatch, int64_t now_ns,
                              uint32_t model, uint32_t *ret_run)
{
    if (!td_sched_arbiter_is_free(&dispatch->arbiter, model)) return false;
    *ret_run = td_sched_arbiter_start(&dispatch->arbiter, now_ns, model,
                                      TD_SCHED_NEVER_NS);
    return true;
}

void td_server_dispatch_end(td_server_dispatch *dispatch, int64_t now_ns,
                            uint32_t model, uint32_t run, uint32_t n,
                            int64_t took_ns)
{
    uint32_t beside = td_sched_arbiter_end(&dispatch->arbiter, now_ns, run);
    uint32_t size = dispatch->arbiter.models[model].continuous ? beside : n;
    if (took_ns > 0)
        td_sched_measured(dispatch->sched, now_ns, model, size, took_ns);
}

double td_server_dispatch_busy(td_server_dispatch *dispatch, int64_t now_ns)
{
    return td_sched_arbiter_busy(&dispatch->arbiter, now_ns);
}

int64_t td_server_dispatch_wake_ns(const td_server_dispatch *dispatch)
{
    int64_t drop_ns = td_sched_drop_ns(dispatch->sched);
    return drop_ns < dispatch->wake_ns ? drop_ns : dispatch->wake_ns;
}
