// SPDX-License-Identifier: Apache-2.0
#include "bench/footage.h"

#include "base/rand.h"
#include "bench/rig.h"
#include "robot/synthetic/frame.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOISE 6 // of 255, from least to most

static void add_noise(uint8_t *pixels, size_t bytes, td_rand *rand)
{
    for (size_t i = 0; i < bytes; i++) {
        int noise = (int)(td_rand_u64(rand) % NOISE) - NOISE / 2;
        if (pixels[i] + noise >= 0 && pixels[i] + noise <= UINT8_MAX)
            pixels[i] = (uint8_t)(pixels[i] + noise);
    }
}

td_err td_bench_footage_init(td_bench_footage *footage, uint32_t height,
                             uint32_t width)
{
    td_robot_synthetic_frame waves;
    td_rand rand;
    size_t bytes = (size_t)height * width * 3;
    TD_TRY(td_robot_synthetic_frame_init(&waves, height, width));
    uint8_t *frames = malloc(TD_BENCH_FOOTAGE_FRAMES * bytes);
    td_rand_init(&rand, 1);
    for (uint64_t i = 0; frames && i < TD_BENCH_FOOTAGE_FRAMES; i++) {
        td_robot_synthetic_frame_render(&waves, i, frames + i * bytes);
        add_noise(frames + i * bytes, bytes, &rand);
    }
    td_robot_synthetic_frame_done(&waves);
    if (!frames) return TD_ERR_NOMEM;
    *footage = (td_bench_footage){height, width, bytes, frames};
    return TD_OK;
}

void td_bench_footage_done(td_bench_footage *footage)
{
    free(TD_TAKE(footage->frames));
}

const uint8_t *td_bench_footage_frame(const td_bench_footage *footage,
                                      uint32_t camera, uint64_t number)
{
    uint64_t at = number + (uint64_t)camera * (TD_BENCH_FOOTAGE_FRAMES / 2);
    return footage->frames +
           at % TD_BENCH_FOOTAGE_FRAMES * footage->frame_bytes;
}

td_err td_bench_footage_write(const td_bench_footage *footage, const char *path,
                              td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    size_t written = fwrite(footage->frames, footage->frame_bytes,
                            TD_BENCH_FOOTAGE_FRAMES, file);
    if (fclose(file) == 0 && written == TD_BENCH_FOOTAGE_FRAMES) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%s: cannot write", path);
}

typedef struct footage_robot {
    td_robot_hardware base;
    const td_bench_footage *footage;
    _Atomic uint64_t number[TD_ROBOT_MAX_CAMERAS];
} footage_robot;

static void robot_close(td_robot_hardware *robot)
{
    free(robot);
}

static td_err robot_read(td_robot_hardware *robot, int64_t now_ns,
                         float *ret_state)
{
    (void)robot, (void)now_ns;
    for (int i = 0; i < TD_BENCH_JOINTS; i++)
        ret_state[i] = (float)i;
    return TD_OK;
}

static td_err robot_write(td_robot_hardware *robot, int64_t now_ns,
                          const float *command)
{
    (void)robot, (void)now_ns, (void)command;
    return TD_OK;
}

static td_err robot_frame(td_robot_hardware *robot, uint32_t camera,
                          int64_t now_ns, td_robot_picture *picture)
{
    footage_robot *self = (footage_robot *)robot;
    (void)now_ns;
    uint64_t number = atomic_fetch_add(&self->number[camera], 1);
    memcpy(picture->bytes,
           td_bench_footage_frame(self->footage, camera, number),
           self->footage->frame_bytes);
    return TD_OK;
}

td_err td_bench_footage_robot(const td_bench_footage *footage,
                              td_robot_hardware **ret_robot)
{
    static const td_robot_ops ops = {
        .name = "footage",
        .close = robot_close,
        .read = robot_read,
        .write = robot_write,
        .frame = robot_frame,
    };
    footage_robot *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->base.ops = &ops;
    self->footage = footage;
    *ret_robot = &self->base;
    return TD_OK;
}
