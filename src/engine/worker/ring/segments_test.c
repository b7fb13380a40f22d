// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/ring/segments.h"

#include "base/err.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define POOL_BYTES ((size_t)1 << 20)
#define FRAME_BYTES 1000

static td_engine_worker_segments segments;
static td_worker_offer offer;
static td_worker_hello hello;
static char name[64]; // of the pool
static uint8_t *pool; // as the transport maps it

static void *map(int flags, void *at, const char *file)
{
    int fd = file ? shm_open(file, O_RDWR | O_CREAT, 0600) : -1;
    if (file) assert_int_equal(ftruncate(fd, POOL_BYTES), 0);
    void *memory = mmap(at, POOL_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    if (file) (void)close(fd);
    return memory;
}

static int setup(void **state)
{
    (void)state;
    segments = (td_engine_worker_segments){0};
    offer = (td_worker_offer){0};
    hello = (td_worker_hello){0};
    (void)snprintf(name, sizeof name, "/tendon-test-%d", (int)getpid());
    pool = map(MAP_SHARED, NULL, name);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)munmap(pool, POOL_BYTES);
    (void)shm_unlink(name);
    return 0;
}

// The places of a robot's two frames, one behind the other.
static uint64_t place(const uint8_t *data, uint64_t *ret_second)
{
    uint64_t places[TD_WIRE_MAX_IMAGES];
    const td_wire_obs obs = {
        .images = {{.codec = TD_WIRE_RAW, .data = data, .size = FRAME_BYTES},
                   {.codec = TD_WIRE_RAW,
                    .data = data + FRAME_BYTES,
                    .size = FRAME_BYTES}},
        .image_count = 2,
    };
    td_engine_worker_segments_place(&segments, &hello, &obs, places);
    if (ret_second) *ret_second = places[1];
    return places[0];
}

// As the supervisor does. False: nothing has changed.
static bool tend(void)
{
    td_engine_worker_segments_change change;
    td_engine_worker_segments_scan(&segments, &change);
    return td_engine_worker_segments_apply(&segments, &change, &offer);
}

// As a worker does that can have them all.
static void map_all(void)
{
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++)
        hello.segments[i] = offer.segments[i].number;
}

static void offer_pool(void)
{
    assert_int_equal(place(pool, NULL), 0);
    assert_true(tend());
    map_all();
}

static void frames_are_seen_where_they_lie(void **state)
{
    (void)state;
    char path[128];
    uint64_t second = 0;
    (void)snprintf(path, sizeof path, "/dev/shm%s", name);
    offer_pool();
    assert_int_equal(offer.segments_changed, 1);
    assert_string_equal(offer.segments[0].path, path);
    assert_int_equal(place(pool + 77, &second),
                     UINT64_C(1) << TD_WORKER_SEGMENT_SHIFT | 77);
    assert_int_equal(second, UINT64_C(1) << TD_WORKER_SEGMENT_SHIFT |
                                 (77 + FRAME_BYTES));
    assert_false(tend());
}

static void a_worker_that_says_nothing_gets_copies(void **state)
{
    (void)state;
    offer_pool();
    hello.segments[0] = 0;
    assert_int_equal(place(pool, NULL), 0);
    assert_false(tend()); // nor is it looked for again
}

static void a_frame_beyond_the_end_is_copied(void **state)
{
    (void)state;
    uint64_t second = 1;
    offer_pool();
    assert_true(place(pool + POOL_BYTES - FRAME_BYTES, &second) != 0);
    assert_int_equal(second, 0);
}

static void memory_of_our_own_is_copied(void **state)
{
    (void)state;
    static uint8_t own[2 * FRAME_BYTES];
    assert_int_equal(place(own, NULL), 0);
    assert_false(tend());
    uint8_t *shared = map(MAP_SHARED | MAP_ANONYMOUS, NULL, NULL);
    assert_int_equal(place(shared, NULL), 0);
    assert_false(tend());
    (void)munmap(shared, POOL_BYTES);
}

static void a_jpeg_is_for_us_to_decode(void **state)
{
    (void)state;
    uint64_t places[TD_WIRE_MAX_IMAGES];
    const td_wire_obs obs = {
        .images = {{.codec = TD_WIRE_JPEG, .data = pool, .size = FRAME_BYTES}},
        .image_count = 1};
    offer_pool();
    td_engine_worker_segments_place(&segments, &hello, &obs, places);
    assert_int_equal(places[0], 0);
}

static void another_file_at_the_same_address_is_seen(void **state)
{
    (void)state;
    char other[80];
    (void)snprintf(other, sizeof other, "%s-other", name);
    offer_pool();
    map(MAP_SHARED | MAP_FIXED, pool, other);
    assert_int_equal(place(pool, NULL), 0);
    assert_true(tend());
    assert_non_null(strstr(offer.segments[0].path, "-other"));
    assert_int_equal(place(pool, NULL), 0); // the worker has the one before
    map_all();
    assert_true(place(pool, NULL) != 0);
    (void)shm_unlink(other);
}

static void memory_at_the_same_address_is_seen(void **state)
{
    (void)state;
    offer_pool();
    map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, pool, NULL);
    assert_int_equal(place(pool, NULL), 0);
    assert_true(tend());
    assert_int_equal(offer.segments[0].number, 0);
}

static void a_file_that_was_removed_is_let_go(void **state)
{
    (void)state;
    offer_pool();
    assert_int_equal(shm_unlink(name), 0);
    assert_int_equal(place(pool, NULL), 0);
    assert_true(tend());
    assert_int_equal(offer.segments[0].number, 0);
    assert_int_equal(offer.segments_changed, 2);
    assert_int_equal(place(pool, NULL), 0);
    assert_false(tend());
}

static void when_all_places_are_taken_frames_are_copied(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++) {
        uint8_t *at = map(MAP_SHARED, NULL, name);
        assert_int_equal(place(at, NULL), 0);
        assert_true(tend());
    }
    map_all();
    assert_int_equal(place(pool, NULL), 0);
    (void)tend();
    map_all();
    assert_int_equal(place(pool, NULL), 0);
    for (uint32_t i = 0; i < TD_WORKER_SEGMENTS; i++)
        (void)munmap((void *)segments.known[i].begin, POOL_BYTES);
    assert_true(tend());
    assert_int_equal(offer.segments[TD_WORKER_SEGMENTS - 1].number, 0);
}

static void another_worker_begins_with_none(void **state)
{
    (void)state;
    offer_pool();
    td_engine_worker_segments_forget(&segments);
    offer = (td_worker_offer){0};
    assert_int_equal(place(pool, NULL), 0);
    assert_true(tend());
    assert_int_equal(place(pool, NULL), 0); // what the last one said
    map_all();
    assert_true(place(pool, NULL) != 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(frames_are_seen_where_they_lie),
        TEST(a_worker_that_says_nothing_gets_copies),
        TEST(a_frame_beyond_the_end_is_copied),
        TEST(memory_of_our_own_is_copied),
        TEST(a_jpeg_is_for_us_to_decode),
        TEST(another_file_at_the_same_address_is_seen),
        TEST(memory_at_the_same_address_is_seen),
        TEST(a_file_that_was_removed_is_let_go),
        TEST(when_all_places_are_taken_frames_are_copied),
        TEST(another_worker_begins_with_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
