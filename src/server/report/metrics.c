// SPDX-License-Identifier: Apache-2.0
#include "server/report/metrics.h"

#define PREFIX "tendon_server_"

const td_server_metric td_server_spread_rows[] = {
#define SPREAD_ROW(id, by, unit, name, prom, help)                             \
    {name, PREFIX prom, help, TD_SERVER_BY_##by, TD_SERVER_##unit},
    TD_SERVER_METRIC_SPREADS(SPREAD_ROW)
#undef SPREAD_ROW
};

const td_server_metric td_server_counter_rows[] = {
#define COUNTER_ROW(id, by, unit, name, prom, help)                            \
    {name, PREFIX prom, help, TD_SERVER_BY_##by, TD_SERVER_##unit},
    TD_SERVER_METRIC_COUNTERS(COUNTER_ROW)
#undef COUNTER_ROW
#define COUNTER_ROW(field, name, help)                                         \
    {name, PREFIX name "_total", help, TD_SERVER_BY_MODEL, TD_SERVER_PIECES},
        TD_SERVER_COUNTERS(COUNTER_ROW) TD_NET_COUNTS(COUNTER_ROW)
#undef COUNTER_ROW
};

const td_server_metric td_server_gauge_rows[] = {
#define GAUGE_ROW(id, name, prom, help)                                        \
    {name, PREFIX prom, help, TD_SERVER_BY_MODEL, TD_SERVER_PIECES},
    TD_SERVER_METRIC_GAUGES(GAUGE_ROW)
#undef GAUGE_ROW
};

static void write_row(const td_server_metric *row, const char *kind, FILE *out)
{
    static const char *const labels[] = {
        [TD_SERVER_BY_MODEL] = "server, model",
        [TD_SERVER_BY_CLIENT] = "server, model, client",
        [TD_SERVER_BY_DEPARTED] = "server, model, client",
        [TD_SERVER_BY_ERROR] = "server, model, client, error",
    };
    (void)fprintf(out, "| `%s` | %s | `%s` | %s | %s |\n", row->name, kind,
                  row->prom, labels[row->by], row->help);
}

static void write_outcomes(bool ends, FILE *out)
{
    const char *before = "| ";
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++) {
        if (td_server_outcome_is_end(i) != ends) continue;
        (void)fprintf(out, "%s`%s`", before,
                      td_server_outcome_name((td_server_outcome)i));
        before = ", ";
    }
    (void)fprintf(out, " | %s | `%s` | server, model, outcome | %s |\n",
                  ends ? "counter" : "gauge",
                  ends ? TD_SERVER_PROM_ENDED : TD_SERVER_PROM_PENDING,
                  ends ? "observations by what became of them"
                       : "observations that have yet to end");
}

static void write_received(FILE *out)
{
    (void)fprintf(out,
                  "| `received` | counter | `%s` | server, model | "
                  "observations that came: the sum of the two rows below |\n",
                  TD_SERVER_PROM_RECEIVED);
}

void td_server_metrics_page(FILE *out)
{
    (void)fprintf(out,
                  "| name | what | for Prometheus | labels | what it is |\n"
                  "|---|---|---|---|---|\n");
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++)
        write_row(&td_server_spread_rows[i], "spread", out);
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++)
        write_row(&td_server_counter_rows[i], "counter", out);
    for (int i = 0; i < TD_SERVER_GAUGE_COUNT; i++)
        write_row(&td_server_gauge_rows[i], "gauge", out);
    (void)fprintf(out,
                  "| `state` | gauge | `%s` | server, model, state | 1 "
                  "for its state, 0 for the others |\n",
                  TD_SERVER_PROM_STATE);
    (void)fprintf(out,
                  "| | gauge | `%s` | server, model, version, "
                  "application, device | 1 for each model |\n",
                  TD_SERVER_PROM_INFO);
    write_received(out);
    write_outcomes(false, out);
    write_outcomes(true, out);
}
