// SPDX-License-Identifier: Apache-2.0
// A server's numbers by name: td_server_get_stats, get_latest and state of the
// C API.
//
// A name is looked up in the tables of report/metrics.h, which say what kind of
// number it is and by which labels (client, error) it can be asked for. Then
// all models whose labels fit are visited: spreads are added up over the window
// before their quantiles are taken, counters and gauges are added, and of the
// newest values the newest one counts.
//
// Any thread may ask. The process's `shown_lock` is held while the models are
// visited, so that none is closed meanwhile; nothing here waits for a model's
// loop or engine.
#include "base/clock.h"
#include "server/process/api.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { SPREAD, COUNTER, GAUGE, OUTCOME, RECEIVED } kind;

// A number by its name.
typedef struct number {
    kind kind;
    int id;
    td_server_by by;
    double scale; // from what is recorded to what is shown
} number;

// A question on its way from server to server.
typedef struct question {
    number of;
    td_server_labels labels;
    int64_t now_ns, window_ns;
    td_server_sum sum; // of a spread over the window
    double value;      // added up, or the newest
    int64_t newest_ns; // of a spread; 0: none came
    td_err err;
} question;

static bool find_row(const td_server_metric *rows, int count, const char *name,
                     number *ret_number)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        ret_number->id = i;
        ret_number->by = rows[i].by;
        return true;
    }
    return false;
}

static bool find_outcome(const char *name, number *ret_number)
{
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++) {
        if (strcmp(td_server_outcome_name((td_server_outcome)i), name) != 0)
            continue;
        ret_number->id = i;
        return true;
    }
    return false;
}

static td_err find(const char *name, number *ret_number, td_errinfo *info)
{
    number found = {.by = TD_SERVER_BY_MODEL, .scale = 1};
    if (find_row(td_server_spread_rows, TD_SERVER_SPREAD_COUNT, name, &found)) {
        found.kind = SPREAD;
        if (td_server_spread_rows[found.id].unit == TD_SERVER_TIME)
            found.scale = 1e-3;
    } else if (find_row(td_server_counter_rows, TD_SERVER_COUNTER_COUNT, name,
                        &found)) {
        found.kind = COUNTER;
    } else if (find_row(td_server_gauge_rows, TD_SERVER_GAUGE_COUNT, name,
                        &found)) {
        found.kind = GAUGE;
        found.by = TD_SERVER_BY_MODEL;
    } else if (find_outcome(name, &found)) {
        found.kind = OUTCOME;
    } else if (strcmp(name, "received") == 0) {
        found.kind = RECEIVED;
    } else {
        return td_fail(info, TD_ERR_NOTFOUND,
                       "no number is called \"%.64s\": docs/metrics.md has all",
                       name);
    }
    *ret_number = found;
    return TD_OK;
}

static td_err check_labels(const char *name, const question *asked,
                           td_errinfo *info)
{
    td_server_by by = asked->of.by;
    if (asked->labels.client && by == TD_SERVER_BY_MODEL)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s is not told apart by client", name);
    if (asked->labels.error && by != TD_SERVER_BY_ERROR)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s is not told apart by error", name);
    return TD_OK;
}

static td_err ask(const char *name, const td_server_labels *labels,
                  question *ret_asked, td_errinfo *info)
{
    *ret_asked = (question){.now_ns = td_clock_monotonic_ns(),
                            .sum = TD_SERVER_SUM_EMPTY};
    TD_TRY(find(name, &ret_asked->of, info));
    if (!labels) return TD_OK;
    size_t known = sizeof ret_asked->labels;
    memcpy(&ret_asked->labels, labels,
           labels->size < known ? labels->size : known);
    return check_labels(name, ret_asked, info);
}

static bool fits(const char *label, const char *text)
{
    return !label || strcmp(label, text) == 0;
}

typedef void (*visit_fn)(question *asked, td_server_model *model);

static void visit_all(td_server *server, question *asked, visit_fn visit)
{
    td_server_process *process = server->process;
    pthread_mutex_lock(&process->shown_lock);
    for (size_t i = 0; i < process->manifest->model_count; i++) {
        const td_config_model *config = &process->manifest->models[i];
        if (process->shown[i] &&
            fits(asked->labels.server, config->server_id) &&
            fits(asked->labels.model, config->model_id))
            visit(asked, process->shown[i]);
    }
    pthread_mutex_unlock(&process->shown_lock);
}

static void add_window(question *asked, td_server_model *model)
{
    td_server_stats_add(td_server_model_stats(model),
                        (td_server_spread_id)asked->of.id, asked->labels.client,
                        asked->now_ns, asked->window_ns, &asked->sum);
}

static void take_newest(question *asked, td_server_model *model)
{
    uint64_t value;
    int64_t at_ns;
    if (!td_server_stats_newest(td_server_model_stats(model),
                                (td_server_spread_id)asked->of.id,
                                asked->labels.client, &value, &at_ns) ||
        at_ns < asked->newest_ns)
        return;
    asked->newest_ns = at_ns;
    asked->value = (double)value * asked->of.scale;
}

static uint64_t departures(const question *asked, const td_server_view *view)
{
    for (uint32_t i = 0; i < view->departed_count; i++)
        if (strcmp(view->departed[i].id, asked->labels.client) == 0)
            return view->departed[i].times;
    return 0;
}

static uint64_t counted(const question *asked, const td_server_view *view)
{
    const char *client = asked->labels.client;
    const td_server_numbers *numbers = &view->numbers;
    if (client && asked->of.by == TD_SERVER_BY_DEPARTED)
        return departures(asked, view);
    if (client && view->client_count == 0) return 0;
    if (client) numbers = &view->clients[0].numbers;
    if (!asked->labels.error) return numbers->counters[asked->of.id];
    for (int i = 0; i < TD_ERR_COUNT; i++)
        if (strcmp(td_err_name((td_err)i), asked->labels.error) == 0)
            return numbers->errors[i];
    return 0;
}

static double shown(const question *asked, const td_server_view *view)
{
    switch (asked->of.kind) {
    case COUNTER:
        return (double)counted(asked, view);
    case GAUGE:
        return view->gauges[asked->of.id];
    case OUTCOME:
        return (double)view->counts.outcomes[asked->of.id];
    default:
        return (double)view->counts.received;
    }
}

static void add_shown(question *asked, td_server_model *model)
{
    const char *client = asked->labels.client;
    td_server_view view = {.about = {0}};
    asked->err = td_server_model_view(model, asked->now_ns, 0,
                                      client ? client : "", &view);
    if (asked->err != TD_OK) return;
    asked->value += shown(asked, &view);
    td_server_view_done(&view);
}

static void give(question *asked, td_server_spread *ret_spread)
{
    td_server_stats_spread spread;
    td_server_window_spread(&asked->sum, &spread);
    double scale = asked->of.scale;
    const td_server_spread made = {
        .size = ret_spread->size,
        .count = spread.count,
        .mean = spread.mean * scale,
        .min = spread.min * scale,
        .max = spread.max * scale,
        .p50 = spread.p50 * scale,
        .p95 = spread.p95 * scale,
        .p99 = spread.p99 * scale,
    };
    memcpy(ret_spread, &made,
           made.size < sizeof made ? made.size : sizeof made);
}

td_err td_server_get_stats(td_server *server, const char *name,
                           const td_server_labels *labels, double window_s,
                           td_server_spread *ret_spread, td_errinfo *info)
{
    question asked;
    TD_TRY(ask(name, labels, &asked, info));
    if (asked.of.kind != SPREAD)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s is no spread: ask for its latest value", name);
    if (!(window_s >= 1 && window_s <= TD_SERVER_WINDOW_MAX_S))
        return td_fail(info, TD_ERR_INVALID,
                       "a window is 1 to %d s long, not %g",
                       TD_SERVER_WINDOW_MAX_S, window_s);
    asked.window_ns = (int64_t)(window_s * (double)TD_NS_PER_S);
    visit_all(server, &asked, add_window);
    give(&asked, ret_spread);
    return TD_OK;
}

td_err td_server_get_latest(td_server *server, const char *name,
                            const td_server_labels *labels, double *ret_value,
                            td_errinfo *info)
{
    question asked;
    TD_TRY(ask(name, labels, &asked, info));
    bool is_spread = asked.of.kind == SPREAD;
    visit_all(server, &asked, is_spread ? take_newest : add_shown);
    if (asked.err != TD_OK) return td_fail(info, asked.err, "%s", name);
    if (is_spread && asked.newest_ns == 0)
        return td_fail(info, TD_ERR_EMPTY, "%s: nothing was recorded yet",
                       name);
    *ret_value = asked.value;
    return TD_OK;
}

// The better ones first.
static const char *const states[] = {"ready", "draining", "degraded", "warming",
                                     "stopped"};

static size_t rank_of(const char *state)
{
    size_t rank = 0;
    while (rank + 1 < TD_COUNT_OF(states) && strcmp(states[rank], state) != 0)
        rank++;
    return rank;
}

static const char *state_of(td_server_model *model)
{
    td_server_view view = {.about = {0}};
    int64_t now_ns = td_clock_monotonic_ns();
    if (td_server_model_view(model, now_ns, 0, "", &view) != TD_OK)
        return "degraded";
    const char *state = td_wire_server_state_name(view.state);
    td_server_view_done(&view);
    return state;
}

const char *td_server_state(td_server *server, const char *model_id)
{
    td_server_process *process = server->process;
    pthread_mutex_lock(&server->lock);
    const char *closed =
        server->phase == TD_SERVER_STARTING ? "warming" : "stopped";
    pthread_mutex_unlock(&server->lock);
    size_t worst = 0, found = 0;
    pthread_mutex_lock(&process->shown_lock);
    for (size_t i = 0; i < process->manifest->model_count; i++) {
        if (!fits(model_id, process->manifest->models[i].model_id)) continue;
        size_t rank =
            rank_of(process->shown[i] ? state_of(process->shown[i]) : closed);
        if (rank > worst) worst = rank;
        found++;
    }
    pthread_mutex_unlock(&process->shown_lock);
    return found ? states[worst] : "stopped";
}

uint64_t td_server_dropped(const td_server *server)
{
    return atomic_load(&server->process->dropped);
}
