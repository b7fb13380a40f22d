// SPDX-License-Identifier: Apache-2.0
// Makes images, encodes and sends, on the thread td-publisher.
//
// The tick wakes it with its request (td_edge_publisher_prepare), so that the
// frames are taken and compressed while the driver reads the state. The driver
// then leaves state and request in the outbox, a newest-wins slot, and wakes it
// again; now it encodes the observation, enters it with the link as sent, and
// puts it. It enters it first because the answer may be quicker than this
// thread. What is not sent ends its request with the link too, by why, so that
// the tick may ask again.
//
// Frames that are sent as they are the cameras take into places in shared
// memory that the transport lends, and nobody copies them. Other raw ones are
// copied once, into such a place for the message. What no place is lent for
// goes in parts: then the frames' own buffers are lent to the transport, and
// not touched again before it has given them back.
//
// No lock of its own. The outbox, `asked_seq` and `stopping` are what other
// threads touch; the histogram and the counters are read by anyone; all the
// rest is the thread's own.
//
// Stop: a flag is set, the thread joined (end). Drain: the cameras stop
// borrowing, the transport gives everything back (leave). Free: when the driver
// has ended too, since it may still leave something in the outbox.
#include "edge/observe/publisher.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/slot.h"
#include "base/sync/thread.h"

#include <stdlib.h>
#include <string.h>

#define RELEASE_WAIT_NS (100 * TD_NS_PER_MS)

static const td_net_qos obs_qos = {.priority = TD_NET_DATA};

struct td_edge_publisher {
    td_edge_publisher_config config;
    td_slot *outbox;            // driver to publisher, td_edge_outgoing
    _Atomic uint64_t asked_seq; // the newest, from tick to publisher
    td_event wake;
    _Atomic bool stopping;
    td_thread *thread;
    td_hist skew_ns;
    _Atomic uint64_t stale[TD_WIRE_MAX_IMAGES]; // by camera

    td_net_pub *pub;
    td_wire_encoder *encoder;
    td_edge_frames *frames;
    td_edge_similar similar;
    td_edge_codec_choice choice;
    td_edge_link_sizes wanted;    // by the present server
    uint64_t connection, episode; // of what was sent last
    uint64_t prepared_seq;        // what frames are taken for; 0: nothing
    int64_t spent_ns;             // on it so far
    int64_t encoded_ns;           // when it was
    td_wire_obs obs;
    td_edge_task_copy task;
    bool raw;          // its images
    td_net_loan *loan; // where the message lies; NULL: in parts
    td_net_loan *loans[TD_WIRE_MAX_IMAGES]; // where its images lie
    size_t loan_count;                      // 0: elsewhere
    bool lent;                              // the parts, to the transport
    td_event released;                      // by the transport
};

static td_err publisher_init(td_edge_publisher *publisher, td_errinfo *info)
{
    const td_edge_publisher_config *config = &publisher->config;
    char key[TD_WIRE_MAX_KEY];
    td_event_init(&publisher->wake);
    td_event_init(&publisher->released);
    td_hist_init(&publisher->skew_ns);
    td_edge_codec_begin(&publisher->choice, config->frames.codec);
    TD_TRY(td_edge_similar_init(&publisher->similar, &config->similar));
    TD_TRY(td_slot_new(sizeof(td_edge_outgoing), &publisher->outbox));
    TD_TRY(td_wire_encoder_new(&publisher->encoder));
    TD_TRY(td_edge_frames_new(&config->frames, &publisher->frames));
    TD_TRY(td_wire_key(config->route, config->client, "obs", key, info));
    return td_net_publish(config->net, key, &obs_qos, &publisher->pub, info);
}

td_err td_edge_publisher_new(const td_edge_publisher_config *config,
                             td_edge_publisher **ret_publisher,
                             td_errinfo *info)
{
    td_edge_publisher *made = calloc(1, sizeof *made);
    if (!made) return TD_ERR_NOMEM;
    TD_AUTO(td_edge_publisher) *publisher = made;
    publisher->config = *config;
    TD_TRY(publisher_init(publisher, info));
    *ret_publisher = TD_TAKE(publisher);
    return TD_OK;
}

void td_edge_publisher_end(td_edge_publisher *publisher)
{
    atomic_store(&publisher->stopping, true);
    td_event_signal(&publisher->wake);
    if (publisher->thread) td_thread_join(TD_TAKE(publisher->thread));
}

// The transport must have given everything back before the buffers go.
void td_edge_publisher_leave(td_edge_publisher *publisher)
{
    if (publisher->frames) td_edge_frames_lend(publisher->frames, false, NULL);
    if (publisher->pub) td_net_unpublish(TD_TAKE(publisher->pub));
    if (publisher->lent)
        (void)td_event_wait_until(&publisher->released, INT64_MAX);
    publisher->lent = false;
}

void td_edge_publisher_free(td_edge_publisher *publisher)
{
    td_edge_publisher_end(publisher);
    td_edge_publisher_leave(publisher);
    if (publisher->frames) td_edge_frames_free(publisher->frames);
    if (publisher->encoder) td_wire_encoder_free(publisher->encoder);
    if (publisher->outbox) td_slot_free(publisher->outbox);
    free(publisher);
}

static td_err take_buffers_back(td_edge_publisher *publisher, td_errinfo *info)
{
    if (!publisher->lent) return TD_OK;
    if (!td_event_wait_until(&publisher->released,
                             td_clock_monotonic_ns() + RELEASE_WAIT_NS))
        return td_fail(info, TD_ERR_BUSY, "the last one is still being sent");
    publisher->lent = false;
    return TD_OK;
}

// What was learnt of one server is nothing to the next.
static void meet_server(td_edge_publisher *publisher)
{
    uint64_t connection = td_edge_link_connection(publisher->config.link);
    if (connection == publisher->connection) return;
    publisher->connection = connection;
    td_edge_codec_begin(&publisher->choice, publisher->config.frames.codec);
    td_edge_similar_forget(&publisher->similar);
}

static td_err make_images(td_edge_publisher *publisher, bool raw,
                          td_errinfo *info)
{
    publisher->raw = raw;
    return td_edge_frames_make(publisher->frames, raw, info);
}

// Takes the frames, and makes images of them unless they may not be sent.
static td_err prepare(td_edge_publisher *publisher, uint64_t seq,
                      td_errinfo *info)
{
    publisher->prepared_seq = 0;
    TD_TRY(take_buffers_back(publisher, info));
    meet_server(publisher);
    td_edge_link_wanted(publisher->config.link, &publisher->wanted);
    int64_t began_ns = td_clock_monotonic_ns();
    bool raw = td_edge_codec_is_raw(&publisher->choice);
    TD_TRY(td_edge_frames_take(publisher->frames, publisher->wanted.sizes,
                               began_ns, info));
    td_edge_frames_lend(publisher->frames, raw, publisher->pub);
    if (!publisher->similar.settings.on)
        TD_TRY(make_images(publisher, raw, info));
    publisher->spent_ns = td_clock_monotonic_ns() - began_ns;
    publisher->prepared_seq = seq;
    return TD_OK;
}

// A driver that took long may have made the frames old.
static bool is_prepared(const td_edge_publisher *publisher, uint64_t seq)
{
    return publisher->prepared_seq == seq &&
           publisher->connection ==
               td_edge_link_connection(publisher->config.link) &&
           td_edge_frames_are_fresh(publisher->frames, td_clock_monotonic_ns());
}

// Nothing is similar in another task or episode.
static void follow(td_edge_publisher *publisher, uint64_t episode)
{
    if (td_edge_task_update(publisher->config.task, &publisher->task) ||
        episode != publisher->episode)
        td_edge_similar_forget(&publisher->similar);
    publisher->episode = episode;
}

static td_err compare(td_edge_publisher *publisher,
                      const td_edge_outgoing *outgoing, bool *ret_similar,
                      td_errinfo *info)
{
    td_edge_similar_image images[TD_WIRE_MAX_IMAGES];
    uint32_t count, channels;
    if (!publisher->similar.settings.on) return TD_OK;
    TD_TRY(td_edge_frames_pixels(publisher->frames, images, &count, info));
    const float *state =
        td_edge_observe_state(publisher->config.core, outgoing, &channels);
    *ret_similar =
        td_edge_similar_check(&publisher->similar, state, channels, images,
                              count, outgoing->request.must_go);
    return TD_OK;
}

static td_err encode(td_edge_publisher *publisher, bool raw, td_errinfo *info)
{
    TD_TRY(make_images(publisher, raw, info));
    td_edge_frames_fill(publisher->frames, &publisher->obs);
    TD_TRY(td_wire_obs_encode(publisher->encoder, &publisher->obs, info));
    publisher->encoded_ns = td_clock_monotonic_ns();
    return TD_OK;
}

static bool borrow(td_edge_publisher *publisher)
{
    size_t size = td_wire_encoder_size(publisher->encoder);
    if (td_net_lend(publisher->pub, size, &publisher->loan) != TD_OK)
        return false;
    td_wire_encoder_join(publisher->encoder, publisher->loan->bytes);
    return true;
}

// Raw images that no place is lent for go as JPEG where that is allowed.
static td_err write_obs(td_edge_publisher *publisher,
                        const td_edge_outgoing *outgoing, td_errinfo *info)
{
    const td_edge_publisher_config *config = &publisher->config;
    td_edge_observe_fill(config->core, config->client, publisher->task.text,
                         outgoing, td_clock_monotonic_ns(), &publisher->obs);
    TD_TRY(encode(publisher, td_edge_codec_is_raw(&publisher->choice), info));
    publisher->loan_count =
        td_edge_frames_loans(publisher->frames, publisher->loans);
    if (publisher->loan_count > 0) return TD_OK;
    if (!publisher->raw || publisher->obs.image_count == 0) return TD_OK;
    if (borrow(publisher) || config->frames.codec == TD_EDGE_CODEC_RAW)
        return TD_OK;
    (void)td_edge_codec_tried(&publisher->choice, true, INT64_MAX);
    return encode(publisher, false, info);
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
    if (publisher->loan_count > 0)
        return td_net_put_loans(publisher->pub, parts, count, publisher->loans,
                                publisher->loan_count);
    publisher->lent = true;
    return td_net_put(publisher->pub, parts, count, on_release, publisher);
}

// It is entered as sent before it is put, since the answer may be quicker than
// this thread. The copy into a place that the transport lends is the
// transport's.
static bool send(td_edge_publisher *publisher, const td_edge_outgoing *outgoing)
{
    td_edge_link *link = publisher->config.link;
    td_edge_sent sent = {
        .seq = outgoing->request.seq,
        .episode = outgoing->episode,
        .cursor = outgoing->cursor,
        .captured_ns = outgoing->captured_ns,
        .put_ns = publisher->encoded_ns,
        .again = outgoing->request.again,
    };
    bool current = td_edge_link_sent(link, &sent);
    if (!current && publisher->loan) td_net_loan_free(TD_TAKE(publisher->loan));
    if (!current) return false;
    if (put(publisher) == TD_OK) return true;
    td_edge_link_unsent(link, sent.seq);
    return false;
}

static void log_choice(const td_edge_codec_choice *choice)
{
    double raw_ms = (double)choice->cost_ns[TD_EDGE_CODEC_RAW] / TD_NS_PER_MS;
    double jpeg_ms = (double)choice->cost_ns[TD_EDGE_CODEC_JPEG] / TD_NS_PER_MS;
    if (choice->cost_ns[TD_EDGE_CODEC_RAW] == INT64_MAX)
        td_log_text(TD_LOG_INFO,
                    "edge: images travel as jpeg: there is no shared memory "
                    "with this server for them");
    else if (td_edge_codec_is_raw(choice))
        td_log_text(TD_LOG_INFO,
                    "edge: images travel raw through shared memory (%.2f ms "
                    "against %.2f ms as jpeg)",
                    raw_ms, jpeg_ms);
    else
        td_log_text(TD_LOG_INFO,
                    "edge: images travel as jpeg (%.2f ms against %.2f ms raw)",
                    jpeg_ms, raw_ms);
}

static void note_sent(td_edge_publisher *publisher,
                      const td_edge_outgoing *outgoing)
{
    if (publisher->similar.settings.on)
        td_edge_similar_note_sent(&publisher->similar);
    td_edge_frames_skew(publisher->frames, outgoing->captured_ns,
                        &publisher->skew_ns);
    if (publisher->obs.image_count > 0 &&
        td_edge_codec_tried(&publisher->choice, publisher->raw,
                            publisher->spent_ns))
        log_choice(&publisher->choice);
}

static void count_stale(td_edge_publisher *publisher)
{
    for (uint32_t i = 0; i < publisher->config.frames.cameras->count; i++)
        if (td_edge_frames_is_stale(publisher->frames, i,
                                    td_clock_monotonic_ns()))
            atomic_fetch_add(&publisher->stale[i], 1);
}

static void skip(td_edge_publisher *publisher, uint64_t seq, td_edge_skip why,
                 const char *text)
{
    uint64_t count = td_edge_link_skipped(publisher->config.link, seq, why);
    if (why != TD_EDGE_SKIP_SIMILAR && td_log_is_due(count))
        td_log_text(TD_LOG_WARN,
                    "publisher: observation not sent: %s (%llu so far)", text,
                    (unsigned long long)count);
}

static void give_up(td_edge_publisher *publisher, uint64_t seq, td_err err,
                    const td_errinfo *info)
{
    bool stale = err == TD_ERR_EMPTY;
    if (stale) count_stale(publisher);
    skip(publisher, seq, stale ? TD_EDGE_SKIP_STALE : TD_EDGE_SKIP_FAILED,
         info->text[0] ? info->text : td_err_text(err));
}

// A word without pictures: the answer to what was seen before, once more.
static td_err write_again(td_edge_publisher *publisher,
                          const td_edge_outgoing *outgoing, td_errinfo *info)
{
    const td_edge_publisher_config *config = &publisher->config;
    TD_TRY(take_buffers_back(publisher, info));
    td_edge_observe_fill(config->core, config->client, "", outgoing,
                         td_clock_monotonic_ns(), &publisher->obs);
    publisher->loan_count = 0;
    return td_wire_obs_encode(publisher->encoder, &publisher->obs, info);
}

static void publish_again(td_edge_publisher *publisher,
                          const td_edge_outgoing *outgoing)
{
    td_errinfo info = {.text = ""};
    td_err err = write_again(publisher, outgoing, &info);
    if (err == TD_OK)
        (void)send(publisher, outgoing);
    else
        give_up(publisher, outgoing->request.seq, err, &info);
}

static void publish(td_edge_publisher *publisher,
                    const td_edge_outgoing *outgoing)
{
    uint64_t seq = outgoing->request.seq;
    td_errinfo info = {.text = ""};
    bool similar = false;
    td_err err =
        is_prepared(publisher, seq) ? TD_OK : prepare(publisher, seq, &info);
    follow(publisher, outgoing->episode);
    if (err == TD_OK) err = compare(publisher, outgoing, &similar, &info);
    if (similar) {
        skip(publisher, seq, TD_EDGE_SKIP_SIMILAR, NULL);
        return;
    }
    int64_t began_ns = td_clock_monotonic_ns();
    if (err == TD_OK) err = write_obs(publisher, outgoing, &info);
    if (err != TD_OK) {
        give_up(publisher, seq, err, &info);
        return;
    }
    bool sent = send(publisher, outgoing);
    publisher->spent_ns += td_clock_monotonic_ns() - began_ns;
    if (sent) note_sent(publisher, outgoing);
}

static void run(void *user)
{
    td_edge_publisher *publisher = user;
    uint64_t done_seq = 0;
    while (!atomic_load_explicit(&publisher->stopping, memory_order_relaxed)) {
        (void)td_event_wait_until(&publisher->wake, INT64_MAX);
        if (td_slot_refresh(publisher->outbox)) {
            const td_edge_outgoing *outgoing = td_slot_front(publisher->outbox);
            if (outgoing->request.again > 0)
                publish_again(publisher, outgoing);
            else
                publish(publisher, outgoing);
            done_seq = outgoing->request.seq;
        }
        uint64_t asked_seq = atomic_load(&publisher->asked_seq);
        if (asked_seq > done_seq && asked_seq != publisher->prepared_seq)
            (void)prepare(publisher, asked_seq, NULL);
    }
}

td_err td_edge_publisher_start(td_edge_publisher *publisher, td_errinfo *info)
{
    const td_thread_config config = {.name = "td-publisher", .cpu = -1};
    return td_thread_start(&config, run, publisher, &publisher->thread, info);
}

void td_edge_publisher_prepare(td_edge_publisher *publisher, uint64_t seq)
{
    atomic_store_explicit(&publisher->asked_seq, seq, memory_order_release);
    td_event_signal(&publisher->wake);
}

bool td_edge_publisher_send(td_edge_publisher *publisher,
                            const td_edge_outgoing *outgoing)
{
    td_edge_outgoing *back = td_slot_back(publisher->outbox);
    *back = *outgoing;
    bool replaced = td_slot_publish(publisher->outbox);
    td_event_signal(&publisher->wake);
    return replaced;
}

td_edge_publisher_stats
td_edge_publisher_stats_get(const td_edge_publisher *publisher)
{
    td_edge_publisher_stats stats = {.skew_ns = &publisher->skew_ns};
    for (int i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        stats.stale[i] = atomic_load(&publisher->stale[i]);
    return stats;
}
