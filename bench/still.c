// SPDX-License-Identifier: Apache-2.0
#include "bench/rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct still {
    td_robot base;
    pthread_mutex_t lock;
    pthread_cond_t unblocked;
    td_bench_block blocked; // guarded by the lock
    size_t frame_bytes;
    uint8_t frame[];
} still;

static void wait_while(still *self, td_bench_block what)
{
    pthread_mutex_lock(&self->lock);
    while (self->blocked == what)
        pthread_cond_wait(&self->unblocked, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

static void still_close(td_robot *robot)
{
    still *self = (still *)robot;
    pthread_cond_destroy(&self->unblocked);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static td_err still_read(td_robot *robot, int64_t now_ns, float *ret_state)
{
    (void)now_ns;
    wait_while((still *)robot, TD_BENCH_BLOCK_DRIVER);
    for (int i = 0; i < TD_BENCH_JOINTS; i++)
        ret_state[i] = (float)i;
    return TD_OK;
}

static td_err still_write(td_robot *robot, int64_t now_ns, const float *command)
{
    (void)now_ns, (void)command;
    wait_while((still *)robot, TD_BENCH_BLOCK_DRIVER);
    return TD_OK;
}

static td_err still_frame(td_robot *robot, uint32_t camera, int64_t now_ns,
                          td_robot_picture *picture)
{
    still *self = (still *)robot;
    (void)now_ns;
    if (camera == 0) wait_while(self, TD_BENCH_BLOCK_CAMERA);
    memcpy(picture->bytes, self->frame, self->frame_bytes);
    return TD_OK;
}

td_err td_bench_still_open(const td_bench_setup *setup, td_robot **ret_robot)
{
    static const td_robot_ops ops = {
        .name = "still",
        .close = still_close,
        .read = still_read,
        .write = still_write,
        .frame = still_frame,
    };
    size_t bytes = (size_t)setup->height * setup->width * 3;
    still *self = calloc(1, sizeof *self + bytes);
    if (!self) return TD_ERR_NOMEM;
    self->base.ops = &ops;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->unblocked, NULL);
    self->frame_bytes = bytes;
    for (size_t i = 0; i < bytes; i++)
        self->frame[i] = (uint8_t)(i * 7);
    *ret_robot = &self->base;
    return TD_OK;
}

void td_bench_still_block(td_robot *robot, td_bench_block what)
{
    still *self = (still *)robot;
    pthread_mutex_lock(&self->lock);
    self->blocked = what;
    pthread_cond_broadcast(&self->unblocked);
    pthread_mutex_unlock(&self->lock);
}
