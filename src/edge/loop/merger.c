// SPDX-License-Identifier: Apache-2.0
// From the transport's callback to the core, on the thread td-merge.
//
// The callback runs on a thread of the transport, which must not wait: it keeps
// the message, notes when it came and leaves it in a bounded queue. The thread
// decodes one after the other and hands each to the link, which has the core
// decide what it is worth and, where it is a chunk for the present, join it
// with what the robot is playing. A user's aggregation runs in there, on this
// thread and without a lock; one that takes long delays later answers and
// nobody else. What is dropped is counted under a name by the core, and said.
//
// No lock of its own: the queue is between the callback and the thread, the
// counters and histograms are read by anyone, the decoder is the thread's own.
//
// Stop: a flag is set, and the thread ends behind the answer at work. Leave:
// the subscription goes, and with it the last callback. Drain: what is left in
// the queue is freed with the rest, when the thread has been joined.
#include "edge/loop/merger.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"

#include <stdlib.h>

#define RECEIVED_MAX 256

// From callback to thread.
typedef struct received {
    td_net_msg *msg;
    int64_t at_ns;
} received;

struct td_edge_merger {
    td_edge_merger_config config;
    td_net_decl *subscription;
    td_queue *inbox; // received
    td_event wake;
    _Atomic bool stopping;
    td_thread *thread;
    td_wire_decoder *decoder;
    td_hist transport_ns, installed_ns;
    _Atomic uint64_t full;
};

static void note_full(td_edge_merger *merger)
{
    atomic_fetch_add(&merger->full, 1);
}

// Transport's thread: only hands over.
static void on_action(void *user, const td_net_sample *sample)
{
    td_edge_merger *merger = user;
    received one = {.at_ns = td_clock_monotonic_ns()};
    if (td_net_keep(sample, &one.msg) != TD_OK) {
        note_full(merger);
        return;
    }
    if (td_queue_push(merger->inbox, &one) != TD_OK) {
        note_full(merger);
        td_net_msg_free(one.msg);
        return;
    }
    td_event_signal(&merger->wake);
}

static void complain(const char *what, uint64_t count, td_wire_text detail)
{
    if (!td_log_is_due(count)) return;
    td_log_text(TD_LOG_WARN, "edge: answer dropped: %s%s%.*s (%llu so far)",
                what, detail.size ? ": " : "", (int)detail.size, detail.data,
                (unsigned long long)count);
}

static void note_merged(td_edge_merger *merger, int64_t received_ns,
                        const td_edge_answer *answer)
{
    int64_t now_ns = td_clock_monotonic_ns();
    const td_edge_traced_merge merge = {
        .installed_ns = now_ns,
        .seq = answer->sent.seq,
        .first = answer->first,
        .rows = answer->rows,
        .overlap_rows = answer->overlap_rows,
        .round_trip_ns = received_ns - answer->sent.put_ns,
        .felt_ns = now_ns - answer->sent.captured_ns,
    };
    td_edge_link_note_merged(merger->config.link, now_ns);
    td_hist_record(&merger->transport_ns, merge.round_trip_ns);
    td_hist_record(&merger->installed_ns, merge.felt_ns);
    if (merger->config.trace) td_edge_trace_merge(merger->config.trace, &merge);
}

static void log_dropped(td_edge_merger *merger, const td_edge_answer *answer,
                        const td_wire_action *action)
{
    td_edge_counts counts;
    td_edge_link_counts(merger->config.link, &counts);
    if (answer->stray)
        complain(td_edge_stray_name(answer->why_stray),
                 counts.strays[answer->why_stray], action->server);
    else
        complain(td_edge_outcome_name(answer->outcome),
                 counts.outcomes[answer->outcome], action->error_text);
}

static void take(td_edge_merger *merger, int64_t received_ns,
                 const td_wire_action *action)
{
    td_edge_answer answer;
    if (td_edge_link_answer(merger->config.link, received_ns, action,
                            &answer) != TD_OK)
        note_full(merger);
    else if (!answer.stray && answer.outcome == TD_EDGE_MERGED)
        note_merged(merger, received_ns, &answer);
    else
        log_dropped(merger, &answer, action);
}

static void drop_malformed(td_edge_merger *merger, const td_errinfo *why)
{
    td_edge_counts counts;
    td_edge_link_malformed(merger->config.link);
    td_edge_link_counts(merger->config.link, &counts);
    complain(td_edge_stray_name(TD_EDGE_STRAY_MALFORMED),
             counts.strays[TD_EDGE_STRAY_MALFORMED],
             td_wire_text_of(why->text));
}

static void merge_one(td_edge_merger *merger, const received *one,
                      td_wire_action *action)
{
    td_slice bytes;
    td_errinfo info = {.text = "out of memory"};
    td_err err = td_net_msg_bytes(one->msg, &bytes);
    if (err == TD_OK)
        err = td_wire_action_decode(merger->decoder, bytes.data, bytes.size,
                                    action, &info);
    if (err == TD_OK)
        take(merger, one->at_ns, action);
    else
        drop_malformed(merger, &info);
}

static void run(void *user)
{
    td_edge_merger *merger = user;
    td_wire_action action;
    while (!atomic_load_explicit(&merger->stopping, memory_order_relaxed)) {
        (void)td_event_wait_until(&merger->wake, INT64_MAX);
        received one;
        while (td_queue_pop(merger->inbox, &one) == TD_OK) {
            merge_one(merger, &one, &action);
            td_net_msg_free(one.msg);
        }
    }
}

static td_err merger_init(td_edge_merger *merger, td_errinfo *info)
{
    const td_edge_merger_config *config = &merger->config;
    char key[TD_WIRE_MAX_KEY];
    td_event_init(&merger->wake);
    td_hist_init(&merger->transport_ns);
    td_hist_init(&merger->installed_ns);
    TD_TRY(td_queue_new(RECEIVED_MAX, sizeof(received), &merger->inbox));
    TD_TRY(td_wire_decoder_new(&merger->decoder));
    TD_TRY(td_wire_key(config->route, config->client, "action", key, info));
    return td_net_subscribe(config->net, key, on_action, merger,
                            &merger->subscription, info);
}

td_err td_edge_merger_new(const td_edge_merger_config *config,
                          td_edge_merger **ret_merger, td_errinfo *info)
{
    td_edge_merger *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_merger) *merger = made;
    merger->config = *config;
    TD_TRY(merger_init(merger, info));
    *ret_merger = TD_TAKE(merger);
    return TD_OK;
}

td_err td_edge_merger_start(td_edge_merger *merger, td_errinfo *info)
{
    const td_thread_config config = {.name = "td-merge", .cpu = -1};
    return td_thread_start(&config, run, merger, &merger->thread, info);
}

void td_edge_merger_stop(td_edge_merger *merger)
{
    atomic_store(&merger->stopping, true);
    td_event_signal(&merger->wake);
}

void td_edge_merger_leave(td_edge_merger *merger)
{
    if (merger->subscription)
        (void)td_net_undeclare(TD_TAKE(merger->subscription));
}

bool td_edge_merger_end(td_edge_merger *merger, int64_t until_ns)
{
    if (merger->thread && !td_thread_join_until(merger->thread, until_ns))
        return false;
    merger->thread = NULL;
    return true;
}

void td_edge_merger_free(td_edge_merger *merger)
{
    received one;
    td_edge_merger_leave(merger);
    while (merger->inbox && td_queue_pop(merger->inbox, &one) == TD_OK)
        td_net_msg_free(one.msg);
    if (merger->decoder) td_wire_decoder_free(merger->decoder);
    if (merger->inbox) td_queue_free(merger->inbox);
    free(merger);
}

td_edge_merger_stats td_edge_merger_stats_get(const td_edge_merger *merger)
{
    return (td_edge_merger_stats){
        .full = atomic_load(&merger->full),
        .transport_ns = &merger->transport_ns,
        .installed_ns = &merger->installed_ns,
    };
}
