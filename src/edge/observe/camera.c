// SPDX-License-Identifier: Apache-2.0
// One camera, on the thread td-cam-N.
//
// Once a period the thread takes a free frame of the pool, has the robot fill
// it, and leaves it in a slot where the newest wins. The pool has three frames
// more than the recorder may keep: one is being filled, one is the newest, one
// is being looked at; so there is always one to fill, and nobody waits.
//
// Where the run is recorded, every frame that came goes into a ring as well,
// held once more for the recorder, until it gives the frame back. When the
// recorder holds as many as it may, only the time of arrival goes there, so
// that the dataset can say that a picture is missing.
//
// Lock: `lending` guards the transport's publisher, which lends places in
// shared memory to take frames into. It is held while a place is asked for, so
// that td_edge_camera_lend(NULL) returns when nobody uses the publisher any
// more. The robot's function runs without it.
//
// Stop: a flag is set, the thread woken from its pause. Drain: a frame under
// way is waited for, with a limit, since the robot may never return. Free: when
// the thread has ended, because the robot writes into memory of the pool.
#include "edge/observe/camera.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/ring.h"
#include "base/sync/slot.h"
#include "base/sync/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

// So long may a recorder be away before what came is forgotten.
#define RECORDED_NS (32 * TD_NS_PER_S)
#define LIVE 3 // frames: being taken, newest, looked at

struct td_edge_camera {
    td_robot_hardware *robot;
    uint32_t index;
    td_wire_text name; // for the log
    int64_t period_ns;
    size_t room;             // of a frame, in bytes
    pthread_mutex_t lending; // guards `pub`
    td_net_pub *pub;         // lends places; NULL: nobody does
    td_edge_pool *pool;
    td_slot *newest; // td_edge_frame *, each of its places holds one, or NULL
    td_ring *taken;  // td_edge_arrival, to who records; NULL: nobody does
    uint32_t kept_max;
    _Atomic uint32_t kept; // by who records
    td_event wake;
    _Atomic bool stopping;
    _Atomic uint64_t taken_count, failed;
    td_thread *thread;
};

static bool is_stopping(const td_edge_camera *camera)
{
    return atomic_load_explicit(&camera->stopping, memory_order_relaxed);
}

static void note_failure(td_edge_camera *camera, td_err err)
{
    uint64_t count = atomic_fetch_add(&camera->failed, 1) + 1;
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN, "camera %.*s: %s (%llu so far)",
                    (int)camera->name.size, camera->name.data, td_err_text(err),
                    (unsigned long long)count);
}

// What is in the slot's back place nobody looks at any more. So there is always
// one: of LIVE, one is the newest and one is looked at.
static td_edge_frame *frame_to_fill(td_edge_camera *camera)
{
    td_edge_frame **back = td_slot_back(camera->newest);
    if (*back) td_edge_pool_drop(TD_TAKE(*back));
    return td_edge_pool_take(camera->pool);
}

static void hand_to_recorder(td_edge_camera *camera, td_edge_frame *frame)
{
    bool room = atomic_load(&camera->kept) < camera->kept_max;
    const td_edge_arrival taken = {
        .arrived_ns = td_clock_monotonic_ns(),
        .frame = room ? frame : NULL,
    };
    if (room) {
        td_edge_pool_hold(frame);
        atomic_fetch_add(&camera->kept, 1);
    }
    if (td_ring_push(camera->taken, &taken) != TD_OK && room)
        td_edge_camera_give_back(camera, frame);
}

static void borrow_place(td_edge_camera *camera, td_edge_frame *frame)
{
    td_net_loan *loan;
    pthread_mutex_lock(&camera->lending);
    if (camera->pub && td_net_lend(camera->pub, camera->room, &loan) == TD_OK)
        td_edge_pool_lend(frame, loan);
    pthread_mutex_unlock(&camera->lending);
}

static void take(td_edge_camera *camera)
{
    td_edge_frame *frame = frame_to_fill(camera);
    borrow_place(camera, frame);
    int64_t now_ns = td_clock_monotonic_ns();
    td_robot_picture picture = {.bytes = frame->bytes, .room = camera->room};
    td_err err =
        td_robot_hardware_frame(camera->robot, camera->index, now_ns, &picture);
    if (err != TD_OK) {
        td_edge_pool_drop(frame);
        note_failure(camera, err);
        return;
    }
    frame->captured_ns = now_ns;
    frame->jpeg = picture.jpeg;
    if (camera->taken) hand_to_recorder(camera, frame);
    td_edge_frame **back = td_slot_back(camera->newest);
    *back = frame;
    (void)td_slot_publish(camera->newest);
    atomic_fetch_add_explicit(&camera->taken_count, 1, memory_order_release);
}

// Periods that went by while a frame was waited for are not made up for.
static void run(void *user)
{
    td_edge_camera *camera = user;
    int64_t due_ns = td_clock_monotonic_ns();
    while (!is_stopping(camera)) {
        take(camera);
        int64_t late_ns = td_clock_monotonic_ns() - due_ns;
        due_ns += (late_ns / camera->period_ns + 1) * camera->period_ns;
        (void)td_event_wait_until(&camera->wake, due_ns);
    }
}

static td_err camera_init(td_edge_camera *camera, td_errinfo *info)
{
    char name[16];
    size_t ring = (size_t)(RECORDED_NS / camera->period_ns) + camera->kept_max;
    td_event_init(&camera->wake);
    TD_TRY(
        td_edge_pool_new(LIVE + camera->kept_max, camera->room, &camera->pool));
    TD_TRY(td_slot_new(sizeof(td_edge_frame *), &camera->newest));
    if (camera->kept_max > 0)
        TD_TRY(td_ring_new(ring, sizeof(td_edge_arrival), &camera->taken));
    (void)snprintf(name, sizeof name, "td-cam-%u", camera->index % 1000);
    const td_thread_config config = {.name = name, .cpu = -1};
    return td_thread_start(&config, run, camera, &camera->thread, info);
}

td_err td_edge_camera_open(td_robot_hardware *robot, uint32_t index,
                           const td_wire_camera *wire, int64_t period_ns,
                           uint32_t kept, td_edge_camera **ret_camera,
                           td_errinfo *info)
{
    size_t pixel_bytes = (size_t)wire->height * wire->width * 3;
    if (pixel_bytes == 0 || period_ns <= 0)
        return td_fail(info, TD_ERR_INVALID,
                       "camera %.*s: needs a size and a period above 0",
                       (int)wire->name.size, wire->name.data);
    TD_AUTO(td_edge_camera) *camera = calloc(1, sizeof *camera);
    if (!camera) return TD_ERR_NOMEM;
    camera->robot = robot;
    camera->index = index;
    camera->name = wire->name;
    camera->period_ns = period_ns;
    camera->kept_max = kept;
    camera->room = pixel_bytes + TD_ROBOT_JPEG_MORE;
    pthread_mutex_init(&camera->lending, NULL);
    TD_TRY(camera_init(camera, info));
    *ret_camera = TD_TAKE(camera);
    return TD_OK;
}

void td_edge_camera_stop(td_edge_camera *camera)
{
    atomic_store(&camera->stopping, true);
    td_event_signal(&camera->wake);
}

bool td_edge_camera_end(td_edge_camera *camera, int64_t until_ns)
{
    td_edge_camera_stop(camera);
    if (camera->thread && !td_thread_join_until(camera->thread, until_ns))
        return false;
    camera->thread = NULL;
    return true;
}

void td_edge_camera_close(td_edge_camera *camera)
{
    (void)td_edge_camera_end(camera, INT64_MAX);
    if (camera->taken) td_ring_free(camera->taken);
    if (camera->newest) td_slot_free(camera->newest);
    if (camera->pool) td_edge_pool_free(camera->pool);
    pthread_mutex_destroy(&camera->lending);
    free(camera);
}

void td_edge_camera_lend(td_edge_camera *camera, td_net_pub *pub)
{
    pthread_mutex_lock(&camera->lending);
    camera->pub = pub;
    pthread_mutex_unlock(&camera->lending);
}

const td_edge_frame *td_edge_camera_newest(td_edge_camera *camera)
{
    static const td_edge_frame none;
    (void)td_slot_refresh(camera->newest);
    const td_edge_frame *const *front = td_slot_front(camera->newest);
    return *front ? *front : &none;
}

bool td_edge_camera_next(td_edge_camera *camera, td_edge_arrival *ret_taken)
{
    return td_ring_pop(camera->taken, ret_taken) == TD_OK;
}

void td_edge_camera_give_back(td_edge_camera *camera, td_edge_frame *frame)
{
    td_edge_pool_drop(frame);
    atomic_fetch_sub(&camera->kept, 1);
}

bool td_edge_camera_is_fresh(const td_edge_camera *camera,
                             const td_edge_frame *frame, int64_t now_ns)
{
    return frame->captured_ns != 0 &&
           now_ns - frame->captured_ns <=
               TD_EDGE_CAMERA_STALE_PERIODS * camera->period_ns;
}

uint64_t td_edge_camera_taken(const td_edge_camera *camera)
{
    return atomic_load_explicit(&camera->taken_count, memory_order_acquire);
}

uint64_t td_edge_camera_failed(const td_edge_camera *camera)
{
    return atomic_load_explicit(&camera->failed, memory_order_relaxed);
}

td_err td_edge_cameras_open(td_edge_cameras *cameras,
                            const td_edge_cameras_config *config,
                            td_errinfo *info)
{
    *cameras =
        (td_edge_cameras){.wire = config->cameras, .count = config->count};
    for (uint32_t i = 0; i < config->count; i++)
        TD_TRY(td_edge_camera_open(config->robot, i, &config->cameras[i],
                                   config->period_ns[i], config->kept,
                                   &cameras->each[i], info));
    return TD_OK;
}

void td_edge_cameras_stop(const td_edge_cameras *cameras)
{
    for (uint32_t i = 0; i < cameras->count; i++)
        if (cameras->each[i]) td_edge_camera_stop(cameras->each[i]);
}

static bool end_one(const td_edge_cameras *cameras, uint32_t index,
                    int64_t until_ns)
{
    td_wire_text name = cameras->wire[index].name;
    if (!cameras->each[index] ||
        td_edge_camera_end(cameras->each[index], until_ns))
        return true;
    td_log_text(TD_LOG_ERROR,
                "edge: cannot close: camera %.*s's frame() has not returned",
                (int)name.size, name.data);
    return false;
}

bool td_edge_cameras_end(const td_edge_cameras *cameras, int64_t until_ns)
{
    bool ended = true;
    for (uint32_t i = 0; i < cameras->count; i++)
        ended &= end_one(cameras, i, until_ns);
    return ended;
}

void td_edge_cameras_close(td_edge_cameras *cameras)
{
    for (uint32_t i = 0; i < cameras->count; i++)
        if (cameras->each[i]) td_edge_camera_close(cameras->each[i]);
    *cameras = (td_edge_cameras){0};
}
