// SPDX-License-Identifier: Apache-2.0
// Takes frames, encodes them and sends. The frames' buffers are lent to the
// transport and not touched again before it has given them back.
#include "base/log.h"
#include "edge/shell.h"

#include <stdlib.h>

#define RELEASE_WAIT_NS (100 * TD_NS_PER_MS)

static const td_net_qos obs_qos = {.priority = TD_NET_DATA};

typedef struct camera {
    uint8_t *rgb; // height x width x 3
    size_t size;
    td_media_jpeg_encoder *jpeg; // NULL: raw
} camera;

struct td_edge_publisher {
    td_edge *edge;
    td_net_pub *pub;
    td_wire_encoder *encoder;
    camera cameras[TD_WIRE_MAX_IMAGES];
    bool lent;         // to the transport
    td_event released; // by the transport
};

static td_err camera_init(const td_edge *edge, uint32_t index, camera *ret)
{
    const td_wire_camera *wire = &edge->config.profile.cameras[index];
    ret->size = (size_t)wire->height * wire->width * 3;
    ret->rgb = malloc(ret->size);
    if (!ret->rgb) return TD_ERR_NOMEM;
    if (edge->config.raw_images) return TD_OK;
    return td_media_jpeg_encoder_new(edge->config.jpeg_quality, &ret->jpeg);
}

static td_err publisher_init(td_edge_publisher *publisher, td_errinfo *info)
{
    td_edge *edge = publisher->edge;
    char key[TD_WIRE_MAX_KEY];
    td_event_init(&publisher->released);
    TD_TRY(td_wire_encoder_new(&publisher->encoder));
    for (uint32_t i = 0; i < edge->config.profile.camera_count; i++)
        TD_TRY(camera_init(edge, i, &publisher->cameras[i]));
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
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++) {
        free(publisher->cameras[i].rgb);
        if (publisher->cameras[i].jpeg)
            td_media_jpeg_encoder_free(publisher->cameras[i].jpeg);
    }
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

static td_err add_image(td_edge_publisher *publisher, uint32_t index,
                        td_wire_obs *obs, td_errinfo *info)
{
    td_edge *edge = publisher->edge;
    camera *cam = &publisher->cameras[index];
    const td_wire_camera *wire = &edge->config.profile.cameras[index];
    TD_TRY(td_robot_frame(edge->robot, index,
                          td_clock_now_ns(&td_clock_monotonic), cam->rgb));
    td_wire_image image = {
        .name = wire->name,
        .codec = TD_WIRE_RAW,
        .shape = {wire->height, wire->width, 3},
        .data = cam->rgb,
        .size = cam->size,
    };
    if (cam->jpeg) {
        td_slice jpeg;
        TD_TRY(td_media_jpeg_encode(cam->jpeg, cam->rgb, wire->height,
                                    wire->width, &jpeg, info));
        // Without a shape it travels as plain bytes, which every server reads.
        image = (td_wire_image){
            .name = wire->name,
            .codec = TD_WIRE_JPEG,
            .data = jpeg.data,
            .size = jpeg.size,
        };
    }
    obs->images[obs->image_count++] = image;
    return TD_OK;
}

static td_err add_images(td_edge_publisher *publisher, td_wire_obs *obs,
                         td_errinfo *info)
{
    td_edge *edge = publisher->edge;
    bool wanted[TD_WIRE_MAX_IMAGES];
    pthread_mutex_lock(&edge->lock);
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        wanted[i] = edge->wanted[i];
    pthread_mutex_unlock(&edge->lock);
    for (uint32_t i = 0; i < edge->config.profile.camera_count; i++)
        if (wanted[i]) TD_TRY(add_image(publisher, i, obs, info));
    return TD_OK;
}

static void on_release(void *user)
{
    td_edge_publisher *publisher = user;
    td_event_signal(&publisher->released);
}

// It is entered as sent before it is put, since the answer may be quicker than
// this thread.
static void send(td_edge_publisher *publisher, const td_edge_outgoing *outgoing)
{
    td_edge *edge = publisher->edge;
    td_edge_sent sent = {
        .seq = outgoing->asking.seq,
        .cursor = outgoing->cursor,
        .captured_ns = outgoing->captured_ns,
        .put_ns = td_clock_now_ns(&td_clock_monotonic),
    };
    pthread_mutex_lock(&edge->lock);
    td_edge_core_sent(edge->core, &sent);
    pthread_mutex_unlock(&edge->lock);
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(publisher->encoder, &count);
    publisher->lent = true;
    if (td_net_put(publisher->pub, parts, count, on_release, publisher) ==
        TD_OK)
        return;
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
    td_edge_observe(&edge->config.core, edge->config.client, edge->config.task,
                    outgoing, obs);
    td_err err = add_images(publisher, obs, &info);
    if (err == TD_OK) err = td_wire_obs_encode(publisher->encoder, obs, &info);
    if (err == TD_OK)
        send(publisher, outgoing);
    else
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
