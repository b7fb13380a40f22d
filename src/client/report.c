// SPDX-License-Identifier: Apache-2.0
// The numbers of one model, as a program reads them.
//
// td_model_report() calls the program's function once for each number, with its
// name; td_model_number() picks one of them by its name. Outcomes count how
// observations ended, so that `observed` is their sum and `open`.
//
// Lock: the model's, for as long as the counts of its requests are copied. The
// program's function runs without it, and so may call anything of the model.
// Counts of the transport's thread are atomics, and the histogram of round
// trips is read bucket by bucket while it grows.
#include "base/clock.h"
#include "client/model.h"
#include "edge/api/api.h"

const char *td_model_outcome_name(td_model_outcome outcome)
{
    static const char *const names[] = {
        [TD_MODEL_ANSWERED] = "answered",     [TD_MODEL_ERROR] = "error",
        [TD_MODEL_SUPERSEDED] = "superseded", [TD_MODEL_LOST] = "lost",
        [TD_MODEL_EXPIRED] = "expired",
    };
    return (size_t)outcome < TD_COUNT_OF(names) ? names[outcome] : "?";
}

static double ms(double ns)
{
    return ns / (double)TD_NS_PER_MS;
}

static void report_round_trip(const td_hist *hist, td_model_number_fn each,
                              void *user)
{
    each(user, "round_trip_ms/count", (double)td_hist_count(hist));
    each(user, "round_trip_ms/mean", ms(td_hist_mean(hist)));
    each(user, "round_trip_ms/p50", ms((double)td_hist_quantile(hist, 0.5)));
    each(user, "round_trip_ms/p99", ms((double)td_hist_quantile(hist, 0.99)));
    each(user, "round_trip_ms/p999", ms((double)td_hist_quantile(hist, 0.999)));
    each(user, "round_trip_ms/max", ms((double)td_hist_max(hist)));
}

void td_model_report(td_model *model, td_model_number_fn each, void *user)
{
    pthread_mutex_lock(&model->lock);
    td_client_counts counts = model->requests.counts;
    uint32_t open = model->requests.open_count;
    uint64_t attached = model->attached;
    pthread_mutex_unlock(&model->lock);
    each(user, "observed", (double)counts.observed);
    for (int i = TD_MODEL_ANSWERED; i <= TD_MODEL_EXPIRED; i++)
        each(user, td_model_outcome_name((td_model_outcome)i),
             (double)counts.outcomes[i]);
    each(user, "open", open);
    each(user, "unread", (double)counts.unread);
    each(user, "unnamed", (double)counts.unnamed);
    each(user, "late", (double)counts.late);
    each(user, "strangers", (double)atomic_load(&model->strangers));
    each(user, "malformed", (double)atomic_load(&model->malformed));
    each(user, "unkept", (double)atomic_load(&model->unkept));
    for (int i = 0; i < TD_EDGE_REPLY_COUNT; i++)
        each(user, td_edge_reply_counter((td_edge_reply)i),
             (double)atomic_load(&model->replies[i]));
    each(user, "attached", (double)attached);
    report_round_trip(&model->round_trip_ns, each, user);
}

td_err td_model_number(td_model *model, const char *name, double *ret_value)
{
    td_edge_api_number wanted = {.name = name};
    td_model_report(model, td_edge_api_number_match, &wanted);
    return td_edge_api_number_get(&wanted, ret_value);
}
