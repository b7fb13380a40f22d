// SPDX-License-Identifier: Apache-2.0
#include "bench/bare.h"

#include "edge/observe/observe.h"
#include "server/core/answer.h"
#include "wire/wire.h"

#include <signal.h>
#include <stdio.h>

static td_err add_frames(const td_bench_setup *setup, td_wire_obs *obs)
{
    static uint8_t frame[TD_BENCH_FRAME_BYTES];
    static const char *const names[] = {"cam0", "cam1"};
    td_robot_picture picture = {.bytes = frame, .room = sizeof frame};
    TD_TRY(td_bench_still_picture(setup, &picture));
    td_wire_image image = {
        .codec = TD_WIRE_RAW,
        .shape = {setup->height, setup->width, 3},
        .data = frame,
        .size = (size_t)setup->height * setup->width * 3,
    };
    if (picture.jpeg > 0)
        image = (td_wire_image){
            .codec = TD_WIRE_JPEG, .data = frame, .size = picture.jpeg};
    for (uint32_t i = 0; i < TD_COUNT_OF(names) && i < setup->cameras; i++) {
        image.name = td_wire_text_of(names[i]);
        obs->images[obs->image_count++] = image;
    }
    return TD_OK;
}

// What the edge would send and the server answer, encoded.
static td_err measure_lengths(const td_bench_setup *setup, size_t *ret_obs,
                              size_t *ret_action, td_errinfo *info)
{
    static const td_edge_outgoing outgoing = {.request = {.seq = 1000}};
    static const td_server_timing timing = {12345, 12345};
    const td_edge_core_settings settings = {
        .channels = TD_BENCH_JOINTS, .period_ns = 1, .boot = 1};
    float rows[TD_BENCH_ROWS * TD_BENCH_JOINTS] = {0};
    td_wire_obs obs;
    td_wire_action action;
    td_edge_observe_fill(&settings, "robot-1", "", &outgoing, 0, &obs);
    TD_TRY(add_frames(setup, &obs));
    const td_engine_item item = {
        .obs = &obs, .actions = rows, .rows = TD_BENCH_ROWS};
    td_server_answer("bench", &item, TD_BENCH_JOINTS, &timing, 1000, &action);

    TD_AUTO(td_wire_encoder) *encoder = NULL;
    TD_TRY(td_wire_encoder_new(&encoder));
    TD_TRY(td_wire_obs_encode(encoder, &obs, info));
    *ret_obs = td_wire_encoder_size(encoder);
    TD_TRY(td_wire_action_encode(encoder, &action, info));
    *ret_action = td_wire_encoder_size(encoder);
    return TD_OK;
}

static td_err start_echo(const char *endpoint, const char *link,
                         td_bench_answer answer, size_t bytes,
                         td_bench_bare *bare, td_errinfo *info)
{
    char reply[24];
    (void)snprintf(reply, sizeof reply, "%zu", bytes);
    const char *how =
        answer == TD_BENCH_HANDED_OVER ? "handed-over" : "at-once";
    const char *args[] = {"echo", endpoint, link, how, reply, NULL};
    TD_TRY(td_bench_child_start(args, &bare->echo, info));
    return td_bench_child_ready(&bare->echo, info);
}

static td_err start_ping(const td_bench_setup *setup, const char *endpoint,
                         const char *link, size_t bytes, size_t samples,
                         td_bench_bare *bare, td_errinfo *info)
{
    char numbers[3][24];
    (void)snprintf(numbers[0], sizeof numbers[0], "%zu", bytes);
    (void)snprintf(numbers[1], sizeof numbers[1], "%lld",
                   (long long)setup->fps);
    (void)snprintf(numbers[2], sizeof numbers[2], "%zu", samples);
    const char *args[] = {"ping",     endpoint,   link, numbers[0],
                          numbers[1], numbers[2], NULL};
    TD_TRY(td_bench_child_start(args, &bare->ping, info));
    return td_bench_child_ready(&bare->ping, info);
}

td_err td_bench_bare_start(const td_bench_setup *setup, td_bench_answer answer,
                           size_t samples, td_bench_bare *ret_bare,
                           td_errinfo *info)
{
    char endpoint[TD_BENCH_ENDPOINT_BYTES];
    size_t obs_bytes, action_bytes;
    td_bench_bare bare = {0};
    const char *link = setup->link == TD_BENCH_SHM ? "shm" : "plain";
    TD_TRY(measure_lengths(setup, &obs_bytes, &action_bytes, info));
    TD_TRY(td_bench_endpoint(setup->link, endpoint, info));
    td_err err = start_echo(endpoint, link, answer, action_bytes, &bare, info);
    if (err == TD_OK)
        err =
            start_ping(setup, endpoint, link, obs_bytes, samples, &bare, info);
    if (err != TD_OK) {
        td_bench_bare_end(&bare);
        return err;
    }
    *ret_bare = bare;
    return TD_OK;
}

void td_bench_bare_end(td_bench_bare *bare)
{
    td_bench_child_end(&bare->ping);
    td_bench_child_end(&bare->echo);
}

td_err td_bench_bare_block(td_bench_bare *bare,
                           double ret_us[TD_BENCH_BARE_QUANTILES],
                           td_errinfo *info)
{
    char line[TD_BENCH_LINE_BYTES];
    (void)kill(bare->ping.pid, SIGUSR1);
    TD_TRY(td_bench_child_line(&bare->ping, ++bare->blocks, line, info));
    if (sscanf(line, "%lf %lf", &ret_us[0], &ret_us[1]) == 2) return TD_OK;
    return td_fail(info, TD_ERR_IO, "the bare ping: %s", line);
}
