// SPDX-License-Identifier: Apache-2.0
#include "edge/edge_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS (30 * TD_NS_PER_S)
#define LOOK_NS (2 * TD_NS_PER_MS)

static const td_net_qos reliable = {.priority = TD_NET_DATA, .reliable = true};

// A synthetic robot that remembers each command that differs from the last.
typedef struct spy {
    td_robot_hardware base;
    td_robot_hardware *inner;
    size_t count;
    float commands[MAX_COMMANDS][CHANNELS];
    atomic_int broken, blocked; // a camera; -1: none
    atomic_bool mute, stuck;    // its joints cannot be read, or never come
    atomic_int waiting;         // calls that are blocked
    atomic_bool compresses;     // its cameras give JPEG
} spy;

static void spy_close(td_robot_hardware *robot)
{
    spy *self = (spy *)robot;
    td_robot_hardware_close(self->inner);
    free(self);
}

static void wait_until_unblocked(spy *self)
{
    atomic_fetch_add(&self->waiting, 1);
    td_clock_sleep_until(td_clock_monotonic_ns() + LOOK_NS);
    atomic_fetch_sub(&self->waiting, 1);
}

static td_err spy_read(td_robot_hardware *robot, int64_t now_ns,
                       float *ret_state)
{
    spy *self = (spy *)robot;
    if (atomic_load(&self->mute)) return TD_ERR_IO;
    while (atomic_load(&self->stuck))
        wait_until_unblocked(self);
    return td_robot_hardware_read(self->inner, now_ns, ret_state);
}

static td_err spy_write(td_robot_hardware *robot, int64_t now_ns,
                        const float *command)
{
    spy *self = (spy *)robot;
    size_t bytes = sizeof self->commands[0];
    bool same = self->count > 0 &&
                memcmp(self->commands[self->count - 1], command, bytes) == 0;
    if (!same && self->count < MAX_COMMANDS)
        memcpy(self->commands[self->count++], command, bytes);
    return td_robot_hardware_write(self->inner, now_ns, command);
}

// Behind its end stands a mark, which no decoder looks at and no encoder makes.
static td_err compress(td_robot_picture *picture, uint32_t height,
                       uint32_t width)
{
    TD_AUTO(td_media_jpeg_encoder) *encoder = NULL;
    td_slice jpeg;
    TD_TRY(td_media_jpeg_encoder_new(95, TD_MEDIA_CHROMA_420, &encoder));
    TD_TRY(td_media_jpeg_encode(encoder, picture->bytes, height, width, &jpeg,
                                NULL));
    if (jpeg.size + sizeof JPEG_MARK > picture->room) return TD_ERR_LIMIT;
    memcpy(picture->bytes, jpeg.data, jpeg.size);
    memcpy(picture->bytes + jpeg.size, JPEG_MARK, sizeof JPEG_MARK);
    picture->jpeg = jpeg.size + sizeof JPEG_MARK;
    return TD_OK;
}

static td_err spy_frame(td_robot_hardware *robot, uint32_t camera,
                        int64_t now_ns, td_robot_picture *picture)
{
    spy *self = (spy *)robot;
    if (atomic_load(&self->broken) == (int)camera) return TD_ERR_IO;
    while (atomic_load(&self->blocked) == (int)camera)
        wait_until_unblocked(self);
    TD_TRY(td_robot_hardware_frame(self->inner, camera, now_ns, picture));
    if (!atomic_load(&self->compresses)) return TD_OK;
    return compress(picture, camera == 0 ? 48 : 96, camera == 0 ? 64 : 128);
}

static const td_robot_ops spy_ops = {
    .name = "spy",
    .close = spy_close,
    .read = spy_read,
    .write = spy_write,
    .frame = spy_frame,
};

static td_robot_hardware *spy_new(void)
{
    static const td_robot_config config = {
        .joints = {{.name = "lift", .speed_limit = 1000},
                   {.name = "turn", .speed_limit = 1000}},
        .joint_count = CHANNELS,
        .cameras = {{.name = "top", .height = 48, .width = 64},
                    {.name = "hand", .height = 96, .width = 128}},
        .camera_count = 2,
        .time_constant_s = 0.01,
    };
    spy *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->base.ops = &spy_ops;
    atomic_init(&self->broken, -1);
    atomic_init(&self->blocked, -1);
    assert_int_equal(
        td_robot_hardware_open("synthetic", &config, &self->inner, NULL),
        TD_OK);
    return &self->base;
}

const float *world_commands(world *w, size_t *ret_count)
{
    const spy *self = (const spy *)w->robot;
    *ret_count = self->count;
    return &self->commands[0][0];
}

void world_break_camera(world *w, int camera)
{
    atomic_store(&((spy *)w->robot)->broken, camera);
}

void world_compress(world *w)
{
    atomic_store(&((spy *)w->robot)->compresses, true);
}

void world_break_driver(world *w, bool broken)
{
    atomic_store(&((spy *)w->robot)->mute, broken);
}

void world_block_driver(world *w, bool blocked)
{
    atomic_store(&((spy *)w->robot)->stuck, blocked);
}

bool is_blocked(world *w)
{
    return atomic_load(&((spy *)w->robot)->waiting) == 2;
}

void world_block_camera(world *w, int camera)
{
    atomic_store(&((spy *)w->robot)->blocked, camera);
}

static void fill_profile(td_edge_profile *profile)
{
    static const char *const names[] = {"lift", "turn"};
    *profile = (td_edge_profile){
        .model_id = "act",
        .model_version = "v1",
        .action_count = CHANNELS,
        .state_count = CHANNELS,
        .cameras = {{td_wire_text_of("top"), 48, 64},
                    {td_wire_text_of("hand"), 96, 128}},
        .camera_count = 2,
        .step_period_us = 2000,
        .actions_per_chunk = ROWS,
    };
    for (size_t i = 0; i < CHANNELS; i++)
        profile->actions[i] = profile->states[i] =
            (td_wire_channel){td_wire_text_of(names[i]), TD_WIRE_LINEAR};
}

static void fill_config(td_edge_config *config)
{
    *config = (td_edge_config){
        .route = {"lab", "trial", "act", "v1", "demo"},
        .client = "arm-0",
        .task = "wave",
        .camera_period_ns = {20 * TD_NS_PER_MS, 20 * TD_NS_PER_MS},
        .jpeg_quality = 80,
        .cpu = -1,
        .refused_for_ns = 60 * TD_NS_PER_S,
        .watchdog_ns = 2 * TD_NS_PER_S,
        .driver_limit_ns = 60 * TD_NS_PER_S,
    };
    td_edge_core_settings *core = &config->core;
    td_edge_core_settings_plain(CHANNELS, 2 * TD_NS_PER_MS, core);
    core->actions_per_chunk = ROWS;
    core->aggregate = TD_EDGE_LATEST_ONLY;
    core->ask.resend_min_ns = TD_NS_PER_S;
    core->ask.resend_max_ns = TD_NS_PER_S;
    core->max_action_age_ns = 60 * TD_NS_PER_S;
    core->boot = 7;
    fill_profile(&config->profile);
}

void world_key(const world *w, const char *client, const char *topic,
               char ret_key[TD_WIRE_MAX_KEY])
{
    assert_int_equal(
        td_wire_key(&w->config.route, client, topic, ret_key, NULL), TD_OK);
}

int world_setup(void **state)
{
    char key[TD_WIRE_MAX_KEY];
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    td_event_init(&w->wake);
    fill_config(&w->config);
    assert_int_equal(td_net_hub_new_threaded(1, &w->hub), TD_OK);
    assert_int_equal(td_net_inproc_open(w->hub, "robot", &w->net, NULL), TD_OK);
    assert_int_equal(td_net_inproc_open(w->hub, "other", &w->stranger, NULL),
                     TD_OK);
    world_key(w, w->config.client, "action", key);
    assert_int_equal(
        td_net_publish(w->stranger, key, &reliable, &w->injected, NULL), TD_OK);
    assert_int_equal(td_wire_encoder_new(&w->encoder), TD_OK);
    assert_int_equal(td_wire_decoder_new(&w->decoder), TD_OK);
    w->robot = spy_new();
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    world *w = *state;
    world_block_camera(w, -1);
    world_block_driver(w, false);
    if (w->runner) world_stop(w);
    if (w->edge) world_close(w);
    for (size_t i = 0; i < MAX_FAKE_SERVERS; i++)
        if (w->fake_servers[i].net) fake_server_close(&w->fake_servers[i]);
    td_robot_hardware_close(w->robot);
    td_net_unpublish(w->injected);
    td_net_close(w->stranger);
    if (w->net) td_net_close(w->net);
    td_net_hub_free(w->hub);
    td_wire_encoder_free(w->encoder);
    td_wire_decoder_free(w->decoder);
    free(w);
    return 0;
}

void world_open(world *w)
{
    td_errinfo info = {.text = ""};
    if (td_edge_open(w->net, w->robot, &w->config, &w->edge, &info) != TD_OK)
        fail_msg("%s", info.text);
}

static void run(void *user)
{
    world *w = user;
    w->result = td_edge_run(w->edge, &w->why);
    atomic_store(&w->returned, true);
    td_event_signal(&w->wake);
}

void world_run(world *w)
{
    const td_thread_config config = {.name = "td-run", .cpu = -1};
    atomic_store(&w->returned, false);
    assert_int_equal(td_thread_start(&config, run, w, &w->runner, NULL), TD_OK);
}

void world_stream(world *w)
{
    world_open(w);
    world_run(w);
    world_until(w, is_streaming);
}

void world_stop(world *w)
{
    td_edge_stop(w->edge);
    world_until(w, has_returned);
    td_thread_join(TD_TAKE(w->runner));
}

void world_close(world *w)
{
    td_edge_close(TD_TAKE(w->edge));
}

bool is_streaming(world *w)
{
    return w->report.state == TD_EDGE_STREAMING;
}

bool is_reconnecting(world *w)
{
    return w->report.state == TD_EDGE_RECONNECTING;
}

bool has_returned(world *w)
{
    return atomic_load(&w->returned);
}

bool has_asked(world *w)
{
    return w->fake_servers[0].queries >= 1;
}

uint64_t world_outcome(const world *w, td_edge_outcome outcome)
{
    return w->report.counts.outcomes[outcome];
}

bool has_merged_twenty(world *w)
{
    return world_outcome(w, TD_EDGE_MERGED) >= 20;
}

td_wire_action world_stray(const float *rows)
{
    return (td_wire_action){
        .ident = {.boot = 7, .episode = 1, .seq = 2},
        .server = td_wire_text_of("gpu-1"),
        .actions =
            {
                .dtype = TD_WIRE_F32,
                .rank = 2,
                .shape = {ROWS, CHANNELS},
                .data = rows,
                .size = ROWS * CHANNELS * sizeof *rows,
            },
    };
}

void world_put(td_net_pub *pub, const td_wire_encoder *encoder)
{
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    assert_int_equal(td_net_put(pub, parts, count, NULL, NULL), TD_OK);
}

void world_inject(world *w, const td_wire_action *action)
{
    assert_int_equal(td_wire_action_encode(w->encoder, action, NULL), TD_OK);
    world_put(w->injected, w->encoder);
}

void world_inject_bytes(world *w, const void *bytes, size_t size)
{
    const td_slice part = {bytes, size};
    assert_int_equal(td_net_put(w->injected, &part, 1, NULL, NULL), TD_OK);
}

void world_until_named(world *w, bool (*is_so)(world *w), const char *name)
{
    int64_t until_ns = td_clock_monotonic_ns() + WAIT_NS;
    for (;;) {
        for (size_t i = 0; i < MAX_FAKE_SERVERS; i++)
            if (w->fake_servers[i].net) fake_server_work(&w->fake_servers[i]);
        td_edge_report_get(w->edge, &w->report);
        if (is_so(w)) return;
        if (td_clock_monotonic_ns() > until_ns)
            fail_msg("waited in vain: %s", name);
        (void)td_event_wait_until(&w->wake, td_clock_monotonic_ns() + LOOK_NS);
    }
}
