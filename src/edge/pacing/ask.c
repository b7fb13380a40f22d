// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/ask.h"

static bool has_mode(const td_edge_ask_settings *settings)
{
    switch (settings->mode) {
    case TD_EDGE_ASK_THRESHOLD:
        return settings->threshold >= 0 && settings->threshold <= 1;
    case TD_EDGE_ASK_TIME:
        return settings->buffer_time_ns >= 0;
    case TD_EDGE_ASK_AUTO:
        return settings->starve_target > 0 && settings->starve_target < 1;
    }
    return false;
}

td_err td_edge_ask_check(const td_edge_ask_settings *settings)
{
    bool makes_sense = has_mode(settings) && settings->period_ns > 0 &&
                       settings->max_unanswered > 0 &&
                       settings->max_unanswered <= TD_EDGE_ASK_MAX_UNANSWERED &&
                       settings->resend_min_ns > 0 &&
                       settings->resend_max_ns >= settings->resend_min_ns;
    return makes_sense ? TD_OK : TD_ERR_INVALID;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    if (value < low) return low;
    return value < high ? value : high;
}

static uint32_t rows_in(const td_edge_ask_settings *settings, int64_t time_ns,
                        uint32_t chunk_rows)
{
    return td_edge_latency_steps(time_ns, settings->period_ns, chunk_rows);
}

static int64_t usual(const td_edge_ask_measured *measured)
{
    return td_edge_latency_quantile(measured->waits, 0.5);
}

// With m unanswered at most, a usual answer leaves the next ask n - usual / m
// rows or fewer, and an ask at more than that takes from the one after it. When
// answers take so long that the buffer always runs dry, asking at
// n * m / (m + 1) makes a robot wait least.
static uint32_t most_below(const td_edge_ask_settings *settings, uint32_t m,
                           const td_edge_ask_measured *measured)
{
    uint32_t n = measured->chunk_rows;
    uint32_t useful = n - rows_in(settings, usual(measured) / m, n);
    uint32_t dry = (uint32_t)((uint64_t)n * m / (m + 1));
    return useful > dry ? useful : dry;
}

static uint32_t auto_below(const td_edge_ask_settings *settings, uint32_t m,
                           const td_edge_ask_measured *measured)
{
    uint32_t n = measured->chunk_rows;
    if (measured->waits->size == 0) return n / 2;
    int64_t chunk_ns = n * settings->period_ns;
    int64_t hopeless_ns = m * (chunk_ns - chunk_ns / 20);
    if (td_edge_latency_mean(measured->waits) >= hopeless_ns) return 0;
    int64_t bound_ns = td_edge_latency_bound(measured->waits,
                                             settings->starve_target, chunk_ns);
    uint32_t below = rows_in(settings, bound_ns, n);
    uint32_t most = most_below(settings, m, measured);
    return below < most ? below : most;
}

static uint32_t below_rows(const td_edge_ask_settings *settings, uint32_t m,
                           const td_edge_ask_measured *measured)
{
    if (settings->mode == TD_EDGE_ASK_AUTO)
        return auto_below(settings, m, measured);
    if (settings->mode == TD_EDGE_ASK_THRESHOLD)
        return (uint32_t)(settings->threshold * measured->chunk_rows + 1e-9);
    // left x period < buffer_time
    int64_t below = (settings->buffer_time_ns - 1) / settings->period_ns;
    return (uint32_t)clamp(below, 0, UINT32_MAX);
}

// An ask brings new rows as soon as the chunk of the one before would be played
// down to below_rows.
static int64_t apart(const td_edge_ask_settings *settings, uint32_t m,
                     uint32_t below, const td_edge_ask_measured *measured)
{
    uint32_t n = measured->chunk_rows;
    int64_t rows = below < n ? n - below : 0;
    int64_t spread_ns = usual(measured) / m;
    int64_t played_ns = rows * settings->period_ns;
    return played_ns > spread_ns ? played_ns : spread_ns;
}

static int64_t resend_after(const td_edge_ask_settings *settings,
                            const td_edge_latency *trips)
{
    int64_t late_ns = trips->size > 0 ? trips->late_ns : trips->cold_ns;
    if (late_ns == 0) return settings->resend_max_ns;
    return clamp(3 * late_ns, settings->resend_min_ns, settings->resend_max_ns);
}

td_edge_ask_advice td_edge_ask_advise(const td_edge_ask_settings *settings,
                                      const td_edge_ask_measured *measured)
{
    bool serial = settings->mode == TD_EDGE_ASK_AUTO && measured->serial;
    uint32_t most = serial ? 1 : settings->max_unanswered;
    uint32_t below = below_rows(settings, most, measured);
    return (td_edge_ask_advice){
        .below_rows = below,
        .most = most,
        .apart_ns = apart(settings, most, below, measured),
        .resend_after_ns = resend_after(settings, measured->trips),
    };
}

td_err td_edge_ask_init(td_edge_ask *ask, const td_edge_ask_settings *settings,
                        int64_t now_ns)
{
    TD_TRY(td_edge_ask_check(settings));
    *ask = (td_edge_ask){.settings = *settings};
    return td_edge_rate_init(&ask->rate, 0, 0, settings->period_ns, now_ns);
}

static int64_t *asked_at(td_edge_ask *ask, uint64_t seq)
{
    return &ask->asked_ns[seq % TD_EDGE_ASK_MAX_UNANSWERED];
}

static bool *skipped_at(td_edge_ask *ask, uint64_t seq)
{
    return &ask->skipped[seq % TD_EDGE_ASK_MAX_UNANSWERED];
}

static void connect(td_edge_ask *ask, uint64_t connection)
{
    ask->connection = connection;
    ask->began = ask->settled = ask->asked;
    ask->given_up = 0;
}

static bool is_pending(const td_edge_ask *ask, uint64_t seq)
{
    return seq > ask->settled && seq <= ask->asked;
}

// What ended, was skipped or is given up is no longer unanswered.
static void settle(td_edge_ask *ask, const td_edge_ask_input *seen,
                   int64_t resend_after_ns)
{
    if (is_pending(ask, seen->ended_seq)) ask->settled = seen->ended_seq;
    if (is_pending(ask, seen->skipped_seq))
        *skipped_at(ask, seen->skipped_seq) = true;
    for (uint64_t seq = ask->settled + 1; seq <= ask->asked; seq++) {
        bool skipped = *skipped_at(ask, seq);
        if (!skipped && seen->now_ns - *asked_at(ask, seq) < resend_after_ns)
            return;
        ask->settled = seq;
        if (!skipped) ask->given_up = seq;
    }
}

static uint32_t count_unanswered(td_edge_ask *ask)
{
    uint32_t count = 0;
    for (uint64_t seq = ask->settled + 1; seq <= ask->asked; seq++)
        count += !*skipped_at(ask, seq);
    return count;
}

// Doubles from resend_min with each refusal.
static int64_t backoff(const td_edge_ask_settings *settings, uint32_t refusals)
{
    int64_t wait_ns = settings->resend_min_ns;
    while (--refusals > 0 && wait_ns < settings->resend_max_ns)
        wait_ns *= 2;
    return clamp(wait_ns, 0, settings->resend_max_ns);
}

// Half a period early: ticks are not to the nanosecond.
static bool is_time(td_edge_ask *ask, const td_edge_ask_input *seen,
                    const td_edge_ask_advice *advice)
{
    const td_edge_ask_settings *settings = &ask->settings;
    if (ask->asked == ask->began) return true;
    uint32_t unanswered = count_unanswered(ask);
    if (unanswered >= advice->most ||
        ask->asked - ask->settled >= TD_EDGE_ASK_MAX_UNANSWERED)
        return false;
    int64_t since_ns =
        seen->now_ns - *asked_at(ask, ask->asked) + settings->period_ns / 2;
    if (*skipped_at(ask, ask->asked) && since_ns < settings->period_ns)
        return false;
    return (unanswered == 0 || since_ns >= advice->apart_ns) &&
           (seen->refusals == 0 ||
            since_ns >= backoff(settings, seen->refusals));
}

// Whose answer to ask for once more: the newest's, if it was an observation.
// Who has nothing left to play does not try: what was lost may as well have
// been the observation.
static uint64_t missed(const td_edge_ask *ask, const td_edge_ask_input *seen)
{
    bool worth = ask->settings.again && seen->left > 0 &&
                 ask->given_up > seen->ended_seq &&
                 ask->given_up == ask->asked && ask->again != ask->asked;
    return worth ? ask->asked : 0;
}

td_edge_ask_decision td_edge_ask_decide(td_edge_ask *ask,
                                        const td_edge_ask_input *seen,
                                        const td_edge_ask_advice *advice)
{
    td_edge_ask_decision decision = {0};
    if (seen->connection != ask->connection) connect(ask, seen->connection);
    settle(ask, seen, advice->resend_after_ns);
    if (!seen->connection || seen->left > advice->below_rows ||
        !is_time(ask, seen, advice) ||
        !td_edge_rate_allows(&ask->rate, seen->now_ns))
        return decision;
    td_edge_rate_take(&ask->rate, seen->now_ns);
    decision.ask = true;
    decision.must_go = seen->left == 0;
    decision.resend = ask->given_up > seen->ended_seq;
    decision.again = missed(ask, seen);
    decision.seq = ++ask->asked;
    if (decision.again > 0) ask->again = decision.seq;
    *asked_at(ask, decision.seq) = seen->now_ns;
    *skipped_at(ask, decision.seq) = false;
    return decision;
}
