// SPDX-License-Identifier: Apache-2.0
// What is kept for a robot that missed an answer: the last chunk, and the
// prefix from which it was made. Neither outlives its boot or its episode.
#include "server/core/internal.h"

typedef td_server_client client;

// One version of one policy is what a core serves.
static td_sched_prefix_ident prefix_ident(const client *c, uint64_t seq)
{
    return (td_sched_prefix_ident){
        .boot = c->boot, .episode = c->episode, .seq = seq};
}

static bool has_chunk(const client *c, const td_wire_obs *obs)
{
    // One that continues another chunk, or is to be another, has to be made.
    return !obs->has_rtc && !obs->anew && c->chunk &&
           c->chunk->obs.ident.seq == obs->again;
}

static bool is_coming(const td_server_core *core, const client *c)
{
    return td_server_core_waits(core, c) ||
           (c->running && td_server_core_is_present(c->running));
}

// The observation that was kept waits in place of the one that asks for it.
static td_server_outcome run_unasked(td_server_core *core, int64_t now_ns,
                                     const td_server_request *asker,
                                     td_server_core_dropped *dropped)
{
    client *c = asker->client;
    td_server_outcome outcome =
        td_server_core_submit(core, now_ns, c->unasked, &asker->obs, dropped);
    if (outcome != TD_SERVER_WAITING) return outcome;
    td_server_core_end_waiting(core, TD_SERVER_SUPERSEDED);
    c->unasked = NULL;
    return outcome;
}

// The asking one waits under the seq that it asks for, with its prefix.
static td_server_outcome run_decode(td_server_core *core, int64_t now_ns,
                                    td_server_request *request,
                                    td_server_core_dropped *dropped)
{
    const client *c = request->client;
    td_wire_obs *obs = &request->obs;
    const td_sched_prefix_ident ident = prefix_ident(c, obs->again);
    td_engine_prefix *prefix =
        core->prefixes
            ? td_sched_prefixes_use(core->prefixes, c->number, &ident)
            : NULL;
    if (!prefix) return TD_SERVER_REFUSED;
    uint64_t asker = obs->ident.seq;
    obs->ident.seq = obs->again;
    request->mix = td_server_core_mix(obs, true);
    td_server_outcome outcome =
        td_server_core_submit(core, now_ns, request, obs, dropped);
    if (outcome == TD_SERVER_WAITING) {
        request->prefix = prefix;
        request->asker = asker;
    } else {
        obs->ident.seq = asker;
        (void)td_sched_prefixes_release(core->prefixes, c->number, now_ns);
    }
    return outcome;
}

static td_server_again find(td_server_core *core, int64_t now_ns,
                            td_server_request *request,
                            td_server_core_dropped *dropped)
{
    client *c = request->client;
    const td_wire_obs *obs = &request->obs;
    td_server_again again = {.outcome = TD_SERVER_ANSWERED};
    if (has_chunk(c, obs)) {
        again.found = TD_SERVER_FOUND_CHUNK;
        again.chunk = TD_TAKE(c->chunk);
        core->counts.kept_chunk_hits++;
        return again;
    }
    if (c->unasked && c->unasked->obs.ident.seq == obs->again) {
        again.outcome = run_unasked(core, now_ns, request, dropped);
        if (again.outcome == TD_SERVER_WAITING)
            again.found = TD_SERVER_FOUND_OBS;
        return again;
    }
    if (is_coming(core, c))
        return (td_server_again){.found = TD_SERVER_FOUND_COMING,
                                 .outcome = TD_SERVER_SUPERSEDED};
    again.outcome = run_decode(core, now_ns, request, dropped);
    bool found = again.outcome == TD_SERVER_WAITING;
    if (found) again.found = TD_SERVER_FOUND_PREFIX;
    core->counts.prefix_hits += found;
    core->counts.again_misses += !found;
    return again;
}

td_server_again td_server_core_again(td_server_core *core, int64_t now_ns,
                                     td_server_request *request,
                                     td_server_core_dropped *ret_dropped)
{
    td_server_again again = {0};
    const td_wire_ident asker = request->obs.ident;
    *ret_dropped = (td_server_core_dropped){0};
    again.outcome = td_server_core_arrive(core, request->client, now_ns, &asker,
                                          ret_dropped);
    if (again.outcome == TD_SERVER_WAITING)
        again = find(core, now_ns, request, ret_dropped);
    if (again.found != TD_SERVER_FOUND_NOTHING)
        td_server_core_remember(request->client, asker.seq);
    core->counts.received++;
    core->counts.outcomes[again.outcome]++;
    return again;
}

void td_server_core_keep(td_server_request *request,
                         td_server_core_dropped *ret_dropped)
{
    client *c = request->client;
    uint64_t seq = request->obs.ident.seq;
    *ret_dropped = (td_server_core_dropped){0};
    if (!td_server_core_is_present(request) ||
        (c->chunk && c->chunk->obs.ident.seq > seq)) {
        td_server_core_drop(ret_dropped, request);
        return;
    }
    td_server_core_drop(ret_dropped, c->chunk);
    c->chunk = request;
}

bool td_server_core_keeps_prefixes(const td_server_core *core)
{
    return core->prefixes != NULL;
}

td_engine_prefix *td_server_core_evict(td_server_core *core, int64_t now_ns,
                                       size_t bytes)
{
    return td_sched_prefixes_evict(core->prefixes, now_ns, bytes);
}

td_engine_prefix *td_server_core_keep_prefix(td_server_core *core,
                                             int64_t now_ns,
                                             const td_server_request *request,
                                             td_engine_prefix *prefix,
                                             size_t bytes)
{
    const client *c = request->client;
    if (!td_server_core_is_present(request)) return prefix;
    const td_sched_prefix_ident ident = prefix_ident(c, request->obs.ident.seq);
    void *replaced = NULL;
    if (td_sched_prefixes_keep(core->prefixes, c->number, now_ns, &ident,
                               prefix, bytes, &replaced) != TD_OK)
        return prefix;
    return replaced;
}

td_engine_prefix *td_server_core_release(td_server_core *core, const client *c,
                                         int64_t now_ns)
{
    return td_sched_prefixes_release(core->prefixes, c->number, now_ns);
}

// One in use comes out when it is released.
void td_server_core_lost_prefix(td_server_core *core, const client *c,
                                bool in_use)
{
    core->counts.prefix_lost++;
    if (in_use) (void)td_sched_prefixes_reset(core->prefixes, c->number);
}

td_engine_prefix *td_server_core_forget(td_server_core *core)
{
    td_engine_prefix *prefix = NULL;
    uint32_t count = core->prefixes ? core->settings.capacity : 0;
    for (uint32_t i = 0; i < count && !prefix; i++)
        prefix = td_sched_prefixes_reset(core->prefixes, i);
    return prefix;
}
