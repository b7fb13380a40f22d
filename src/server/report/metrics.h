// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_METRICS_H
#define TD_SERVER_REPORT_METRICS_H

// Every number that a server shows of itself, in one table. It makes what is
// recorded (server/report/stats.h), the names for Prometheus, in /v1/stats and
// on Zenoh, and docs/metrics.md.
//
// To add one: a row here, and the line that records it.

#include "net/net.h"
#include "server/core/core.h"

#include <stdio.h>

// What a spread's values are. Times are recorded in microseconds, shown in
// milliseconds and given to Prometheus in seconds.
typedef enum td_server_unit {
    TD_SERVER_TIME,
    TD_SERVER_BYTES,
    TD_SERVER_PIECES,
} td_server_unit;

// By what it is told apart, beside server and model.
typedef enum td_server_by {
    TD_SERVER_BY_MODEL,    // by nothing else
    TD_SERVER_BY_CLIENT,   // of those attached
    TD_SERVER_BY_DEPARTED, // the last clients that left
    TD_SERVER_BY_ERROR,    // of those attached, and by the error's name
} td_server_by;

// Percentiles over a window, and a histogram for Prometheus:
// (id, by, unit, name, name for Prometheus, help)
#define TD_SERVER_METRIC_SPREADS(X)                                            \
    X(INFERENCE, CLIENT, TIME, "inference_latency_ms",                         \
      "inference_latency_seconds", "what the model took for the batch")        \
    X(WAIT, CLIENT, TIME, "scheduling_wait_ms", "scheduling_wait_seconds",     \
      "from an observation's arrival to the start of its batch")               \
    X(E2E, CLIENT, TIME, "e2e_latency_ms", "e2e_latency_seconds",              \
      "from an observation's arrival to its answer's leaving")                 \
    X(STALENESS, CLIENT, TIME, "observation_staleness_ms",                     \
      "observation_staleness_seconds",                                         \
      "age on arrival of the oldest value that says its age")                  \
    X(PAYLOAD, CLIENT, BYTES, "payload_size_bytes", "payload_size_bytes",      \
      "bytes of an observation")                                               \
    X(BATCH, MODEL, PIECES, "batch_size", "batch_size",                        \
      "observations in a batch")                                               \
    X(DEPTH, MODEL, PIECES, "dispatch_depth", "dispatch_depth",                \
      "observations waiting when a batch is formed, with those it takes")      \
    X(SCORE, MODEL, TIME, "score_ms", "score_seconds",                         \
      "what a score function of your own took for a batch, all calls "         \
      "together")

// Since the start: (id, by, unit, name, name for Prometheus, help)
#define TD_SERVER_METRIC_COUNTERS(X)                                           \
    X(QUEUE_FULL_DROPS, CLIENT, PIECES, "queue_full_drops",                    \
      "queue_full_drops_total",                                                \
      "requests dropped or refused because the queue was full")                \
    X(DISPATCH_ERRORS, ERROR, PIECES, "dispatch_errors",                       \
      "dispatch_errors_total", "requests that the engine failed for good")     \
    X(DISPATCH_RETRIES, CLIENT, PIECES, "dispatch_retries",                    \
      "dispatch_retries_total", "times that a request was run again")          \
    X(SEND_ERRORS, CLIENT, PIECES, "send_errors", "send_errors_total",         \
      "answers that could not be sent")                                        \
    X(REQUESTS_EXPIRED, MODEL, PIECES, "requests_expired",                     \
      "requests_expired_total",                                                \
      "requests that waited longer than their time to live")                   \
    X(OBSERVATION_ERRORS, MODEL, PIECES, "observation_errors",                 \
      "observation_errors_total",                                              \
      "observations that are malformed, do not fit the model or are too old")  \
    X(CLIENT_DISCONNECTED, DEPARTED, PIECES, "client_disconnected",            \
      "client_disconnected_total", "times that a client left or fell silent")  \
    X(DEVICE_US, CLIENT, TIME, "device_us", "device_seconds_total",            \
      "device time spent for a client, its part of each batch")                \
    X(BATCHES, MODEL, PIECES, "batches", "batches_total",                      \
      "batches that ended")                                                    \
    X(PREFIXES_MADE, MODEL, PIECES, "prefixes_made", "prefixes_made_total",    \
      "observations whose first half the model ran by itself")                 \
    X(CHUNKS_DECODED, MODEL, PIECES, "chunks_decoded", "chunks_decoded_total", \
      "chunks that it made from such a prefix")                                \
    X(PUTS_FAILED, MODEL, PIECES, "puts_failed", "puts_failed_total",          \
      "messages of any kind that could not be sent")                           \
    X(EVENTS_DROPPED, MODEL, PIECES, "events_dropped", "events_dropped_total", \
      "queries, tokens and messages for which there was no room")              \
    X(BAD_RESETS, MODEL, PIECES, "bad_resets", "bad_resets_total",             \
      "reset messages that were refused")                                      \
    X(RESETS_UNREAD, MODEL, PIECES, "resets_unread", "resets_unread_total",    \
      "reset messages that a newer one displaced, or whose client was gone")   \
    X(BAD_QUERIES, MODEL, PIECES, "bad_queries", "bad_queries_total",          \
      "attach queries that could not be read")                                 \
    X(BAD_TOKENS, MODEL, PIECES, "bad_tokens", "bad_tokens_total",             \
      "liveliness tokens that could not be read")                              \
    X(SCORE_CALLS, MODEL, PIECES, "score_calls", "score_calls_total",          \
      "times that a score function of your own was asked")                     \
    X(SCORE_NOT_FINITE, MODEL, PIECES, "score_not_finite",                     \
      "score_not_finite_total",                                                \
      "times that it gave no finite number, and the request went last")

// As it is now: (id, name, name for Prometheus, help)
#define TD_SERVER_METRIC_GAUGES(X)                                             \
    X(QUEUE_DEPTH, "queue_depth", "queue_depth", "observations that wait")     \
    X(ACTIVE_CLIENTS, "active_clients", "active_clients", "clients attached")  \
    X(CAPACITY, "capacity", "capacity", "clients that it takes at a time")     \
    X(PREFIXES, "prefixes", "prefixes", "prefixes kept")                       \
    X(PREFIX_BYTES, "prefix_bytes", "prefix_bytes", "that they take")          \
    X(UPTIME, "uptime_s", "uptime_seconds", "since it was opened")

typedef enum td_server_spread_id {
#define TD_SERVER_SPREAD_ENUM(id, by, unit, name, prom, help)                  \
    TD_SERVER_SPREAD_##id,
    TD_SERVER_METRIC_SPREADS(TD_SERVER_SPREAD_ENUM)
#undef TD_SERVER_SPREAD_ENUM
        TD_SERVER_SPREAD_COUNT
} td_server_spread_id;

typedef enum td_server_counter_id {
#define TD_SERVER_COUNTER_ENUM(id, by, unit, name, prom, help)                 \
    TD_SERVER_COUNT_##id,
    TD_SERVER_METRIC_COUNTERS(TD_SERVER_COUNTER_ENUM)
#undef TD_SERVER_COUNTER_ENUM
// The core's own (TD_SERVER_COUNTERS), which are read there.
#define TD_SERVER_COUNTER_ENUM(field, name, help) TD_SERVER_COUNT_OF_##field,
        TD_SERVER_COUNTERS(TD_SERVER_COUNTER_ENUM)
#undef TD_SERVER_COUNTER_ENUM
// The transport's, likewise.
#define TD_SERVER_COUNTER_ENUM(field, name, help) TD_SERVER_COUNT_NET_##field,
            TD_NET_COUNTS(TD_SERVER_COUNTER_ENUM)
#undef TD_SERVER_COUNTER_ENUM
                TD_SERVER_COUNTER_COUNT
} td_server_counter_id;

typedef enum td_server_gauge_id {
#define TD_SERVER_GAUGE_ENUM(id, name, prom, help) TD_SERVER_GAUGE_##id,
    TD_SERVER_METRIC_GAUGES(TD_SERVER_GAUGE_ENUM)
#undef TD_SERVER_GAUGE_ENUM
        TD_SERVER_GAUGE_COUNT
} td_server_gauge_id;

// A row, as text.
typedef struct td_server_metric {
    const char *name; // in JSON and on Zenoh
    const char *prom; // with the prefix of all of them
    const char *help;
    td_server_by by;
    td_server_unit unit;
} td_server_metric;

extern const td_server_metric td_server_spread_rows[TD_SERVER_SPREAD_COUNT];
extern const td_server_metric td_server_counter_rows[TD_SERVER_COUNTER_COUNT];
extern const td_server_metric td_server_gauge_rows[TD_SERVER_GAUGE_COUNT];

// Observations, by outcome (TD_SERVER_OUTCOMES); one that waits or runs has yet
// to end.
#define TD_SERVER_PROM_RECEIVED "tendon_server_observations_received_total"
#define TD_SERVER_PROM_PENDING "tendon_server_observations_pending"
#define TD_SERVER_PROM_ENDED "tendon_server_observations_ended_total"

#define TD_SERVER_PROM_STATE "tendon_server_state"
#define TD_SERVER_PROM_INFO "tendon_server_info"

static inline bool td_server_outcome_is_end(int outcome)
{
    return outcome != TD_SERVER_WAITING && outcome != TD_SERVER_RUNNING;
}

// The table of docs/metrics.md.
void td_server_metrics_page(FILE *out);

#endif
