// SPDX-License-Identifier: Apache-2.0
// What the server tells of itself: to whoever looks (td_server_model_view), and
// on its metrics key.
#include "base/log.h"
#include "server/shell.h"
#include "wire/tally.h"

#include <stdio.h>
#include <stdlib.h>

#define WINDOW_NS (60 * TD_NS_PER_S)

_Static_assert(1 + TD_SERVER_OUTCOME_COUNT + TD_SERVER_COUNTER_COUNT <=
                   TD_WIRE_MAX_METRICS,
               "one message holds them all");

void td_server_telemetry_count(td_server_model *server,
                               td_server_counter_id counter)
{
    td_server_stats_count(server->stats, counter, TD_SERVER_NOBODY, 1);
}

void td_server_telemetry_bad(td_server_model *server,
                             td_server_counter_id counter, const char *what,
                             const char *why)
{
    td_server_telemetry_count(server, counter);
    uint64_t count = td_server_stats_counter(server->stats, counter);
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN, "server: %s: %s (%llu so far)", what, why,
                    (unsigned long long)count);
}

void td_server_telemetry_dropped(td_server_model *server)
{
    td_server_stats *stats = server->stats;
    td_server_telemetry_count(server, TD_SERVER_COUNT_EVENTS_DROPPED);
    uint64_t count =
        td_server_stats_counter(stats, TD_SERVER_COUNT_EVENTS_DROPPED);
    if (td_log_is_due(count)) // so that a flood does not fill the ring, either
        td_server_telemetry_event(server, TD_SERVER_EVENT_OVERFLOW, NULL,
                                  "no room for %llu messages so far",
                                  (unsigned long long)count);
}

void td_server_telemetry_event(td_server_model *server,
                               td_server_event_kind kind, const char *client,
                               const char *fmt, ...)
{
    char text[TD_SERVER_EVENT_TEXT + 1];
    if (!server->events) return;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    td_server_events_add(server->events, td_clock_now_ns(&td_clock_monotonic),
                         kind, server->id, client, "%s", text);
    td_event_signal(&server->wake); // the loop delivers it
}

const td_server_stats *td_server_model_stats(const td_server_model *server)
{
    return server->stats;
}

int64_t td_server_model_looped_ns(const td_server_model *server)
{
    return atomic_load_explicit(&server->turned_ns, memory_order_relaxed);
}

// What the core and the transport count is not counted again.
static void take_counts(const td_server_counts *counts,
                        const td_net_counts *net, uint64_t *counters){
#define TAKE(field, name, help)                                                \
    counters[TD_SERVER_COUNT_OF_##field] = counts->field;
    TD_SERVER_COUNTERS(TAKE)
#undef TAKE
#define TAKE(field, name, help)                                                \
    counters[TD_SERVER_COUNT_NET_##field] = net->field;
        TD_NET_COUNTS(TAKE)
#undef TAKE
}

td_err td_server_model_view(td_server_model *server, int64_t now_ns,
                            int64_t window_ns, const char *client,
                            td_server_view *view)
{
    TD_TRY(td_server_view_read(view, server->stats, now_ns, window_ns, client));
    pthread_mutex_lock(&server->device->lock);
    td_server_core_counts(server->core, &view->counts);
    view->state = td_server_core_state(server->core);
    uint32_t clients = td_server_core_clients(server->core);
    pthread_mutex_unlock(&server->device->lock);
    td_net_counts net = td_net_counts_get(server->net);
    take_counts(&view->counts, &net, view->numbers.counters);
    double *gauges = view->gauges;
    gauges[TD_SERVER_GAUGE_QUEUE_DEPTH] =
        (double)view->counts.outcomes[TD_SERVER_WAITING];
    gauges[TD_SERVER_GAUGE_ACTIVE_CLIENTS] = clients;
    gauges[TD_SERVER_GAUGE_CAPACITY] = server->capacity;
    gauges[TD_SERVER_GAUGE_PREFIXES] = (double)view->counts.prefixes.present;
    gauges[TD_SERVER_GAUGE_PREFIX_BYTES] = (double)view->counts.prefixes.bytes;
    gauges[TD_SERVER_GAUGE_UPTIME] =
        (double)(now_ns - server->opened_ns) / (double)TD_NS_PER_S;
    return TD_OK;
}

static void add_spread(td_wire_metrics *metrics, const td_server_metric *row,
                       const td_server_stats_spread *spread)
{
    double scale = row->unit == TD_SERVER_TIME ? 1e-3 : 1;
    td_wire_tally_quantiles(metrics, &(td_wire_quantiles){
                                         .name = td_wire_text_of(row->name),
                                         .count = spread->count,
                                         .min = spread->min * scale,
                                         .max = spread->max * scale,
                                         .mean = spread->mean * scale,
                                         .p50 = spread->p50 * scale,
                                         .p95 = spread->p95 * scale,
                                         .p99 = spread->p99 * scale,
                                         .p999 = spread->p999 * scale,
                                     });
}

static void fill(const td_server_model *server, int64_t now_ns,
                 const td_server_view *view, td_wire_metrics *metrics)
{
    metrics->source = td_wire_text_of(server->id);
    metrics->boot = server->boot;
    metrics->uptime_us = (now_ns - server->opened_ns) / TD_NS_PER_US;
    metrics->state = td_wire_text_of(td_wire_server_state_name(view->state));
    td_wire_tally_counter(metrics, "received", view->counts.received);
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
        td_wire_tally_counter(metrics,
                              td_server_outcome_name((td_server_outcome)i),
                              view->counts.outcomes[i]);
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++)
        td_wire_tally_counter(metrics, td_server_counter_rows[i].name,
                              view->numbers.counters[i]);
    for (int i = 0; i < TD_SERVER_GAUGE_COUNT; i++)
        td_wire_tally_gauge(metrics, td_server_gauge_rows[i].name,
                            view->gauges[i]);
    for (int i = 0; i < TD_SERVER_SPREAD_COUNT; i++)
        add_spread(metrics, &td_server_spread_rows[i],
                   &view->numbers.spreads[i]);
}

static td_err encode(td_server_model *server, int64_t now_ns)
{
    td_server_view view = {.about = {0}};
    // Of the model alone: no client has an empty name.
    TD_TRY(td_server_model_view(server, now_ns, WINDOW_NS, "", &view));
    td_wire_metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics) return TD_ERR_NOMEM;
    fill(server, now_ns, &view, metrics);
    td_err err = td_wire_metrics_encode(server->encoder, metrics, NULL);
    free(metrics);
    return err;
}

void td_server_telemetry_put(td_server_model *server, int64_t now_ns)
{
    td_err err = encode(server, now_ns);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(server->encoder, &count);
        err = td_net_put(server->metrics, parts, count, NULL, NULL);
    }
    if (err != TD_OK)
        td_server_telemetry_count(server, TD_SERVER_COUNT_PUTS_FAILED);
}
