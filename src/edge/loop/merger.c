// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "edge/shell.h"

// Transport's thread: only hands over.
void td_edge_merger_on_action(void *user, const td_net_sample *sample)
{
    td_edge *edge = user;
    td_edge_received received = {
        .received_ns = td_clock_now_ns(&td_clock_monotonic),
    };
    if (td_net_keep(sample, &received.msg) != TD_OK) {
        atomic_fetch_add(&edge->inbox_full, 1);
        return;
    }
    if (td_queue_push(edge->received, &received) != TD_OK) {
        atomic_fetch_add(&edge->inbox_full, 1);
        td_net_msg_free(received.msg);
        return;
    }
    td_event_signal(&edge->merge_wake);
}

static void complain(const char *what, uint64_t count, td_wire_text detail)
{
    if (!td_log_is_due(count)) return;
    td_log_text(TD_LOG_WARN, "edge: answer dropped: %s%s%.*s (%llu so far)",
                what, detail.size ? ": " : "", (int)detail.size, detail.data,
                (unsigned long long)count);
}

static void note_merged(td_edge *edge, const td_edge_received *received,
                        const td_edge_answer *answer)
{
    int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
    const td_edge_traced_merge merge = {
        .installed_ns = now_ns,
        .seq = answer->sent.seq,
        .first = answer->first,
        .rows = answer->rows,
        .overlap_rows = answer->overlap_rows,
        .round_trip_ns = received->received_ns - answer->sent.put_ns,
        .felt_ns = now_ns - answer->sent.captured_ns,
    };
    atomic_store(&edge->merged_ns, now_ns);
    td_hist_record(&edge->transport_ns, merge.round_trip_ns);
    td_hist_record(&edge->installed_ns, merge.felt_ns);
    if (edge->config.trace) td_edge_trace_merge(edge->config.trace, &merge);
}

static void report(td_edge *edge, const td_edge_answer *answer,
                   const td_wire_action *action)
{
    td_edge_counts counts;
    pthread_mutex_lock(&edge->lock);
    td_edge_core_counts(edge->core, &counts);
    pthread_mutex_unlock(&edge->lock);
    if (answer->stray)
        complain(td_edge_stray_name(answer->why_stray),
                 counts.strays[answer->why_stray], action->server);
    else
        complain(td_edge_outcome_name(answer->outcome),
                 counts.outcomes[answer->outcome], action->error_text);
}

static void take(td_edge *edge, const td_edge_received *received,
                 const td_wire_action *action)
{
    td_edge_merge_job job;
    pthread_mutex_lock(&edge->lock);
    td_edge_core_answer_begin(edge->core, received->received_ns, edge->server,
                              action, &job);
    pthread_mutex_unlock(&edge->lock);
    if (td_edge_core_answer_blend(edge->core, &job) != TD_OK) {
        atomic_fetch_add(&edge->inbox_full, 1);
        return;
    }
    pthread_mutex_lock(&edge->lock);
    td_edge_answer answer = td_edge_core_answer_end(edge->core, &job);
    pthread_mutex_unlock(&edge->lock);
    if (!answer.stray && answer.outcome == TD_EDGE_MERGED)
        note_merged(edge, received, &answer);
    else
        report(edge, &answer, action);
}

static void merge_one(td_edge *edge, const td_edge_received *received,
                      td_wire_action *action)
{
    td_slice bytes;
    td_errinfo info = {.text = "out of memory"};
    td_err err = td_net_msg_bytes(received->msg, &bytes);
    if (err == TD_OK)
        err = td_wire_action_decode(edge->decoder, bytes.data, bytes.size,
                                    action, &info);
    if (err == TD_OK) {
        take(edge, received, action);
        return;
    }
    td_edge_counts counts;
    pthread_mutex_lock(&edge->lock);
    td_edge_core_malformed(edge->core);
    td_edge_core_counts(edge->core, &counts);
    pthread_mutex_unlock(&edge->lock);
    complain(td_edge_stray_name(TD_EDGE_STRAY_MALFORMED),
             counts.strays[TD_EDGE_STRAY_MALFORMED],
             td_wire_text_of(info.text));
}

void td_edge_merger_run(void *user)
{
    td_edge *edge = user;
    td_wire_action action;
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        (void)td_event_wait_until(&edge->merge_wake, INT64_MAX);
        td_edge_received received;
        while (td_queue_pop(edge->received, &received) == TD_OK) {
            merge_one(edge, &received, &action);
            td_net_msg_free(received.msg);
        }
    }
}
