// SPDX-License-Identifier: Apache-2.0
// What a model reports of itself.
//
// Counts and events come from all its parts, on any thread: a count is one
// atomic in the stats, an event goes into the ring of the process, and the loop
// is woken to deliver it. What could overflow a log or the ring is said now and
// then only.
//
// A view is everything that somebody who looks is shown: the stats are read
// without waiting, what the core counts under the device's lock, which is held
// for a copy. Nothing is counted twice: what the core and the transport count
// enters a view from there.
//
// The metrics topic is the loop's: once a period it makes a view, fills one
// message and puts it. Without a period there is no topic.
#include "server/report/telemetry.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/tally.h"

#include <stdio.h>
#include <stdlib.h>

#define WINDOW_NS (60 * TD_NS_PER_S)

static const td_net_qos metrics_qos = {.priority = TD_NET_DATA_LOW};

struct td_server_telemetry {
    const td_server_context *ctx;
    int64_t period_ns;
    int64_t next_ns; // INT64_MAX: never
    td_net_pub *metrics;
    td_wire_encoder *encoder;
};

_Static_assert(1 + TD_SERVER_OUTCOME_COUNT + TD_SERVER_COUNTER_COUNT <=
                   TD_WIRE_MAX_METRICS,
               "one message holds them all");

void td_server_telemetry_count(const td_server_context *ctx,
                               td_server_counter_id counter)
{
    td_server_stats_count(ctx->stats, counter, TD_SERVER_NOBODY, 1);
}

void td_server_telemetry_bad(const td_server_context *ctx,
                             td_server_counter_id counter, const char *what,
                             const char *why)
{
    td_server_telemetry_count(ctx, counter);
    uint64_t count = td_server_stats_counter(ctx->stats, counter);
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN, "server: %s: %s (%llu so far)", what, why,
                    (unsigned long long)count);
}

void td_server_telemetry_dropped(const td_server_context *ctx)
{
    td_server_stats *stats = ctx->stats;
    td_server_telemetry_count(ctx, TD_SERVER_COUNT_EVENTS_DROPPED);
    uint64_t count =
        td_server_stats_counter(stats, TD_SERVER_COUNT_EVENTS_DROPPED);
    if (td_log_is_due(count)) // so that a flood does not fill the ring, either
        td_server_telemetry_event(ctx, TD_SERVER_EVENT_OVERFLOW, NULL,
                                  "no room for %llu messages so far",
                                  (unsigned long long)count);
}

void td_server_telemetry_event(const td_server_context *ctx,
                               td_server_event_kind kind, const char *client,
                               const char *fmt, ...)
{
    char text[TD_SERVER_EVENT_TEXT + 1];
    if (!ctx->events) return;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    td_server_events_add(ctx->events, td_clock_monotonic_ns(), kind, ctx->id,
                         client, "%s", text);
    td_event_signal(ctx->wake); // the loop delivers it
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

td_err td_server_telemetry_view(const td_server_context *ctx, int64_t now_ns,
                                int64_t window_ns, const char *client,
                                td_server_view *view)
{
    TD_TRY(td_server_view_read(view, ctx->stats, now_ns, window_ns, client));
    pthread_mutex_lock(ctx->lock);
    td_server_core_counts(ctx->core, &view->counts);
    view->state = td_server_core_state(ctx->core);
    uint32_t clients = td_server_core_clients(ctx->core);
    pthread_mutex_unlock(ctx->lock);
    td_net_counts net = td_net_counts_get(ctx->net);
    take_counts(&view->counts, &net, view->numbers.counters);
    double *gauges = view->gauges;
    gauges[TD_SERVER_GAUGE_QUEUE_DEPTH] =
        (double)view->counts.outcomes[TD_SERVER_WAITING];
    gauges[TD_SERVER_GAUGE_ACTIVE_CLIENTS] = clients;
    gauges[TD_SERVER_GAUGE_CAPACITY] = ctx->capacity;
    gauges[TD_SERVER_GAUGE_PREFIXES] = (double)view->counts.prefixes.present;
    gauges[TD_SERVER_GAUGE_PREFIX_BYTES] = (double)view->counts.prefixes.bytes;
    gauges[TD_SERVER_GAUGE_UPTIME] =
        (double)(now_ns - ctx->opened_ns) / (double)TD_NS_PER_S;
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

static void fill(const td_server_context *ctx, int64_t now_ns,
                 const td_server_view *view, td_wire_metrics *metrics)
{
    metrics->source = td_wire_text_of(ctx->id);
    metrics->boot = ctx->boot;
    metrics->uptime_us = (now_ns - ctx->opened_ns) / TD_NS_PER_US;
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

static td_err encode(const td_server_telemetry *telemetry, int64_t now_ns)
{
    const td_server_context *ctx = telemetry->ctx;
    td_server_view view = {.about = {0}};
    // Of the model alone: no client has an empty name.
    TD_TRY(td_server_telemetry_view(ctx, now_ns, WINDOW_NS, "", &view));
    td_wire_metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics) return TD_ERR_NOMEM;
    fill(ctx, now_ns, &view, metrics);
    td_err err = td_wire_metrics_encode(telemetry->encoder, metrics, NULL);
    free(metrics);
    return err;
}

static void put(const td_server_telemetry *telemetry, int64_t now_ns)
{
    td_err err = encode(telemetry, now_ns);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts =
            td_wire_encoder_parts(telemetry->encoder, &count);
        err = td_net_put(telemetry->metrics, parts, count, NULL, NULL);
    }
    if (err != TD_OK)
        td_server_telemetry_count(telemetry->ctx, TD_SERVER_COUNT_PUTS_FAILED);
}

static td_err declare(td_server_telemetry *telemetry, td_errinfo *info)
{
    const td_server_context *ctx = telemetry->ctx;
    char key[TD_WIRE_MAX_KEY];
    TD_TRY(td_wire_encoder_new(&telemetry->encoder));
    if (telemetry->period_ns <= 0) return TD_OK;
    telemetry->next_ns = ctx->opened_ns + telemetry->period_ns;
    TD_TRY(td_wire_key(&ctx->route, NULL, "metrics", key, info));
    return td_net_publish(ctx->net, key, &metrics_qos, &telemetry->metrics,
                          info);
}

td_err td_server_telemetry_open(const td_server_context *ctx, int64_t period_ns,
                                td_server_telemetry **ret_telemetry,
                                td_errinfo *info)
{
    td_server_telemetry *telemetry = calloc(1, sizeof *telemetry);
    if (!telemetry) return TD_ERR_NOMEM;
    telemetry->ctx = ctx;
    telemetry->period_ns = period_ns;
    telemetry->next_ns = INT64_MAX;
    td_err err = declare(telemetry, info);
    if (err != TD_OK) {
        td_server_telemetry_close(telemetry);
        return err;
    }
    *ret_telemetry = telemetry;
    return TD_OK;
}

void td_server_telemetry_close(td_server_telemetry *telemetry)
{
    if (telemetry->metrics) td_net_unpublish(telemetry->metrics);
    if (telemetry->encoder) td_wire_encoder_free(telemetry->encoder);
    free(telemetry);
}

int64_t td_server_telemetry_look(td_server_telemetry *telemetry, int64_t now_ns)
{
    if (now_ns < telemetry->next_ns) return telemetry->next_ns;
    put(telemetry, now_ns);
    telemetry->next_ns = now_ns + telemetry->period_ns;
    return telemetry->next_ns;
}
