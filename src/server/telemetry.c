// SPDX-License-Identifier: Apache-2.0
#include "server/shell.h"
#include "wire/tally.h"

#include <stdlib.h>

static void fill(td_server *server, int64_t now_ns, td_wire_metrics *metrics)
{
    td_server_report report;
    td_server_report_get(server, &report);
    metrics->source = td_wire_text_of(server->id);
    metrics->uptime_us = (now_ns - server->opened_ns) / TD_NS_PER_US;
    metrics->state = td_wire_text_of("SERVING");
    td_wire_tally_counter(metrics, "received", report.counts.received);
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++)
        td_wire_tally_counter(metrics,
                              td_server_outcome_name((td_server_outcome)i),
                              report.counts.outcomes[i]);
#define TD_SERVER_COUNTER_PUT(name, text)                                      \
    td_wire_tally_counter(metrics, text, report.counts.name);
    TD_SERVER_COUNTERS(TD_SERVER_COUNTER_PUT)
#undef TD_SERVER_COUNTER_PUT
    td_wire_tally_counter(metrics, "events_dropped", report.events_dropped);
    td_wire_tally_counter(metrics, "puts_failed", report.puts_failed);
    td_wire_tally_counter(metrics, "bad_resets", server->bad_resets);
    td_wire_tally_counter(metrics, "bad_queries", server->bad_queries);
    td_wire_tally_counter(metrics, "bad_tokens", server->bad_tokens);
    td_wire_tally_gauge(metrics, "clients", report.clients);
    td_wire_tally_hist(metrics, "queue_ms", &server->queue_ns);
    td_wire_tally_hist(metrics, "inference_ms", &server->service_ns);
}

void td_server_telemetry_put(td_server *server, int64_t now_ns)
{
    td_wire_metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics) return;
    fill(server, now_ns, metrics);
    td_err err = td_wire_metrics_encode(server->encoder, metrics, NULL);
    free(metrics);
    if (err == TD_OK) {
        size_t count;
        const td_slice *parts = td_wire_encoder_parts(server->encoder, &count);
        err = td_net_put(server->metrics, parts, count, NULL, NULL);
    }
    if (err != TD_OK) atomic_fetch_add(&server->puts_failed, 1);
}
