// SPDX-License-Identifier: Apache-2.0
// The tick and the merge thread by side: what the tick may not do, and what
// holds when the two run at once.
#include "base/sync/ring.h"
#include "base/sync/thread.h"
#include "edge/core/core_fixture.h"

#include <sched.h>
#include <stdlib.h>

#define ROWS 8
#define TICKS 20000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#define OWN_MALLOC                                                             \
    (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define OWN_MALLOC 1
#endif

static _Thread_local uint64_t allocations, frees;

#if OWN_MALLOC
// The sanitizers bring their own; otherwise every allocation of this program
// comes through here.
void *libc_malloc(size_t size) __asm__("__libc_malloc");
void *libc_calloc(size_t nmemb, size_t size) __asm__("__libc_calloc");
void *libc_realloc(void *ptr, size_t size) __asm__("__libc_realloc");
void *libc_memalign(size_t alignment, size_t size) __asm__("__libc_memalign");
void libc_free(void *ptr) __asm__("__libc_free");

void *malloc(size_t size)
{
    allocations++;
    return libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
    allocations++;
    return libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
    allocations++;
    return libc_realloc(ptr, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return libc_memalign(alignment, size);
}

void free(void *ptr)
{
    if (ptr) frees++;
    libc_free(ptr);
}
#endif

static void the_tick_allocates_nothing(void **state)
{
    (void)state;
    if (!OWN_MALLOC) skip();
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 3.0 / ROWS;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    uint64_t of_the_tick = 0;
    uint64_t of_the_merge = 0;
    for (int64_t i = 0; i < 1000; i++) {
        uint64_t before = allocations;
        td_edge_step step = robot_tick_alone(core, i * PERIOD_NS, 1);
        of_the_tick += allocations - before;
        if (!step.ask) continue;
        robot_send(core, step.seq, i * PERIOD_NS);
        before = allocations;
        robot_answered(core, i * PERIOD_NS, step.seq, ROWS, 0);
        of_the_merge += allocations - before;
    }
    assert_int_equal(of_the_tick, 0);
    assert_true(of_the_merge > 100); // so this test can see them
}

static void old_timelines_do_not_pile_up(void **state)
{
    (void)state;
    if (!OWN_MALLOC) skip();
    const td_edge_core_settings settings = robot_settings();
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    uint64_t before = allocations - frees;
    for (uint64_t seq = 1; seq <= 1000; seq++) {
        robot_send(core, seq, 0);
        robot_answered(core, 0, seq, ROWS, 0);
        (void)robot_tick_alone(core, 0, 0);
        // The present one, and the one that the tick was on.
        assert_true(allocations - frees <= before + 2);
    }
}

// AddressSanitizer watches: the tick reads the timeline that it is on.
static void a_timeline_lives_until_the_tick_has_moved_on(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = 1;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    uint64_t seq = 0;
    for (int round = 0; round < 50; round++) {
        for (int merges = 0; merges < round % 5; merges++) {
            robot_send(core, ++seq, 0);
            robot_answered(core, 0, seq, ROWS, 0);
        }
        for (int ticks = 0; ticks < round % 3; ticks++)
            (void)robot_tick_alone(core, 0, 0);
    }
    assert_int_equal(robot_counts(core).outcomes[TD_EDGE_MERGED], seq);
}

// AddressSanitizer watches: a reset retires what the merge is still reading.
static void a_timeline_lives_until_it_is_blended(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.aggregate = TD_EDGE_AVERAGE;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    robot_send(core, 1, 0);
    robot_answered(core, 0, 1, ROWS, 0);
    robot_send(core, 2, 0);
    robot_answer answer;
    answer_fill(&answer, 2, ROWS, 100);
    answer.action.superseded[0] = 3;
    answer.action.superseded_count = 1;
    td_edge_merge_job job;
    td_edge_core_answer_begin(core, 0, SERVER, &answer.action, &job);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(td_edge_core_reset(core), TD_OK);
        (void)robot_tick_alone(core, 0, 0);
    }
    robot_send(core, 3, 0); // of the present episode
    assert_int_equal(td_edge_core_answer_blend(core, &job), TD_OK);
    assert_float_equal(job.next->data[0], 50, 0);
    td_edge_answer ended = td_edge_core_answer_end(core, &job);
    assert_true(ended.stray);
    assert_int_equal(ended.why_stray, TD_EDGE_STRAY_EPISODE);
    td_edge_counts counts = robot_counts(core);
    assert_int_equal(counts.strays[TD_EDGE_STRAY_EPISODE], 1);
    assert_int_equal(counts.outcomes[TD_EDGE_RESET], 1);
    assert_int_equal(counts.outcomes[TD_EDGE_PENDING], 1);
    assert_false(robot_tick_alone(core, 0, 0).fresh);
}

typedef struct both {
    td_edge_core *core;
    td_ring *asked; // of td_edge_sent, from the tick to the merge
    _Atomic bool stop;
    td_err failed; // of the merge thread
} both;

// Channel 0 of each row is the step it is meant for, channel 1 the seq.
static td_err answer_steps(td_edge_core *core, const td_edge_sent *sent)
{
    float data[ROWS][CHANNELS];
    for (uint32_t k = 0; k < ROWS; k++) {
        data[k][0] = (float)(sent->cursor + k);
        data[k][1] = (float)sent->seq;
    }
    const td_wire_action action = {
        .ident = {.boot = 7, .route = 2, .episode = 5, .seq = sent->seq},
        .server = td_wire_text_of(SERVER),
        .actions = {.dtype = TD_WIRE_F32,
                    .rank = 2,
                    .shape = {ROWS, CHANNELS},
                    .data = data,
                    .size = sizeof data},
    };
    td_edge_answer answer;
    if (!td_edge_core_sent(core, sent)) return TD_ERR_INTERNAL;
    return td_edge_core_answer(core, sent->put_ns, SERVER, &action, &answer);
}

static void merge_side(void *user)
{
    both *b = user;
    while (!atomic_load(&b->stop)) {
        td_edge_sent sent;
        if (td_ring_pop(b->asked, &sent) != TD_OK) {
            sched_yield();
            continue;
        }
        td_err err = answer_steps(b->core, &sent);
        if (err != TD_OK) b->failed = err;
    }
}

// Ticks until `rows` have played; counts what should not be.
static uint64_t tick_side(both *b, uint64_t rows)
{
    uint64_t wrong = 0;
    uint64_t seq = 0;      // played last
    uint64_t promised = 0; // the step after the last row of the last answer
    for (uint64_t tick = 0; td_edge_core_cursor(b->core) < rows; tick++) {
        uint64_t step_number = td_edge_core_cursor(b->core);
        td_edge_step step =
            robot_tick_alone(b->core, (int64_t)tick * PERIOD_NS, 1);
        uint64_t cursor = td_edge_core_cursor(b->core);
        wrong += cursor != step_number + step.fresh;
        if (step.fresh) {
            wrong += step.command[0] != (float)step_number;
            wrong += step.command[1] < (float)seq;
            seq = (uint64_t)step.command[1];
        } else {
            sched_yield();
        }
        if (!step.ask) continue;
        // It asks again only after the last answer, whose rows it must see.
        wrong += cursor + step.left < promised;
        promised = cursor + ROWS;
        td_edge_sent sent = {.seq = step.seq, .episode = 5, .cursor = cursor};
        wrong += td_ring_push(b->asked, &sent) != TD_OK;
    }
    return wrong;
}

static void both_sides_at_once_play_every_step_in_order(void **state)
{
    (void)state;
    td_edge_core_settings settings = robot_settings();
    settings.ask.threshold = (ROWS - 2.0) / ROWS;
    settings.ask.resend_min_ns = settings.ask.resend_max_ns = INT64_MAX;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    TD_AUTO(td_ring) *asked = NULL;
    assert_int_equal(td_ring_new(4, sizeof(td_edge_sent), &asked), TD_OK);
    both b = {.core = core, .asked = asked};
    const td_thread_config config = {.name = "merge", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(td_thread_start(&config, merge_side, &b, &thread, NULL),
                     TD_OK);
    uint64_t wrong = tick_side(&b, TICKS);
    atomic_store(&b.stop, true);
    td_thread_join(thread);

    assert_int_equal(wrong, 0);
    assert_int_equal(b.failed, TD_OK);
    td_edge_counts counts = robot_counts(core);
    assert_int_equal(counts.fresh, TICKS);
    assert_true(counts.outcomes[TD_EDGE_MERGED] >= TICKS / ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tick_allocates_nothing),
        cmocka_unit_test(old_timelines_do_not_pile_up),
        cmocka_unit_test(a_timeline_lives_until_the_tick_has_moved_on),
        cmocka_unit_test(a_timeline_lives_until_it_is_blended),
        cmocka_unit_test(both_sides_at_once_play_every_step_in_order),
    };
    return cmocka_run_group_tests_name("edge/core_threads", tests, NULL, NULL);
}
