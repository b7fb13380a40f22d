// SPDX-License-Identifier: Apache-2.0
#include "bench/rig.h"
#include "media/jpeg.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define JPEG_QUALITY 85

typedef struct still {
    td_robot_hardware base;
    pthread_mutex_t lock;
    pthread_cond_t unblocked;
    td_bench_block blocked; // guarded by the lock
    size_t size, jpeg;
    uint8_t bytes[TD_BENCH_FRAME_BYTES];
} still;

static size_t frame_bytes(const td_bench_setup *setup)
{
    return (size_t)setup->height * setup->width * 3;
}

static void wait_while(still *self, td_bench_block what)
{
    pthread_mutex_lock(&self->lock);
    while (self->blocked == what)
        pthread_cond_wait(&self->unblocked, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

static void still_close(td_robot_hardware *robot)
{
    still *self = (still *)robot;
    pthread_cond_destroy(&self->unblocked);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static td_err still_read(td_robot_hardware *robot, int64_t now_ns,
                         float *ret_state)
{
    (void)now_ns;
    wait_while((still *)robot, TD_BENCH_BLOCK_DRIVER);
    for (int i = 0; i < TD_BENCH_JOINTS; i++)
        ret_state[i] = (float)i;
    return TD_OK;
}

static td_err still_write(td_robot_hardware *robot, int64_t now_ns,
                          const float *command)
{
    (void)now_ns, (void)command;
    wait_while((still *)robot, TD_BENCH_BLOCK_DRIVER);
    return TD_OK;
}

static td_err still_frame(td_robot_hardware *robot, uint32_t camera,
                          int64_t now_ns, td_robot_picture *picture)
{
    still *self = (still *)robot;
    (void)now_ns;
    if (camera == 0) wait_while(self, TD_BENCH_BLOCK_CAMERA);
    memcpy(picture->bytes, self->bytes, self->size);
    picture->jpeg = self->jpeg;
    return TD_OK;
}

static td_err compress(const td_bench_setup *setup, td_robot_picture *picture)
{
    td_slice jpeg;
    TD_AUTO(td_media_jpeg_encoder) *encoder = NULL;
    TD_TRY(
        td_media_jpeg_encoder_new(JPEG_QUALITY, TD_MEDIA_CHROMA_420, &encoder));
    TD_TRY(td_media_jpeg_encode(encoder, picture->bytes, setup->height,
                                setup->width, &jpeg, NULL));
    if (jpeg.size > picture->room) return TD_ERR_LIMIT;
    memcpy(picture->bytes, jpeg.data, jpeg.size);
    picture->jpeg = jpeg.size;
    return TD_OK;
}

td_err td_bench_still_picture(const td_bench_setup *setup,
                              td_robot_picture *picture)
{
    uint32_t noise = 1;
    size_t size = frame_bytes(setup);
    if (size > picture->room) return TD_ERR_LIMIT;
    for (size_t i = 0; i < size; i++) {
        noise = noise * 1664525 + 1013904223;
        picture->bytes[i] = (uint8_t)(noise >> 24);
    }
    return setup->raw || size == 0 ? TD_OK : compress(setup, picture);
}

td_err td_bench_still_open(const td_bench_setup *setup,
                           td_robot_hardware **ret_robot)
{
    static const td_robot_ops ops = {
        .name = "still",
        .close = still_close,
        .read = still_read,
        .write = still_write,
        .frame = still_frame,
    };
    still *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->base.ops = &ops;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->unblocked, NULL);
    td_robot_picture picture = {.bytes = self->bytes,
                                .room = sizeof self->bytes};
    td_err err = td_bench_still_picture(setup, &picture);
    self->jpeg = picture.jpeg;
    self->size = picture.jpeg ? picture.jpeg : frame_bytes(setup);
    if (err == TD_OK)
        *ret_robot = &self->base;
    else
        still_close(&self->base);
    return err;
}

void td_bench_still_block(td_robot_hardware *robot, td_bench_block what)
{
    still *self = (still *)robot;
    pthread_mutex_lock(&self->lock);
    self->blocked = what;
    pthread_cond_broadcast(&self->unblocked);
    pthread_mutex_unlock(&self->lock);
}
