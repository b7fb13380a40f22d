// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "server/report/view.h"

static double seconds_of(int64_t ns)
{
    return (double)ns / (double)TD_NS_PER_S;
}

// Times are recorded in microseconds, and named by milliseconds.
static void write_spread(td_json *json, const td_server_metric *row,
                         const td_server_stats_spread *spread)
{
    double scale = row->unit == TD_SERVER_TIME ? 1e-3 : 1;
    td_json_object(json, row->name);
    td_json_whole(json, "count", spread->count);
    td_json_number(json, "mean", spread->mean * scale);
    td_json_number(json, "min", spread->min * scale);
    td_json_number(json, "p50", spread->p50 * scale);
    td_json_number(json, "p95", spread->p95 * scale);
    td_json_number(json, "p99", spread->p99 * scale);
    td_json_number(json, "max", spread->max * scale);
    td_json_end_object(json);
}

static bool is_of_clients(const td_server_metric *row)
{
    return row->by == TD_SERVER_BY_CLIENT || row->by == TD_SERVER_BY_ERROR;
}

static void write_errors(td_json *json, const td_server_numbers *numbers)
{
    td_json_object(json, "errors");
    for (int i = 0; i < TD_ERR_COUNT; i++)
        if (numbers->errors[i] > 0)
            td_json_whole(json, td_err_name((td_err)i), numbers->errors[i]);
    td_json_end_object(json);
}

// `all`: those of the model, too.
static void write_numbers(td_json *json, const td_server_numbers *numbers,
                          bool all)
{
    td_json_object(json, "counters");
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++)
        if (all || is_of_clients(&td_server_counter_rows[i]))
            td_json_whole(json, td_server_counter_rows[i].name,
                          numbers->counters[i]);
    td_json_end_object(json);
    write_errors(json, numbers);
    td_json_object(json, "windows");
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++)
        if (all || is_of_clients(&td_server_spread_rows[i]))
            write_spread(json, &td_server_spread_rows[i], &numbers->spreads[i]);
    td_json_end_object(json);
}

static void write_requests(td_json *json, const td_server_counts *counts)
{
    td_json_whole(json, "received", counts->received);
    td_json_object(json, "outcomes");
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
        td_json_whole(json, td_server_outcome_name((td_server_outcome)i),
                      counts->outcomes[i]);
    td_json_end_object(json);
}

static void write_about(td_json *json, const td_server_view *view)
{
    td_json_text(json, "server", view->about.server);
    td_json_text(json, "model", view->about.model);
    td_json_text(json, "version", view->about.version);
    td_json_text(json, "application", view->about.application);
    td_json_text(json, "device", view->about.device);
    td_json_text(json, "state", td_wire_server_state_name(view->state));
}

static void write_clients(td_json *json, const td_server_view *view,
                          int64_t now_ns)
{
    td_json_array(json, "clients");
    for (uint32_t i = 0; i < view->client_count; i++) {
        const td_server_client_numbers *client = &view->clients[i];
        td_json_object(json, NULL);
        td_json_text(json, "client", client->id);
        td_json_number(json, "attached_s",
                       seconds_of(now_ns - client->since_ns));
        write_numbers(json, &client->numbers, false);
        td_json_end_object(json);
    }
    td_json_end_array(json);
}

static void write_departed(td_json *json, const td_server_view *view)
{
    td_json_object(json, "departed");
    for (uint32_t i = 0; i < view->departed_count; i++)
        td_json_whole(json, view->departed[i].id, view->departed[i].times);
    td_json_end_object(json);
}

void td_server_view_json(const td_server_view *view, int64_t now_ns,
                         td_json *json)
{
    td_json_object(json, NULL);
    write_about(json, view);
    write_requests(json, &view->counts);
    td_json_object(json, "gauges");
    for (int i = 0; i < TD_SERVER_GAUGE_COUNT; i++)
        td_json_number(json, td_server_gauge_rows[i].name, view->gauges[i]);
    td_json_end_object(json);
    write_numbers(json, &view->numbers, true);
    write_clients(json, view, now_ns);
    write_departed(json, view);
    td_json_end_object(json);
}
