// SPDX-License-Identifier: Apache-2.0
// The newest metrics of every robot of a route, for a table.
//
// A subscription to the metrics of all robots; its callback runs on the
// transport's thread, decodes a message and puts the row of its source in its
// place, in order of the source's name. A row keeps what the message before
// said, so that a rate can be taken from the difference.
//
// `lock` guards the rows; the decoder is the transport's thread's own.
// td_cli_metrics_rows() copies them under it; nothing blocks while it is held.
// A source beyond the table's room is left out.
//
// The end: undeclaring waits for a callback that runs; then the memory goes.
#include "cli/metrics.h"

#include "edge/record/episode_writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct td_cli_metrics {
    td_net_decl *decl;
    td_wire_decoder *decoder; // the transport's thread's own, like `metrics`
    td_wire_metrics metrics;
    pthread_mutex_t lock; // guards everything below
    td_cli_metrics_row rows[TD_CLI_METRICS_MAX];
    size_t count;
};

static uint64_t counter(const td_wire_metrics *metrics, const char *name)
{
    for (uint32_t i = 0; i < metrics->counter_count; i++)
        if (td_wire_text_is(metrics->counters[i].name, name))
            return metrics->counters[i].value;
    return 0;
}

static double gauge(const td_wire_metrics *metrics, const char *name)
{
    for (uint32_t i = 0; i < metrics->gauge_count; i++)
        if (td_wire_text_is(metrics->gauges[i].name, name))
            return metrics->gauges[i].value;
    return 0;
}

static void quantiles(const td_wire_metrics *metrics, const char *name,
                      double *ret_p50, double *ret_p99)
{
    for (uint32_t i = 0; i < metrics->quantiles_count; i++) {
        if (!td_wire_text_is(metrics->quantiles[i].name, name)) continue;
        *ret_p50 = metrics->quantiles[i].p50;
        *ret_p99 = metrics->quantiles[i].p99;
    }
}

static void copy_text(char *to, size_t room, td_wire_text from)
{
    size_t size = from.size < room - 1 ? from.size : room - 1;
    memcpy(to, from.data, size);
    to[size] = 0;
}

static const char *mark(const td_wire_metrics *metrics)
{
    int state = (int)gauge(metrics, "record_state");
    if (state == TD_EDGE_RECORD_RECORDING) return " rec";
    return state == TD_EDGE_RECORD_STOPPED ? " rec!" : "";
}

static td_cli_metrics_row read_row(const td_wire_metrics *metrics,
                                   const td_cli_metrics_row *before)
{
    td_cli_metrics_row row = {
        .uptime_s = (double)metrics->uptime_us / 1e6,
        .ticks = counter(metrics, "ticks"),
        .fresh = counter(metrics, "fresh"),
        .starved = counter(metrics, "starved"),
        .sent = counter(metrics, "sent"),
        .merged = counter(metrics, "merged"),
        .lost = counter(metrics, "unanswered"),
        .buffer_rows = gauge(metrics, "buffer_rows"),
    };
    copy_text(row.source, sizeof row.source, metrics->source);
    (void)snprintf(row.state, sizeof row.state, "%.*s%s",
                   (int)metrics->state.size, metrics->state.data,
                   mark(metrics));
    quantiles(metrics, "transport_ms", &row.transport_p50_ms,
              &row.transport_p99_ms);
    quantiles(metrics, "installed_ms", &row.installed_p50_ms,
              &row.installed_p99_ms);
    double passed_s = row.uptime_s - before->uptime_s;
    if (passed_s > 0 && row.ticks >= before->ticks)
        row.rate_hz = (double)(row.ticks - before->ticks) / passed_s;
    return row;
}

// The row of a source, or where its row belongs.
static size_t find_row(const td_cli_metrics *table, const td_wire_text *source)
{
    char name[TD_WIRE_MAX_NAME + 1];
    copy_text(name, sizeof name, *source);
    size_t i = 0;
    while (i < table->count && strcmp(table->rows[i].source, name) < 0)
        i++;
    return i;
}

static void put_row(td_cli_metrics *table)
{
    const td_wire_metrics *metrics = &table->metrics;
    size_t at = find_row(table, &metrics->source);
    bool known = at < table->count &&
                 td_wire_text_is(metrics->source, table->rows[at].source);
    if (!known && table->count == TD_CLI_METRICS_MAX) return;
    if (!known) {
        memmove(&table->rows[at + 1], &table->rows[at],
                (table->count - at) * sizeof table->rows[0]);
        table->rows[at] = (td_cli_metrics_row){0};
        table->count++;
    }
    table->rows[at] = read_row(metrics, &table->rows[at]);
}

// Transport's thread. A metrics message is small and arrives in one piece; one
// that does not is not worth a table's row.
static void on_metrics(void *user, const td_net_sample *sample)
{
    td_cli_metrics *table = user;
    if (!sample->whole) return;
    if (td_wire_metrics_decode(table->decoder, sample->head.data,
                               sample->head.size, &table->metrics,
                               NULL) != TD_OK)
        return;
    pthread_mutex_lock(&table->lock);
    put_row(table);
    pthread_mutex_unlock(&table->lock);
}

td_err td_cli_metrics_open(td_net *net, const td_wire_route *route,
                           td_cli_metrics **ret_table, td_errinfo *info)
{
    td_cli_metrics *table = calloc(1, sizeof *table);
    if (!table) return TD_ERR_NOMEM;
    pthread_mutex_init(&table->lock, NULL);
    char key[TD_WIRE_MAX_KEY];
    td_err err = td_wire_decoder_new(&table->decoder);
    if (err == TD_OK) err = td_wire_key(route, "*", "metrics", key, info);
    if (err == TD_OK)
        err = td_net_subscribe(net, key, on_metrics, table, &table->decl, info);
    if (err != TD_OK) {
        td_cli_metrics_close(table);
        return err;
    }
    *ret_table = table;
    return TD_OK;
}

void td_cli_metrics_close(td_cli_metrics *table)
{
    if (table->decl) (void)td_net_undeclare(table->decl);
    if (table->decoder) td_wire_decoder_free(table->decoder);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

size_t td_cli_metrics_rows(td_cli_metrics *table,
                           td_cli_metrics_row ret_rows[TD_CLI_METRICS_MAX])
{
    pthread_mutex_lock(&table->lock);
    size_t count = table->count;
    memcpy(ret_rows, table->rows, count * sizeof ret_rows[0]);
    pthread_mutex_unlock(&table->lock);
    return count;
}
