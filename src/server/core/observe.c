// SPDX-License-Identifier: Apache-2.0
// What becomes of what clients send, from arrival to done.
//
// The core sees each request four times: observe() when it arrived, started()
// when the dispatch has picked it, done() when the engine has, and, in between,
// whatever ends it earlier: a newer one of its client, a reset, a newer start,
// the client leaving, the engine being away. Each way out counts it under one
// outcome, so that the counts always add up to what was received.
//
// What waits is in the scheduler and nowhere else: its entry holds the request,
// and td_sched_waits() says whether a client has one. Only what waits to be
// asked for (`unasked`, without computing ahead) is the client's own. What runs
// is `running` in the client's record; one at a time.
//
// An observation is of a boot, an episode and a seq, in that order. An older
// one is dropped under the name of what is older about it; a newer boot or
// episode drops everything before it. A seq that will never be answered is
// remembered, and named in the next answer, so that the robot need not wait for
// it. Guarded by the device's lock; no clock, no allocation.
#include "sched/strategy/heap.h"
#include "server/core/internal.h"

#include <assert.h>
#include <string.h>

#define MOST_BUDGET_US INT64_C(3600000000)

typedef td_server_client client;

void td_server_core_remember(client *c, uint64_t seq)
{
    if (c->superseded_count == TD_WIRE_MAX_SUPERSEDED) {
        memmove(c->superseded, c->superseded + 1,
                (TD_WIRE_MAX_SUPERSEDED - 1) * sizeof c->superseded[0]);
        c->superseded_count--;
    }
    c->superseded[c->superseded_count++] = seq;
}

void td_server_core_drop(td_server_core_dropped *dropped,
                         td_server_request *request)
{
    if (!request) return;
    assert(dropped->count < TD_COUNT_OF(dropped->requests));
    dropped->requests[dropped->count++] = request;
}

void td_server_core_end_waiting(td_server_core *core, td_server_outcome outcome)
{
    core->counts.outcomes[TD_SERVER_WAITING]--;
    core->counts.outcomes[outcome]++;
}

bool td_server_core_waits(const td_server_core *core, const client *c)
{
    return td_sched_waits(core->sched, c->member);
}

// One of those that wait; NULL: none.
static td_server_request *take_waiting(td_server_core *core, const client *c)
{
    td_sched_ended ended = {0};
    (void)td_sched_clear(core->sched, c->member, &ended);
    return ended.request.payload;
}

static void end_departed(td_server_core *core, client *c,
                         td_server_request *request, bool remembers,
                         td_server_core_dropped *dropped)
{
    if (!request) return;
    if (remembers) td_server_core_remember(c, request->obs.ident.seq);
    td_server_core_end_waiting(core, TD_SERVER_DEPARTED);
    td_server_core_drop(dropped, request);
}

void td_server_core_empty_queue(td_server_core *core, client *c, bool remembers,
                                td_server_core_dropped *dropped)
{
    td_server_request *request;
    while ((request = take_waiting(core, c))) {
        if (remembers) td_server_core_remember(c, request->obs.ident.seq);
        td_server_core_end_waiting(core, TD_SERVER_DEPARTED);
        td_server_request_append(&dropped->queued, request);
    }
}

void td_server_core_let_go(td_server_core *core, client *c, bool remembers,
                           td_server_core_dropped *dropped)
{
    if (c->every)
        td_server_core_empty_queue(core, c, remembers, dropped);
    else
        end_departed(core, c, take_waiting(core, c), remembers, dropped);
    end_departed(core, c, c->unasked, remembers, dropped);
    td_server_core_drop(dropped, c->chunk);
    c->unasked = c->chunk = NULL;
    if (core->prefixes)
        dropped->prefix = td_sched_prefixes_reset(core->prefixes, c->number);
}

void td_server_core_start_anew(td_server_core *core, client *c, uint64_t boot,
                               uint64_t episode,
                               td_server_core_dropped *ret_dropped)
{
    bool same_start = boot == c->boot;
    if (!same_start) {
        c->seq = 0;
        c->superseded_count = 0;
    }
    c->boot = boot;
    c->episode = episode;
    td_server_core_let_go(core, c, same_start, ret_dropped);
}

void td_server_core_ended(td_server_core *core, client *c,
                          td_server_outcome outcome, uint64_t seq)
{
    td_server_core_stray(core, outcome);
    c->heard = true;
    if (outcome == TD_SERVER_SUPERSEDED) td_server_core_remember(c, seq);
}

void td_server_core_stray(td_server_core *core, td_server_outcome outcome)
{
    core->counts.received++;
    core->counts.outcomes[outcome]++;
}

static td_server_outcome classify(const client *c, const td_wire_ident *ident)
{
    if (ident->boot < c->boot) return TD_SERVER_OLD_BOOT;
    if (ident->boot > c->boot) return TD_SERVER_WAITING;
    if (ident->episode < c->episode) return TD_SERVER_OLD_EPISODE;
    // Those of a queue may come by two ways.
    if (ident->seq <= c->seq && !c->every) return TD_SERVER_OLD_SEQ;
    return TD_SERVER_WAITING;
}

// What must be the same in a batch, beside the model: real-time chunking with
// as many promised rows, and tensors of the same names and shapes.
uint64_t td_server_core_mix(const td_wire_obs *obs, bool decode)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
#define TD_MIX(value) (hash = (hash ^ (value)) * UINT64_C(0x100000001b3))
    TD_MIX(decode);
    TD_MIX(obs->has_rtc);
    TD_MIX(obs->has_rtc ? obs->rtc_prefix.shape[0] : 0);
    for (uint32_t i = 0; i < obs->tensor_count; i++) {
        const td_wire_named *named = &obs->tensors[i];
        for (uint32_t j = 0; j < named->name.size; j++)
            TD_MIX((unsigned char)named->name.data[j]);
        TD_MIX(named->tensor.dtype);
        for (uint32_t j = 0; j < named->tensor.rank; j++)
            TD_MIX(named->tensor.shape[j]);
    }
#undef TD_MIX
    return hash;
}

static int64_t due_ns(const td_wire_obs *obs, int64_t now_ns)
{
    if (!obs->has_budget || obs->budget_us > MOST_BUDGET_US)
        return TD_SCHED_NEVER_NS;
    return now_ns + (obs->budget_us > 0 ? obs->budget_us * 1000 : 0);
}

td_server_outcome td_server_core_submit(td_server_core *core, int64_t now_ns,
                                        td_server_request *request,
                                        const td_wire_obs *claims,
                                        td_server_core_dropped *dropped)
{
    client *c = request->client;
    td_sched_ended ended;
    const td_sched_item waits = {
        .member = c->member,
        .payload = request,
        .seq = request->obs.ident.seq,
        .mix = request->mix,
        .due_ns = due_ns(claims, now_ns),
        .useless_ns = TD_SCHED_NEVER_NS, // a robot that holds does not age
        .expected_ns = td_sched_cadence_expected_ns(core->cadence, c->number),
        .priority = claims->priority,
        .urgency = claims->urgency,
        .steps = claims->has_steps_remaining ? claims->steps_remaining
                                             : TD_SCHED_STEPS_UNSET,
    };
    if (td_sched_submit(core->sched, now_ns, &waits, &ended) !=
        TD_SCHED_WAITING)
        return TD_SERVER_REFUSED;
    if (ended.outcome == TD_SCHED_OVERFLOWED) {
        dropped->overflowed = ended.request.payload;
        td_server_core_end_waiting(dropped->overflowed->client->core,
                                   TD_SERVER_OVERFLOWED);
    } else if (ended.request.payload) {
        td_server_core_end_waiting(core, TD_SERVER_SUPERSEDED);
        td_server_core_remember(c, ended.request.seq);
        td_server_core_drop(dropped, ended.request.payload);
    }
    return TD_SERVER_WAITING;
}

// One that nobody has asked for, and a newer one is here.
static void end_unasked(td_server_core *core, client *c,
                        td_server_core_dropped *dropped)
{
    if (!c->unasked) return;
    td_server_core_end_waiting(core, TD_SERVER_SUPERSEDED);
    td_server_core_remember(c, c->unasked->obs.ident.seq);
    td_server_core_drop(dropped, c->unasked);
    c->unasked = NULL;
}

// Without computing ahead: a robot that has nothing left to play is asking.
static bool is_asking(const td_server_core *core, const client *c,
                      const td_wire_obs *obs)
{
    return core->model.precompute || obs->must_go || c->every;
}

// To run, or kept until it is asked for.
static td_server_outcome take(td_server_core *core, int64_t now_ns,
                              td_server_request *request,
                              td_server_core_dropped *dropped)
{
    client *c = request->client;
    const td_wire_obs *obs = &request->obs;
    request->mix = td_server_core_mix(obs, false);
    bool asks = is_asking(core, c, obs);
    if (asks && td_server_core_submit(core, now_ns, request, obs, dropped) !=
                    TD_SERVER_WAITING)
        return TD_SERVER_REFUSED;
    end_unasked(core, c, dropped);
    if (!asks) c->unasked = request;
    return TD_SERVER_WAITING;
}

// Attaching began the silence; the first observation begins the cadence.
static void keep_time(td_server_core *core, client *c, int64_t now_ns)
{
    if (!c->has_sent) td_sched_cadence_forget(core->cadence, c->number);
    c->has_sent = true;
    td_sched_cadence_arrived(core->cadence, c->number, now_ns);
}

td_server_outcome td_server_core_arrive(td_server_core *core, client *c,
                                        int64_t now_ns,
                                        const td_wire_ident *ident,
                                        td_server_core_dropped *dropped)
{
    td_server_outcome outcome = classify(c, ident);
    if (outcome != TD_SERVER_WAITING) return outcome;
    if (ident->boot != c->boot || ident->episode != c->episode)
        td_server_core_start_anew(core, c, ident->boot, ident->episode,
                                  dropped);
    if (ident->seq > c->seq) c->seq = ident->seq;
    keep_time(core, c, now_ns);
    return outcome;
}

td_err td_server_core_fresh(const td_server_core *core, const td_wire_obs *obs,
                            td_errinfo *info)
{
    td_server_fit_ages ages;
    td_server_fit_ages_of(obs, &ages);
    return td_server_fit_fresh(&core->model.inputs, &ages, info);
}

static bool is_misaligned(const td_server_core *core, const td_wire_obs *obs)
{
    td_server_fit_ages ages;
    td_server_fit_ages_of(obs, &ages);
    return td_server_fit_misaligned(&core->model.inputs, &ages);
}

td_server_outcome td_server_core_observe(td_server_core *core, int64_t now_ns,
                                         td_server_request *request,
                                         td_server_core_dropped *ret_dropped)
{
    const td_wire_obs *obs = &request->obs;
    *ret_dropped = (td_server_core_dropped){0};
    td_server_outcome outcome = td_server_core_arrive(
        core, request->client, now_ns, &obs->ident, ret_dropped);
    if (outcome == TD_SERVER_WAITING)
        outcome = take(core, now_ns, request, ret_dropped);
    core->counts.received++;
    core->counts.outcomes[outcome]++;
    core->counts.misaligned +=
        outcome == TD_SERVER_WAITING && is_misaligned(core, obs);
    return outcome;
}

td_wire_ident td_server_core_present(const client *c)
{
    return (td_wire_ident){c->boot, c->route, c->episode, c->seq};
}

void td_server_core_reset(td_server_core *core, client *c,
                          const td_wire_reset *reset,
                          td_server_core_dropped *ret_dropped)
{
    *ret_dropped = (td_server_core_dropped){0};
    if (reset->boot != c->boot || reset->episode <= c->episode) return;
    td_server_core_start_anew(core, c, reset->boot, reset->episode,
                              ret_dropped);
}

td_server_request *td_server_core_give_up(td_server_core *core, bool comes_back)
{
    bool queues_stay = comes_back && td_sched_retries(core->sched);
    for (uint32_t i = 0; i < core->settings.capacity; i++) {
        const client *c = core->clients[i];
        if (!c || !td_server_core_waits(core, c)) continue;
        if (c->every && queues_stay) continue;
        td_server_core_end_waiting(core, TD_SERVER_UNREADY);
        return take_waiting(core, c);
    }
    return NULL;
}

uint32_t td_server_core_waiting(const td_server_core *core)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < core->settings.capacity; i++)
        count +=
            core->clients[i] && td_server_core_waits(core, core->clients[i]);
    return count;
}

void td_server_core_started(td_server_core *core, td_server_request *request,
                            uint64_t ticket)
{
    client *c = request->client;
    assert(!c->running);
    c->running_count++;
    if (!c->every) c->running = request;
    request->ticket = ticket;
    td_server_core_end_waiting(core, TD_SERVER_RUNNING);
}

bool td_server_core_is_present(const td_server_request *request)
{
    const td_wire_ident *ident = &request->obs.ident;
    const client *c = request->client;
    return ident->boot == c->boot && ident->episode == c->episode;
}

void td_server_core_add_superseded(client *c, td_wire_action *action)
{
    if (action->ident.boot != c->boot || action->ident.episode != c->episode)
        return;
    memcpy(action->superseded, c->superseded,
           c->superseded_count * sizeof c->superseded[0]);
    action->superseded_count = c->superseded_count;
    c->superseded_count = 0;
}

td_server_outcome td_server_core_done(td_server_core *core, int64_t now_ns,
                                      td_server_request *request,
                                      td_server_outcome outcome)
{
    client *c = request->client;
    assert(c->running_count > 0 && (c->every || c->running == request));
    bool answered = outcome == TD_SERVER_ANSWERED;
    bool again = td_sched_done(core->sched, now_ns, request->ticket,
                               answered ? TD_SCHED_ANSWERED
                                        : TD_SCHED_FAILED) == TD_SCHED_WAITING;
    c->running = NULL;
    c->running_count--;
    if (again) outcome = TD_SERVER_WAITING;
    if (again && !td_server_core_is_present(request)) {
        outcome = TD_SERVER_DEPARTED;
        (void)take_waiting(core, c);
    }
    core->counts.outcomes[TD_SERVER_RUNNING]--;
    core->counts.outcomes[outcome]++;
    return outcome;
}

uint32_t td_server_core_number(const td_server_core *core)
{
    return core->model.number;
}

void td_server_core_expired(td_server_request *request)
{
    td_server_core_end_waiting(request->client->core, TD_SERVER_EXPIRED);
}

void td_server_core_rerun(td_server_core *core)
{
    core->counts.rerun++;
}

void td_server_core_offended(td_server_core *core)
{
    core->counts.offenders++;
}
