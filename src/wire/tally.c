// SPDX-License-Identifier: Apache-2.0
#include "wire/tally.h"

#include <assert.h>

void td_wire_tally_counter(td_wire_metrics *metrics, const char *name,
                           uint64_t value)
{
    assert(metrics->counter_count < TD_WIRE_MAX_METRICS);
    metrics->counters[metrics->counter_count++] =
        (td_wire_counter){td_wire_text_of(name), value};
}

void td_wire_tally_gauge(td_wire_metrics *metrics, const char *name,
                         double value)
{
    assert(metrics->gauge_count < TD_WIRE_MAX_METRICS);
    metrics->gauges[metrics->gauge_count++] =
        (td_wire_gauge){td_wire_text_of(name), value};
}

void td_wire_tally_quantiles(td_wire_metrics *metrics,
                             const td_wire_quantiles *quantiles)
{
    assert(metrics->quantiles_count < TD_WIRE_MAX_METRICS);
    metrics->quantiles[metrics->quantiles_count++] = *quantiles;
}

static double quantile_ms(const td_hist *hist_ns, double quantile)
{
    return (double)td_hist_quantile(hist_ns, quantile) / 1e6;
}

void td_wire_tally_hist(td_wire_metrics *metrics, const char *name,
                        const td_hist *hist_ns)
{
    const td_wire_quantiles quantiles = {
        .name = td_wire_text_of(name),
        .count = td_hist_count(hist_ns),
        .min = (double)td_hist_min(hist_ns) / 1e6,
        .max = (double)td_hist_max(hist_ns) / 1e6,
        .mean = td_hist_mean(hist_ns) / 1e6,
        .p50 = quantile_ms(hist_ns, 0.5),
        .p95 = quantile_ms(hist_ns, 0.95),
        .p99 = quantile_ms(hist_ns, 0.99),
        .p999 = quantile_ms(hist_ns, 0.999),
    };
    td_wire_tally_quantiles(metrics, &quantiles);
}
