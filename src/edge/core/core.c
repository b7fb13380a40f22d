// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "edge/core/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *td_edge_stray_name(td_edge_stray stray)
{
    static const char *const names[] = {
#define TD_EDGE_STRAY_NAME(name, text) text,
        TD_EDGE_STRAYS(TD_EDGE_STRAY_NAME)
#undef TD_EDGE_STRAY_NAME
    };
    return names[stray];
}

const char *td_edge_skip_name(td_edge_skip skip)
{
    static const char *const names[] = {
#define TD_EDGE_SKIP_NAME(name, text) text,
        TD_EDGE_SKIPS(TD_EDGE_SKIP_NAME)
#undef TD_EDGE_SKIP_NAME
    };
    return names[skip];
}

void td_edge_core_settings_plain(uint32_t channels, int64_t period_ns,
                                 td_edge_core_settings *ret_settings)
{
    *ret_settings = (td_edge_core_settings){
        .channels = channels,
        .period_ns = period_ns,
        .substeps = 1,
        .max_limit_hits = UINT32_MAX,
        .actions_per_chunk = UINT32_MAX,
        .ask =
            {
                .threshold = 0.5,
                .starve_target = 0.001,
                .max_unanswered = 1,
                .resend_min_ns = 100 * TD_NS_PER_MS,
                .resend_max_ns = 3 * TD_NS_PER_S,
            },
        .priority = 1,
        .max_action_age_ns = 3 * TD_NS_PER_S,
        .warn_after_empty_ticks = 10,
        .boot = 1,
        .episode = 1,
    };
    for (uint32_t i = 0; i < channels; i++)
        ret_settings->limits[i] = (td_edge_gate_channel){
            .min = -INFINITY,
            .max = INFINITY,
            .max_step = INFINITY,
            .max_accel_step = INFINITY,
        };
}

static td_err check(const td_edge_core_settings *settings, td_errinfo *info)
{
    if (settings->channels == 0 || settings->channels > TD_WIRE_MAX_CHANNELS)
        return td_fail(info, TD_ERR_INVALID, "channels: must be 1 to %d",
                       TD_WIRE_MAX_CHANNELS);
    if (settings->substeps == 0 || settings->period_ns < settings->substeps)
        return td_fail(info, TD_ERR_INVALID,
                       "period: must be a nanosecond a substep or more");
    if (settings->actions_per_chunk == 0)
        return td_fail(info, TD_ERR_INVALID,
                       "actions_per_chunk: must be above 0");
    if (settings->aggregate == TD_EDGE_CUSTOM &&
        !settings->blend == !settings->blend_all)
        return td_fail(info, TD_ERR_INVALID, "aggregate: needs its function");
    return TD_OK;
}

static td_err init_tick(td_edge_core *core, td_errinfo *info)
{
    const td_edge_core_settings *settings = &core->settings;
    td_edge_core_tick_state *tick = &core->tick;
    tick->substep = settings->substeps;
    TD_TRY(td_edge_gate_init(&tick->gate, settings->limits, settings->channels,
                             info));
    TD_TRY(td_edge_failsafe_init(&tick->failsafe, settings->failsafe,
                                 &tick->gate, info));
    if (td_edge_ask_init(&tick->ask, &settings->ask, settings->start_ns) !=
            TD_OK ||
        td_edge_rate_set(&tick->ask.rate, settings->rate_hz,
                         settings->rate_phase, settings->start_ns) != TD_OK)
        return td_fail(info, TD_ERR_INVALID,
                       "when to ask: a threshold, time, target, limit or rate "
                       "is out of its range");
    return TD_OK;
}

static td_err init(td_edge_core *core, const td_edge_core_settings *settings,
                   td_errinfo *info)
{
    core->settings = *settings;
    core->settings.ask.period_ns = settings->period_ns;
    for (uint32_t i = 0; i < settings->channels; i++)
        core->settings.limits[i].kind = settings->kinds[i];
    core->blend = (td_edge_blend){
        .aggregate = settings->aggregate,
        .channels = settings->channels,
        .kinds = core->settings.kinds,
        .fn = settings->blend,
        .all = settings->blend_all,
        .user = settings->blend_user,
    };
    TD_TRY(init_tick(core, info));
    core->merge.chunk_rows = settings->actions_per_chunk;
    core->episode = settings->episode;
    td_edge_latency_init(&core->merge.waits);
    td_edge_latency_init(&core->merge.trips);
    td_edge_core_advise(core);
    return TD_OK;
}

td_err td_edge_core_new(const td_edge_core_settings *settings,
                        td_edge_core **ret_core, td_errinfo *info)
{
    TD_TRY(check(settings, info));
    td_edge_core *core = td_cacheline_calloc(1, sizeof *core);
    if (!core) return TD_ERR_NOMEM;
    td_err err = init(core, settings, info);
    if (err != TD_OK) {
        free(core);
        return err;
    }
    *ret_core = core;
    return TD_OK;
}

void td_edge_core_free(td_edge_core *core)
{
    td_edge_timeline_free_list(core->merge.retired);
    free(core->merge.current);
    free(core);
}

uint64_t td_edge_core_cursor(const td_edge_core *core)
{
    return atomic_load_explicit(&core->tick.cursor, memory_order_acquire);
}

uint64_t td_edge_core_episode(const td_edge_core *core)
{
    return atomic_load_explicit(&core->episode, memory_order_acquire);
}

static void read_all(const _Atomic uint64_t *from, uint64_t *ret, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ret[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
}

void td_edge_core_counts(const td_edge_core *core, td_edge_counts *ret_counts)
{
    const td_edge_core_tick_state *tick = &core->tick;
    const td_edge_core_merge_state *merge = &core->merge;
    *ret_counts = (td_edge_counts){
        .ticks = atomic_load_explicit(&tick->ticks, memory_order_relaxed),
        .fresh = atomic_load_explicit(&tick->fresh, memory_order_relaxed),
        .starved = atomic_load_explicit(&tick->starved, memory_order_relaxed),
        .warnings = atomic_load_explicit(&tick->warnings, memory_order_relaxed),
        .warned = atomic_load_explicit(&tick->warned, memory_order_relaxed),
        .asked = atomic_load_explicit(&tick->asked, memory_order_relaxed),
        .asked_again =
            atomic_load_explicit(&tick->asked_again, memory_order_relaxed),
        .left = atomic_load_explicit(&tick->left, memory_order_relaxed),
        .blends_refused = merge->blends_refused,
        .aggregate_late = merge->aggregate_late,
        .aggregate_failed = merge->aggregate_failed,
        .sent = merge->inflight.sent,
    };
    read_all(tick->failsafes, ret_counts->failsafes,
             TD_EDGE_FAILSAFE_REASON_COUNT);
    read_all(tick->limited, ret_counts->limited, TD_EDGE_GATE_LIMIT_COUNT);
    memcpy(ret_counts->outcomes, merge->inflight.outcomes,
           sizeof ret_counts->outcomes);
    memcpy(ret_counts->skipped, merge->skipped, sizeof ret_counts->skipped);
    memcpy(ret_counts->strays, merge->strays, sizeof ret_counts->strays);
}
