// SPDX-License-Identifier: Apache-2.0
// Four bugs of the prototype that this edge replaces, each as one check that is
// run twice: over a small model of what the prototype did, where it must fail,
// and over the edge, where it must hold. A model that waits is also run without
// its bug, where the check must hold: so it fails because of the bug alone.
//
// A model lives in time of its own. The edge runs with its threads; the test's
// thread works the server, and nothing hangs on how long anything takes. In
// this program td_net_put() is wrapped, so that a link may be made to clog.
#include "edge/core/core_fixture.h"
#include "edge/edge_fixture.h"
#include "edge/observe/similar.h"

#include <pthread.h>
#include <stdatomic.h>

#define PATIENCE_NS (30 * TD_NS_PER_S)
#define LOOK_NS (2 * TD_NS_PER_MS)

// Both have some of their time pass; false: all of their patience has.
typedef bool live_fn(void *self);

static int64_t world_until_ns;

static bool world_live(void *self)
{
    world *w = self;
    int64_t now_ns = td_clock_monotonic_ns();
    fake_server_work(&w->fake_servers[0]);
    td_edge_report_get(w->edge, &w->report);
    (void)td_event_wait_until(&w->wake, now_ns + LOOK_NS);
    return now_ns < world_until_ns;
}

// Attached, and playing what the server sends.
static fake_server *world_begin(world *w)
{
    fake_server *p = fake_server_open(w, 0, "gpu-1");
    world_stream(w);
    world_until(w, has_merged_twenty);
    world_until_ns = td_clock_monotonic_ns() + PATIENCE_NS;
    return p;
}

// BUG-1: the control loop sent the observation itself, and stood still until
// the link had taken all of it.

typedef struct sender_ops {
    live_fn *live;
    uint64_t (*ticks)(void *self);  // control steps so far
    bool (*is_sending)(void *self); // the link has not taken all of it yet
} sender_ops;

static bool goes_on_while_the_link_is_clogged(const sender_ops *ops, void *self)
{
    while (!ops->is_sending(self))
        if (!ops->live(self)) return false;
    uint64_t enough = ops->ticks(self) + 100;
    while (ops->ticks(self) < enough)
        if (!ops->live(self) || !ops->is_sending(self)) return false;
    return true;
}

// A loop that commands, sends and sleeps, over a link that takes LINK_NS for
// each observation.
#define LINK_NS (200 * PERIOD_NS)

typedef struct old_loop {
    bool sends_beside; // without its bug: it goes on while the link is busy
    int64_t now_ns, link_until_ns;
    uint64_t ticks, sent;
} old_loop;

static bool old_loop_is_sending(void *self)
{
    const old_loop *loop = self;
    return loop->now_ns < loop->link_until_ns;
}

// One period.
static bool old_loop_live(void *self)
{
    old_loop *loop = self;
    loop->now_ns += PERIOD_NS;
    bool sending = old_loop_is_sending(loop);
    if (!sending || loop->sends_beside) loop->ticks++;
    if (!sending) {
        loop->link_until_ns = loop->now_ns + LINK_NS;
        loop->sent++;
    }
    return loop->now_ns < PATIENCE_NS;
}

static uint64_t old_loop_ticks(void *self)
{
    return ((old_loop *)self)->ticks;
}

static struct {
    pthread_t tester; // and the fake servers': never clogged
    _Atomic bool clogged, sending;
    td_event freed;
} slow_link;

td_err __real_td_net_put(td_net_pub *pub, const td_slice *parts, size_t count,
                         td_net_release release, void *user);
td_err __wrap_td_net_put(td_net_pub *pub, const td_slice *parts, size_t count,
                         td_net_release release, void *user);

td_err __wrap_td_net_put(td_net_pub *pub, const td_slice *parts, size_t count,
                         td_net_release release, void *user)
{
    if (atomic_load(&slow_link.clogged) &&
        !pthread_equal(pthread_self(), slow_link.tester)) {
        atomic_store(&slow_link.sending, true);
        (void)td_event_wait_until(&slow_link.freed, INT64_MAX);
        atomic_store(&slow_link.sending, false);
    }
    return __real_td_net_put(pub, parts, count, release, user);
}

static void link_clog(void)
{
    slow_link.tester = pthread_self();
    td_event_init(&slow_link.freed);
    atomic_store(&slow_link.clogged, true);
}

static void link_free(void)
{
    atomic_store(&slow_link.clogged, false);
    td_event_signal(&slow_link.freed);
}

static uint64_t world_ticks(void *self)
{
    return ((world *)self)->report.counts.ticks;
}

static bool world_is_sending(void *self)
{
    (void)self;
    return atomic_load(&slow_link.sending);
}

static void bug_1_sending_blocks_the_control_loop(void **state)
{
    static const sender_ops old = {old_loop_live, old_loop_ticks,
                                   old_loop_is_sending};
    static const sender_ops edge = {world_live, world_ticks, world_is_sending};
    world *w = *state;
    old_loop loop = {0}, repaired = {.sends_beside = true};
    assert_false(goes_on_while_the_link_is_clogged(&old, &loop));
    assert_true(loop.sent > 1); // it goes on, at the pace of the link
    assert_int_equal(loop.ticks, loop.sent);
    assert_true(goes_on_while_the_link_is_clogged(&old, &repaired));

    (void)world_begin(w);
    link_clog();
    bool goes_on = goes_on_while_the_link_is_clogged(&edge, w);
    link_free();
    assert_true(goes_on);
}

// BUG-2: a new chunk was aggregated with the queue outside the queue's lock,
// and what the control loop took from it meanwhile was put back with the
// result.

#define OLD_STEPS 10
#define NEW_STEPS 14

typedef struct merger_ops {
    // Queues a row for each step from `first` to `end`; `blend` makes those
    // that are known already.
    void (*merge)(void *self, uint64_t first, uint64_t end, float fraction,
                  td_edge_blend_fn blend, void *user);
    bool (*take)(void *self, float *ret_value); // the next command
} merger_ops;

// A row's value is its step, and a fraction that tells the chunk.
typedef struct playing {
    const merger_ops *ops;
    void *self;
    uint64_t count;
    bool in_order;
} playing;

static bool play_one(playing *play)
{
    float value;
    if (!play->ops->take(play->self, &value)) return false;
    if ((uint64_t)value != play->count) play->in_order = false;
    play->count++;
    return true;
}

// The control loop takes a command in the middle of the aggregation.
static void play_and_blend(void *user, uint64_t step, const float *old_row,
                           const float *new_row, uint32_t channels,
                           float *ret_row)
{
    if (step < 5) (void)play_one(user);
    (void)old_row;
    memcpy(ret_row, new_row, channels * sizeof *new_row);
}

static bool plays_each_step_once(const merger_ops *ops, void *self)
{
    playing play = {ops, self, 0, true};
    ops->merge(self, 0, OLD_STEPS, 0.25F, play_and_blend, &play);
    (void)play_one(&play);
    (void)play_one(&play);
    ops->merge(self, 2, NEW_STEPS, 0.5F, play_and_blend, &play);
    while (play_one(&play))
        ;
    return play.in_order && play.count == NEW_STEPS;
}

typedef struct old_action {
    uint64_t step;
    float value;
} old_action;

typedef struct old_queue {
    old_action actions[NEW_STEPS];
    size_t head, end;
    uint64_t next; // one more than the latest step taken
} old_queue;

static const old_action *old_queue_find(const old_queue *queue, uint64_t step)
{
    for (size_t i = queue->head; i < queue->end; i++)
        if (queue->actions[i].step == step) return &queue->actions[i];
    return NULL;
}

// Locks were taken to read `queue` and to write it, and not in between.
static void old_queue_merge(void *self, uint64_t first, uint64_t end,
                            float fraction, td_edge_blend_fn blend, void *user)
{
    old_queue *queue = self;
    old_queue current = *queue, future = {0};
    for (uint64_t step = first; step < end; step++) {
        if (step < queue->next) continue;
        old_action made = {step, (float)step + fraction};
        const old_action *known = old_queue_find(&current, step);
        if (known)
            blend(user, step, &known->value, &made.value, 1, &made.value);
        future.actions[future.end++] = made;
    }
    future.next = queue->next;
    *queue = future;
}

static bool old_queue_take(void *self, float *ret_value)
{
    old_queue *queue = self;
    if (queue->head == queue->end) return false;
    const old_action *taken = &queue->actions[queue->head++];
    queue->next = taken->step + 1;
    *ret_value = taken->value;
    return true;
}

typedef struct new_queue {
    td_edge_core *core;
    uint64_t seq;
    td_edge_blend_fn blend; // of the merge under way
    void *user;
} new_queue;

static void aggregate(void *user, uint64_t step, const float *old_row,
                      const float *new_row, uint32_t channels, float *ret_row)
{
    const new_queue *queue = user;
    queue->blend(queue->user, step, old_row, new_row, channels, ret_row);
}

static void new_queue_merge(void *self, uint64_t first, uint64_t end,
                            float fraction, td_edge_blend_fn blend, void *user)
{
    new_queue *queue = self;
    queue->blend = blend;
    queue->user = user;
    assert_int_equal(td_edge_core_cursor(queue->core), first);
    robot_send(queue->core, ++queue->seq, 0);
    td_edge_answer answer =
        robot_answered(queue->core, 0, queue->seq, (uint32_t)(end - first),
                       (float)first + fraction);
    assert_int_equal(answer.outcome, TD_EDGE_MERGED);
}

static bool new_queue_take(void *self, float *ret_value)
{
    td_edge_step step = robot_tick_alone(((new_queue *)self)->core, 0, 0);
    if (step.fresh) *ret_value = step.command[0];
    return step.fresh;
}

static void bug_2_actions_taken_while_aggregating_are_played_again(void **state)
{
    static const merger_ops old = {old_queue_merge, old_queue_take};
    static const merger_ops edge = {new_queue_merge, new_queue_take};
    (void)state;
    old_queue queue = {0};
    assert_false(plays_each_step_once(&old, &queue));

    td_edge_core_settings settings = robot_settings();
    settings.aggregate = TD_EDGE_CUSTOM;
    settings.blend = aggregate;
    new_queue timeline = {0};
    settings.blend_user = &timeline;
    TD_AUTO(td_edge_core) *core = robot_new(&settings);
    timeline.core = core;
    assert_true(plays_each_step_once(&edge, &timeline));
}

// BUG-3: the client waited for its next actions without a deadline, and so for
// ever when the server hung.

typedef struct waiter_ops {
    live_fn *live;
    bool (*has_noticed)(void *self);
} waiter_ops;

static bool notices_a_server_that_hangs(const waiter_ops *ops, void *self)
{
    while (!ops->has_noticed(self))
        if (!ops->live(self)) return false;
    return true;
}

// It asks for actions once a second or when the last call has returned, and
// begins again when a call failed.
typedef struct old_client {
    int64_t deadline_ns; // of a call; the prototype gave none: INT64_MAX
    bool server_is_gone; // and the connection with it; else it hangs
    int64_t now_ns, asked_ns;
    bool retried;
} old_client;

static bool old_client_call_failed(const old_client *client)
{
    return client->server_is_gone ||
           client->now_ns - client->asked_ns >= client->deadline_ns;
}

static bool old_client_live(void *self)
{
    old_client *client = self;
    client->now_ns += TD_NS_PER_S;
    if (old_client_call_failed(client)) {
        client->retried = true;
        client->asked_ns = client->now_ns;
    }
    return client->now_ns < 1000 * PATIENCE_NS;
}

static bool old_client_has_noticed(void *self)
{
    return ((old_client *)self)->retried;
}

// It asks the server for its status again, and to take it again.
static bool world_has_noticed(void *self)
{
    world *w = self;
    return w->fake_servers[0].attached > 1;
}

static void bug_3_a_server_that_hangs_is_waited_for_for_ever(void **state)
{
    static const waiter_ops old = {old_client_live, old_client_has_noticed};
    static const waiter_ops edge = {world_live, world_has_noticed};
    world *w = *state;
    old_client client = {.deadline_ns = INT64_MAX};
    old_client of_the_gone = {.deadline_ns = INT64_MAX, .server_is_gone = true};
    old_client repaired = {.deadline_ns = 10 * TD_NS_PER_S};
    assert_false(notices_a_server_that_hangs(&old, &client));
    assert_true(notices_a_server_that_hangs(&old, &of_the_gone));
    assert_true(notices_a_server_that_hangs(&old, &repaired));

    w->config.watchdog_ns = 100 * TD_NS_PER_MS;
    fake_server *p = world_begin(w);
    p->answers_left = 0; // alive, and silent
    assert_true(notices_a_server_that_hangs(&edge, w));
    assert_true(p->attached_in[TD_EDGE_STALLED] > 0);
}

// BUG-4: an observation was left out when the joints stood where they had
// stood, whatever the cameras saw, and with it the answer that was needed.

enum { HEIGHT = 48, WIDTH = 64 };

typedef struct scene {
    float joints[2];
    uint8_t rgb[HEIGHT * WIDTH * 3];
} scene;

typedef struct filter_ops {
    bool (*leaves_out)(void *self, const scene *seen, bool must_go);
    void (*note_sent)(void *self, const scene *sent);
} filter_ops;

static bool sends_what_only_the_cameras_see(const filter_ops *ops, void *self)
{
    scene seen = {.joints = {0.5F, -0.5F}};
    memset(seen.rgb, 100, sizeof seen.rgb);
    if (ops->leaves_out(self, &seen, false)) return false;
    ops->note_sent(self, &seen);
    if (ops->leaves_out(self, &seen, true)) return false;
    memset(seen.rgb, 200, sizeof seen.rgb / 4); // something comes into view
    return !ops->leaves_out(self, &seen, false);
}

typedef struct old_filter {
    bool has_sent;
    scene sent;
} old_filter;

static bool old_filter_leaves_out(void *self, const scene *seen, bool must_go)
{
    const old_filter *filter = self;
    float by[2] = {seen->joints[0] - filter->sent.joints[0],
                   seen->joints[1] - filter->sent.joints[1]};
    return filter->has_sent && !must_go && by[0] * by[0] + by[1] * by[1] < 1;
}

static void old_filter_note_sent(void *self, const scene *sent)
{
    *(old_filter *)self = (old_filter){true, *sent};
}

static bool similar_leaves_out(void *self, const scene *seen, bool must_go)
{
    const td_edge_similar_image image = {seen->rgb, HEIGHT, WIDTH};
    return td_edge_similar_check(self, seen->joints, 2, &image, 1, must_go);
}

static void similar_note_sent(void *self, const scene *sent)
{
    (void)sent;
    td_edge_similar_note_sent(self);
}

static void bug_4_the_similarity_check_ignores_images(void **state)
{
    static const filter_ops old = {old_filter_leaves_out, old_filter_note_sent};
    static const filter_ops edge = {similar_leaves_out, similar_note_sent};
    static const td_edge_similar_settings settings = {
        .on = true, .state_tolerance = 1, .image_tolerance = 2};
    static td_edge_similar similar;
    (void)state;
    old_filter joints_only = {0};
    assert_false(sends_what_only_the_cameras_see(&old, &joints_only));

    assert_int_equal(td_edge_similar_init(&similar, &settings), TD_OK);
    assert_true(sends_what_only_the_cameras_see(&edge, &similar));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(bug_1_sending_blocks_the_control_loop),
        cmocka_unit_test(
            bug_2_actions_taken_while_aggregating_are_played_again),
        WORLD_TEST(bug_3_a_server_that_hangs_is_waited_for_for_ever),
        cmocka_unit_test(bug_4_the_similarity_check_ignores_images),
    };
    return cmocka_run_group_tests_name("edge/bugs", tests, NULL, NULL);
}
