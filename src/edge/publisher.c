// SPDX-License-Identifier: Apache-2.0
// Takes frames, encodes and sends. Raw frames are taken into the message itself
// where the transport lends a place for it. Otherwise the frames' own buffers
// are lent to the transport, and not touched again before it has given them
// back.
#include "base/log.h"
#include "edge/frames.h"
#include "edge/shell.h"

#include <stdlib.h>
#include <string.h>

#define RELEASE_WAIT_NS (100 * TD_NS_PER_MS)

static const td_net_qos obs_qos = {.priority = TD_NET_DATA};

struct td_edge_publisher {
    td_edge *edge;
    td_net_pub *pub;
    td_wire_encoder *encoder;
    td_edge_frames *frames;
    char task[TD_WIRE_MAX_TEXT + 1]; // of the present observation
    td_net_loan *loan;               // where the message lies; NULL: in parts
    bool lent;                       // the parts, to the transport
    td_event released;               // by the transport
};

static td_err publisher_init(td_edge_publisher *publisher, td_errinfo *info)
{
    td_edge *edge = publisher->edge;
    char key[TD_WIRE_MAX_KEY];
    td_event_init(&publisher->released);
    TD_TRY(td_wire_encoder_new(&publisher->encoder));
    TD_TRY(td_edge_frames_new(&edge->config, &publisher->frames));
    TD_TRY(td_wire_key(&edge->config.route, edge->config.client, "obs", key,
                       info));
    return td_net_publish(edge->net, key, &obs_qos, &publisher->pub, info);
}

td_err td_edge_publisher_new(td_edge *edge, td_edge_publisher **ret_publisher,
                             td_errinfo *info)
{
    td_edge_publisher *publisher = calloc(1, sizeof *publisher);
    if (!publisher) return TD_ERR_NOMEM;
    publisher->edge = edge;
    td_err err = publisher_init(publisher, info);
    if (err != TD_OK) {
        td_edge_publisher_free(publisher);
        return err;
    }
    *ret_publisher = publisher;
    return TD_OK;
}

// The transport must have given everything back before the buffers go.
void td_edge_publisher_free(td_edge_publisher *publisher)
{
    if (publisher->pub) td_net_unpublish(publisher->pub);
    if (publisher->lent)
        (void)td_event_wait_until(&publisher->released, INT64_MAX);
    if (publisher->frames) td_edge_frames_free(publisher->frames);
    if (publisher->encoder) td_wire_encoder_free(publisher->encoder);
    free(publisher);
}

static bool buffers_back(td_edge_publisher *publisher)
{
    if (!publisher->lent) return true;
    int64_t until_ns = td_clock_now_ns(&td_clock_monotonic) + RELEASE_WAIT_NS;
    if (!td_event_wait_until(&publisher->released, until_ns)) return false;
    publisher->lent = false;
    return true;
}

static void choose_cameras(td_edge_publisher *publisher)
{
    td_edge *edge = publisher->edge;
    bool wanted[TD_WIRE_MAX_IMAGES];
    pthread_mutex_lock(&edge->lock);
    memcpy(wanted, edge->wanted, sizeof wanted);
    pthread_mutex_unlock(&edge->lock);
    td_edge_frames_choose(publisher->frames, wanted);
}

static const char *present_task(td_edge_publisher *publisher)
{
    td_edge *edge = publisher->edge;
    pthread_mutex_lock(&edge->lock);
    memcpy(publisher->task, edge->task, strlen(edge->task) + 1);
    pthread_mutex_unlock(&edge->lock);
    return publisher->task;
}

static td_err encode(td_edge_publisher *publisher, td_wire_obs *obs,
                     td_errinfo *info)
{
    TD_TRY(td_edge_frames_show(publisher->frames, obs, info));
    return td_wire_obs_encode(publisher->encoder, obs, info);
}

static void borrow(td_edge_publisher *publisher)
{
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(publisher->encoder, &count);
    size_t size = td_wire_encoder_size(publisher->encoder);
    if (td_net_lend(publisher->pub, size, &publisher->loan) == TD_OK)
        td_edge_frames_place(publisher->frames, parts, count,
                             publisher->loan->bytes);
}

static td_err write_obs(td_edge_publisher *publisher, td_wire_obs *obs,
                        td_errinfo *info)
{
    td_robot *robot = publisher->edge->robot;
    choose_cameras(publisher);
    if (!publisher->edge->config.raw_images) {
        TD_TRY(td_edge_frames_take(publisher->frames, robot));
        return encode(publisher, obs, info);
    }
    TD_TRY(encode(publisher, obs, info));
    borrow(publisher);
    return td_edge_frames_take(publisher->frames, robot);
}

static void on_release(void *user)
{
    td_edge_publisher *publisher = user;
    td_event_signal(&publisher->released);
}

static td_err put(td_edge_publisher *publisher)
{
    if (publisher->loan) return td_net_loan_put(TD_TAKE(publisher->loan));
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(publisher->encoder, &count);
    publisher->lent = true;
    return td_net_put(publisher->pub, parts, count, on_release, publisher);
}

// It is entered as sent before it is put, since the answer may be quicker than
// this thread.
static void send(td_edge_publisher *publisher, const td_edge_outgoing *outgoing)
{
    td_edge *edge = publisher->edge;
    td_edge_sent sent = {
        .seq = outgoing->asking.seq,
        .episode = outgoing->episode,
        .cursor = outgoing->cursor,
        .captured_ns = outgoing->captured_ns,
        .put_ns = td_clock_now_ns(&td_clock_monotonic),
    };
    pthread_mutex_lock(&edge->lock);
    bool current = td_edge_core_sent(edge->core, &sent);
    pthread_mutex_unlock(&edge->lock);
    if (!current && publisher->loan) td_net_loan_free(TD_TAKE(publisher->loan));
    if (!current || put(publisher) == TD_OK) return;
    pthread_mutex_lock(&edge->lock);
    td_edge_core_unsent(edge->core, sent.seq);
    pthread_mutex_unlock(&edge->lock);
}

static void note_failure(td_edge *edge, td_err err, const char *text)
{
    uint64_t count = atomic_fetch_add(&edge->frame_failed, 1) + 1;
    if ((count & (count - 1)) == 0)
        td_log_text(TD_LOG_WARN,
                    "publisher: observation not sent: %s %s (%llu so far)",
                    td_err_text(err), text, (unsigned long long)count);
}

static void publish(td_edge_publisher *publisher,
                    const td_edge_outgoing *outgoing, td_wire_obs *obs)
{
    td_edge *edge = publisher->edge;
    td_errinfo info = {.text = ""};
    if (!buffers_back(publisher)) {
        note_failure(edge, TD_ERR_BUSY, "the last one is still being sent");
        return;
    }
    td_edge_observe(&edge->config.core, edge->config.client,
                    present_task(publisher), outgoing, obs);
    td_err err = write_obs(publisher, obs, &info);
    if (err == TD_OK) {
        send(publisher, outgoing);
        return;
    }
    if (publisher->loan) td_net_loan_free(TD_TAKE(publisher->loan));
    note_failure(edge, err, info.text);
}

void td_edge_publisher_run(void *user)
{
    td_edge *edge = user;
    td_wire_obs obs;
    while (!atomic_load_explicit(&edge->stop_threads, memory_order_relaxed)) {
        (void)td_event_wait_until(&edge->publisher_wake, INT64_MAX);
        if (td_slot_refresh(edge->outbox))
            publish(edge->publisher, td_slot_front(edge->outbox), &obs);
    }
}
