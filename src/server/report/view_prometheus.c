// SPDX-License-Identifier: Apache-2.0
#include "server/report/view.h"

// All samples of a name follow each other: a metric is written for every server
// before the next one is.

#define MAX_LABELS 6

// The labels of a sample: server and model, then up to two more.
struct labels {
    td_prom_label list[MAX_LABELS];
};

static struct labels labels_of(const td_server_view *view, const char *name,
                               const char *value, const char *second,
                               const char *second_value)
{
    return (struct labels){{{"server", view->about.server},
                            {"model", view->about.model},
                            {name, value},
                            {second, second_value},
                            {0}}};
}

static double scale_of(td_server_unit unit)
{
    return unit == TD_SERVER_TIME ? 1e-6 : 1;
}

static void write_totals(td_prom *prom, const td_server_metric *row,
                         const struct labels *labels,
                         const td_server_totals *totals)
{
    double scale = scale_of(row->unit);
    double scaled[TD_SERVER_STATS_BOUNDS];
    size_t count;
    const uint64_t *bounds = td_server_stats_bounds(row->unit, &count);
    for (size_t i = 0; i < count; i++)
        scaled[i] = (double)bounds[i] * scale;
    const td_prom_buckets buckets = {scaled, totals->counts, count,
                                     (double)totals->sum * scale};
    td_prom_histogram_of(prom, row->prom, row->help, labels->list, &buckets);
}

static void write_spread(td_prom *prom, const td_server_view *view, int id)
{
    const td_server_metric *row = &td_server_spread_rows[id];
    if (row->by == TD_SERVER_BY_MODEL) {
        struct labels labels = labels_of(view, NULL, NULL, NULL, NULL);
        write_totals(prom, row, &labels, &view->numbers.totals[id]);
        return;
    }
    for (uint32_t i = 0; i < view->client_count; i++) {
        const td_server_client_numbers *client = &view->clients[i];
        struct labels labels =
            labels_of(view, "client", client->id, NULL, NULL);
        write_totals(prom, row, &labels, &client->numbers.totals[id]);
    }
}

static void write_count(td_prom *prom, const td_server_metric *row,
                        struct labels labels, uint64_t value)
{
    if (row->unit == TD_SERVER_TIME)
        td_prom_counter_of(prom, row->prom, row->help, labels.list,
                           (double)value * scale_of(row->unit));
    else
        td_prom_counter(prom, row->prom, row->help, labels.list, value);
}

static void write_errors(td_prom *prom, const td_server_metric *row,
                         const td_server_view *view,
                         const td_server_client_numbers *client)
{
    for (int i = 0; i < TD_ERR_COUNT; i++)
        if (client->numbers.errors[i] > 0)
            write_count(prom, row,
                        labels_of(view, "client", client->id, "error",
                                  td_err_name((td_err)i)),
                        client->numbers.errors[i]);
}

static void write_of_clients(td_prom *prom, const td_server_metric *row,
                             const td_server_view *view, int id)
{
    for (uint32_t i = 0; i < view->client_count; i++) {
        const td_server_client_numbers *client = &view->clients[i];
        if (row->by == TD_SERVER_BY_ERROR)
            write_errors(prom, row, view, client);
        else
            write_count(prom, row,
                        labels_of(view, "client", client->id, NULL, NULL),
                        client->numbers.counters[id]);
    }
}

static void write_departed(td_prom *prom, const td_server_metric *row,
                           const td_server_view *view)
{
    for (uint32_t i = 0; i < view->departed_count; i++)
        write_count(prom, row,
                    labels_of(view, "client", view->departed[i].id, NULL, NULL),
                    view->departed[i].times);
}

static void write_counter(td_prom *prom, const td_server_view *view, int id)
{
    const td_server_metric *row = &td_server_counter_rows[id];
    if (row->by == TD_SERVER_BY_DEPARTED)
        write_departed(prom, row, view);
    else if (row->by == TD_SERVER_BY_MODEL)
        write_count(prom, row, labels_of(view, NULL, NULL, NULL, NULL),
                    view->numbers.counters[id]);
    else
        write_of_clients(prom, row, view, id);
}

static void write_gauge(td_prom *prom, const td_server_view *view, int id)
{
    const td_server_metric *row = &td_server_gauge_rows[id];
    struct labels labels = labels_of(view, NULL, NULL, NULL, NULL);
    td_prom_gauge(prom, row->prom, row->help, labels.list, view->gauges[id]);
}

static void write_received(td_prom *prom, const td_server_view *view, int id)
{
    (void)id;
    struct labels labels = labels_of(view, NULL, NULL, NULL, NULL);
    td_prom_counter(prom, TD_SERVER_PROM_RECEIVED, "observations that came",
                    labels.list, view->counts.received);
}

static void write_outcome(td_prom *prom, const td_server_view *view, int id)
{
    struct labels labels =
        labels_of(view, "outcome", td_server_outcome_name(id), NULL, NULL);
    uint64_t value = view->counts.outcomes[id];
    if (td_server_outcome_is_end(id))
        td_prom_counter(prom, TD_SERVER_PROM_ENDED,
                        "observations by what became of them", labels.list,
                        value);
    else
        td_prom_gauge(prom, TD_SERVER_PROM_PENDING,
                      "observations that have yet to end", labels.list,
                      (double)value);
}

static void write_state(td_prom *prom, const td_server_view *view, int id)
{
    (void)id;
    for (int i = TD_WIRE_WARMING; i <= TD_WIRE_DEGRADED; i++) {
        td_wire_server_state state = (td_wire_server_state)i;
        struct labels labels = labels_of(
            view, "state", td_wire_server_state_name(state), NULL, NULL);
        td_prom_gauge(prom, TD_SERVER_PROM_STATE,
                      "1 for its state, 0 for the others", labels.list,
                      view->state == state);
    }
}

static void write_info(td_prom *prom, const td_server_view *view, int id)
{
    (void)id;
    const td_server_about *about = &view->about;
    td_prom_gauge(prom, TD_SERVER_PROM_INFO, "1 for each model",
                  (td_prom_label[]){{"server", about->server},
                                    {"model", about->model},
                                    {"version", about->version},
                                    {"application", about->application},
                                    {"device", about->device},
                                    {0}},
                  1);
}

// A metric of all servers.
static void write_all(td_prom *prom, const td_server_view *views, size_t count,
                      int id,
                      void (*write)(td_prom *, const td_server_view *, int))
{
    for (size_t i = 0; i < count; i++)
        write(prom, &views[i], id);
}

static void write_rows(td_prom *prom, const td_server_view *views, size_t count)
{
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++) {
        const td_server_metric *row = &td_server_spread_rows[i];
        td_prom_family(prom, row->prom, row->help, TD_PROM_HISTOGRAM);
        write_all(prom, views, count, i, write_spread);
    }
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++) {
        const td_server_metric *row = &td_server_counter_rows[i];
        td_prom_family(prom, row->prom, row->help, TD_PROM_COUNTER);
        write_all(prom, views, count, i, write_counter);
    }
    for (int i = 0; i < TD_SERVER_GAUGE_COUNT; i++)
        write_all(prom, views, count, i, write_gauge);
}

void td_server_view_prometheus(const td_server_view *views, size_t count,
                               td_prom *prom)
{
    write_all(prom, views, count, 0, write_info);
    write_all(prom, views, count, 0, write_state);
    write_all(prom, views, count, 0, write_received);
    // Those that wait and run come first in the list, and those that ended
    // after them, so that each family is whole.
    for (int ends = 0; ends < 2; ends++)
        for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
            if (td_server_outcome_is_end(i) == (ends == 1))
                write_all(prom, views, count, i, write_outcome);
    write_rows(prom, views, count);
}
