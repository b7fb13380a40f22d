// SPDX-License-Identifier: Apache-2.0
// What is kept for a robot that missed an answer: the last chunk, and the
// prefix from which it was made. Neither outlives its boot or its episode.
#include "server/core/internal.h"

typedef td_server_core_client client;

// One version of one policy is what a core serves.
static td_sched_prefix_ident prefix_ident(uint64_t boot, uint64_t episode,
                                          uint64_t seq)
{
    return (td_sched_prefix_ident){
        .boot = boot, .episode = episode, .seq = seq};
}

static bool has_chunk(const client *c, const td_wire_obs *obs)
{
    // One that continues another chunk, or is to be another, has to be made.
    return !obs->has_rtc && !obs->anew && c->chunk.payload &&
           c->chunk.seq == obs->again;
}

static bool is_coming(const client *c)
{
    return c->waiting || (c->running && td_server_core_is_present(c));
}

// The observation that was kept waits in place of the one that asks for it.
static td_server_outcome run_unasked(td_server_core *core, uint32_t number,
                                     int64_t now_ns, const td_wire_obs *obs,
                                     td_server_core_dropped *dropped)
{
    client *c = &core->clients[number];
    const td_server_core_item item = {obs, c->unasked.seq, c->unasked_mix,
                                      c->unasked.payload};
    td_server_outcome outcome =
        td_server_core_submit(core, number, now_ns, &item, dropped);
    if (outcome != TD_SERVER_WAITING) return outcome;
    td_server_core_end_waiting(core, TD_SERVER_SUPERSEDED);
    c->unasked = (td_sched_request){0};
    return outcome;
}

static td_server_outcome run_decode(td_server_core *core, uint32_t number,
                                    int64_t now_ns, const td_wire_obs *obs,
                                    void *payload,
                                    td_engine_prefix **ret_prefix,
                                    td_server_core_dropped *dropped)
{
    const client *c = &core->clients[number];
    const td_sched_prefix_ident ident =
        prefix_ident(c->boot, c->episode, obs->again);
    const td_server_core_item item = {obs, obs->again,
                                      td_server_core_mix(obs, true), payload};
    td_engine_prefix *prefix =
        core->prefixes ? td_sched_prefixes_use(core->prefixes, number, &ident)
                       : NULL;
    if (!prefix) return TD_SERVER_REFUSED;
    td_server_outcome outcome =
        td_server_core_submit(core, number, now_ns, &item, dropped);
    if (outcome == TD_SERVER_WAITING)
        *ret_prefix = prefix;
    else
        (void)td_sched_prefixes_release(core->prefixes, number, now_ns);
    return outcome;
}

static td_server_again find(td_server_core *core, uint32_t number,
                            int64_t now_ns, const td_wire_obs *obs,
                            void *payload, td_server_core_dropped *dropped)
{
    client *c = &core->clients[number];
    td_server_again again = {.outcome = TD_SERVER_ANSWERED};
    if (has_chunk(c, obs)) {
        again.found = TD_SERVER_FOUND_CHUNK;
        again.chunk = c->chunk.payload;
        c->chunk = (td_sched_request){0};
        core->counts.kept_chunk_hits++;
        return again;
    }
    if (c->unasked.payload && c->unasked.seq == obs->again) {
        again.outcome = run_unasked(core, number, now_ns, obs, dropped);
        if (again.outcome == TD_SERVER_WAITING)
            again.found = TD_SERVER_FOUND_OBS;
        return again;
    }
    if (is_coming(c))
        return (td_server_again){.found = TD_SERVER_FOUND_COMING,
                                 .outcome = TD_SERVER_SUPERSEDED};
    again.outcome =
        run_decode(core, number, now_ns, obs, payload, &again.prefix, dropped);
    if (again.prefix) again.found = TD_SERVER_FOUND_PREFIX;
    core->counts.prefix_hits += again.prefix != NULL;
    core->counts.again_misses += again.prefix == NULL;
    return again;
}

td_server_again td_server_core_again(td_server_core *core, uint32_t number,
                                     int64_t now_ns, const td_wire_obs *obs,
                                     void *payload,
                                     td_server_core_dropped *ret_dropped)
{
    td_server_again again = {0};
    *ret_dropped = (td_server_core_dropped){0};
    again.outcome =
        td_server_core_arrive(core, number, now_ns, &obs->ident, ret_dropped);
    if (again.outcome == TD_SERVER_WAITING)
        again = find(core, number, now_ns, obs, payload, ret_dropped);
    if (again.found != TD_SERVER_FOUND_NOTHING)
        td_server_core_remember(&core->clients[number], obs->ident.seq);
    core->counts.received++;
    core->counts.outcomes[again.outcome]++;
    return again;
}

void td_server_core_keep(td_server_core *core, uint32_t number,
                         const td_wire_ident *ident, void *payload,
                         td_server_core_dropped *ret_dropped)
{
    client *c = &core->clients[number];
    td_sched_request chunk = {.payload = payload, .seq = ident->seq};
    bool present = ident->boot == c->boot && ident->episode == c->episode;
    *ret_dropped = (td_server_core_dropped){0};
    if (!present || (c->chunk.payload && c->chunk.seq > chunk.seq)) {
        td_server_core_drop(ret_dropped, chunk);
        return;
    }
    td_server_core_drop(ret_dropped, c->chunk);
    c->chunk = chunk;
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
                                             uint32_t number, int64_t now_ns,
                                             td_engine_prefix *prefix,
                                             size_t bytes)
{
    const client *c = &core->clients[number];
    if (!td_server_core_is_present(c)) return prefix;
    const td_sched_prefix_ident ident =
        prefix_ident(c->boot, c->episode, c->running_seq);
    void *replaced = NULL;
    if (td_sched_prefixes_keep(core->prefixes, number, now_ns, &ident, prefix,
                               bytes, &replaced) != TD_OK)
        return prefix;
    return replaced;
}

td_engine_prefix *td_server_core_release(td_server_core *core, uint32_t number,
                                         int64_t now_ns)
{
    return td_sched_prefixes_release(core->prefixes, number, now_ns);
}

// One in use comes out when it is released.
void td_server_core_lost_prefix(td_server_core *core, uint32_t number,
                                bool in_use)
{
    core->counts.prefix_lost++;
    if (in_use) (void)td_sched_prefixes_reset(core->prefixes, number);
}

td_engine_prefix *td_server_core_forget(td_server_core *core)
{
    td_engine_prefix *prefix = NULL;
    uint32_t count = core->prefixes ? core->settings.capacity : 0;
    for (uint32_t i = 0; i < count && !prefix; i++)
        prefix = td_sched_prefixes_reset(core->prefixes, i);
    return prefix;
}
