// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/rate.h"

#include "base/clock.h"

#define MAX_INTERVAL_NS (INT64_C(1) << 60)

static bool is_grant(double hz, double phase)
{
    return hz >= 0 && hz <= (double)TD_NS_PER_S && phase >= 0 && phase <= 1;
}

static int64_t interval_of(double hz)
{
    if (hz == 0) return 0;
    double interval_ns = (double)TD_NS_PER_S / hz;
    return interval_ns < (double)MAX_INTERVAL_NS ? (int64_t)interval_ns
                                                 : MAX_INTERVAL_NS;
}

static int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

// From `from_ns` on, at the phase.
static void begin(td_edge_rate *rate, double hz, double phase, int64_t from_ns)
{
    rate->hz = hz;
    rate->phase = phase;
    rate->interval_ns = interval_of(hz);
    rate->tat_ns = from_ns + (int64_t)(phase * (double)rate->interval_ns);
}

td_err td_edge_rate_init(td_edge_rate *rate, double hz, double phase,
                         int64_t tolerance_ns, int64_t now_ns)
{
    if (!is_grant(hz, phase) || tolerance_ns < 0) return TD_ERR_INVALID;
    *rate = (td_edge_rate){
        .tolerance_ns = tolerance_ns,
        .taken_ns = now_ns - MAX_INTERVAL_NS,
    };
    begin(rate, hz, phase, now_ns);
    return TD_OK;
}

td_err td_edge_rate_set(td_edge_rate *rate, double hz, double phase,
                        int64_t now_ns)
{
    if (!is_grant(hz, phase)) return TD_ERR_INVALID;
    if (hz == rate->hz && phase == rate->phase) return TD_OK;
    begin(rate, hz, phase, later(now_ns, rate->taken_ns + interval_of(hz)));
    return TD_OK;
}

bool td_edge_rate_allows(const td_edge_rate *rate, int64_t now_ns)
{
    return rate->interval_ns == 0 || now_ns >= rate->tat_ns;
}

void td_edge_rate_take(td_edge_rate *rate, int64_t now_ns)
{
    rate->tat_ns =
        later(rate->tat_ns, now_ns - rate->tolerance_ns) + rate->interval_ns;
    rate->taken_ns = now_ns;
}
