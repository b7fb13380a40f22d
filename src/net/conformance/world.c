// SPDX-License-Identifier: Apache-2.0
// What the conformance tests of transports share: sessions, a recorder, and
// ways to wait.
//
// Setup opens two sessions through the fixture of the transport under test;
// teardown closes them, if the test passed. A test that failed leaves its
// sessions as they are, because a callback may still run in them.
//
// The recorder is what callbacks write into, from any thread; `lock` guards it.
// It notes what came, keeps messages or requests where a test wants that, and
// can be slow on purpose. Assertions are made on the test's own thread only.
//
// How to wait is the fixture's to say: with a virtual clock it moves the time,
// else it sleeps a little and looks again, until a limit.
#include "net/conformance/world.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const td_net_fixture *current;

void td_conf_use(const td_net_fixture *fixture)
{
    current = fixture;
}

td_err td_conf_world_open(td_conf_world *world)
{
    return world->fixture->open_pair(world->fixture->state, &world->a,
                                     &world->b);
}

void td_conf_world_close(td_conf_world *world)
{
    if (world->a) td_net_close(TD_TAKE(world->a));
    if (world->b) td_net_close(TD_TAKE(world->b));
    if (world->fixture->close_pair)
        world->fixture->close_pair(world->fixture->state);
}

int td_conf_setup(void **state)
{
    td_conf_world *world = calloc(1, sizeof *world);
    if (!world) return -1;
    world->fixture = current;
    world->test = (td_conf_test)*state;
    *state = world;
    return td_conf_world_open(world) == TD_OK ? 0 : -1;
}

void td_conf_run(void **state)
{
    td_conf_world *world = *state;
    world->test(state);
    world->passed = true;
}

void td_conf_skip(td_conf_world *world)
{
    world->passed = true;
    skip();
}

// What a failed test declared is still there, so nothing can be closed.
int td_conf_teardown(void **state)
{
    td_conf_world *world = *state;
    if (!world->passed) return 0;
    td_conf_world_close(world);
    free(world);
    return 0;
}

void td_conf_recorder_init(td_conf_recorder *rec)
{
    memset(rec, 0, sizeof *rec);
    pthread_mutex_init(&rec->lock, NULL);
}

void td_conf_recorder_done(td_conf_recorder *rec)
{
    for (size_t i = 0; i < rec->kept_count; i++)
        td_net_msg_free(rec->kept[i]);
    assert_int_equal(rec->request_count, 0);
    pthread_mutex_destroy(&rec->lock);
}

static void record(td_conf_recorder *rec, const td_conf_event *event)
{
    if (rec->count < TD_CONF_MAX_EVENTS) rec->events[rec->count] = *event;
    rec->count++;
}

static td_conf_event event_of(const td_net_sample *sample)
{
    td_conf_event event = {.size = sample->size,
                           .head = sample->head.size,
                           .whole = sample->whole};
    snprintf(event.key, sizeof event.key, "%s", sample->key);
    snprintf(event.text, sizeof event.text, "%.*s", (int)sample->head.size,
             (const char *)sample->head.data);
    return event;
}

static void hold(td_conf_recorder *rec, const td_net_sample *sample)
{
    if (!rec->keep || rec->kept_count == TD_CONF_MAX_HELD) return;
    if (td_net_keep(sample, &rec->kept[rec->kept_count]) == TD_OK)
        rec->kept_count++;
}

void td_conf_on_sample(void *user, const td_net_sample *sample)
{
    td_conf_recorder *rec = user;
    td_conf_event event = event_of(sample);
    pthread_mutex_lock(&rec->lock);
    rec->entered++;
    td_net_decl *decl = rec->decl;
    pthread_mutex_unlock(&rec->lock);

    if (rec->slow_ns)
        td_clock_sleep_until(td_clock_monotonic_ns() + rec->slow_ns);
    td_err undeclared = decl ? td_net_undeclare(decl) : TD_OK;

    pthread_mutex_lock(&rec->lock);
    hold(rec, sample);
    record(rec, &event);
    rec->undeclared = undeclared;
    rec->left++;
    pthread_mutex_unlock(&rec->lock);
}

void td_conf_on_request(void *user, td_net_request *request)
{
    td_conf_recorder *rec = user;
    pthread_mutex_lock(&rec->lock);
    bool room = rec->request_count < TD_CONF_MAX_HELD;
    if (room) rec->requests[rec->request_count++] = request;
    pthread_mutex_unlock(&rec->lock);
    if (!room) td_net_request_free(request);
}

void td_conf_on_done(void *user)
{
    td_conf_recorder *rec = user;
    pthread_mutex_lock(&rec->lock);
    rec->done++;
    pthread_mutex_unlock(&rec->lock);
}

static void record_notice(td_conf_recorder *rec, const char *key,
                          const char *text, bool up)
{
    td_conf_event event = {.up = up};
    snprintf(event.key, sizeof event.key, "%s", key);
    snprintf(event.text, sizeof event.text, "%s", text);
    pthread_mutex_lock(&rec->lock);
    record(rec, &event);
    pthread_mutex_unlock(&rec->lock);
}

void td_conf_on_alive(void *user, const char *key, bool alive)
{
    record_notice(user, key, "", alive);
}

void td_conf_on_link(void *user, const td_net_link *link)
{
    record_notice(user, link->peer, link->address, link->up);
}

void td_conf_on_release(void *user)
{
    td_conf_recorder *rec = user;
    pthread_mutex_lock(&rec->lock);
    rec->released++;
    pthread_mutex_unlock(&rec->lock);
}

static size_t read_locked(td_conf_recorder *rec, const size_t *value)
{
    pthread_mutex_lock(&rec->lock);
    size_t read = *value;
    pthread_mutex_unlock(&rec->lock);
    return read;
}

size_t td_conf_count(td_conf_recorder *rec)
{
    return read_locked(rec, &rec->count);
}

size_t td_conf_done(td_conf_recorder *rec)
{
    return read_locked(rec, &rec->done);
}

td_conf_event td_conf_at(td_conf_recorder *rec, size_t index)
{
    assert_true(index < TD_CONF_MAX_EVENTS);
    pthread_mutex_lock(&rec->lock);
    td_conf_event event = rec->events[index];
    pthread_mutex_unlock(&rec->lock);
    return event;
}

td_net_request *td_conf_take_request(td_conf_recorder *rec)
{
    pthread_mutex_lock(&rec->lock);
    td_net_request *request = NULL;
    if (rec->request_count) {
        request = rec->requests[0];
        rec->request_count--;
        memmove(rec->requests, rec->requests + 1,
                rec->request_count * sizeof(td_net_request *));
    }
    pthread_mutex_unlock(&rec->lock);
    return request;
}

td_net_pub *td_conf_publish(td_net *net, const char *key)
{
    td_net_qos qos = {
        .priority = TD_NET_DATA, .reliable = true, .express = true};
    td_net_pub *pub = NULL;
    assert_int_equal(td_net_publish(net, key, &qos, &pub, NULL), TD_OK);
    return pub;
}

void td_conf_put(td_net_pub *pub, const char *text)
{
    td_slice part = {text, strlen(text)};
    assert_int_equal(td_net_put(pub, &part, 1, NULL, NULL), TD_OK);
}

td_net_decl *td_conf_subscribe(td_net *net, const char *keyexpr,
                               td_conf_recorder *rec)
{
    td_net_decl *decl = NULL;
    assert_int_equal(
        td_net_subscribe(net, keyexpr, td_conf_on_sample, rec, &decl, NULL),
        TD_OK);
    return decl;
}

void td_conf_until(td_conf_world *world, bool (*predicate)(void *user),
                   void *user)
{
    const td_net_fixture *fixture = world->fixture;
    assert_true(fixture->until(fixture->state, predicate, user));
}

typedef struct threshold {
    td_conf_recorder *rec;
    const size_t *value;
    size_t least;
} threshold;

static bool reached(void *user)
{
    const threshold *want = user;
    return read_locked(want->rec, want->value) >= want->least;
}

void td_conf_until_count(td_conf_world *world, td_conf_recorder *rec,
                         size_t count)
{
    td_conf_until(world, reached, &(threshold){rec, &rec->count, count});
}

void td_conf_until_released(td_conf_world *world, td_conf_recorder *rec,
                            size_t count)
{
    td_conf_until(world, reached, &(threshold){rec, &rec->released, count});
}

void td_conf_until_done(td_conf_world *world, td_conf_recorder *rec)
{
    td_conf_until(world, reached, &(threshold){rec, &rec->done, 1});
}

typedef struct matching {
    td_net_pub *pub;
    bool matched;
} matching;

static bool is_matched(void *user)
{
    const matching *want = user;
    bool matched = !want->matched;
    assert_int_equal(td_net_matched(want->pub, &matched), TD_OK);
    return matched == want->matched;
}

void td_conf_until_matched(td_conf_world *world, td_net_pub *pub, bool matched)
{
    td_conf_until(world, is_matched, &(matching){pub, matched});
}

typedef struct notice_wanted {
    td_conf_recorder *rec;
    const char *key;
    bool up;
} notice_wanted;

static bool has_notice(void *user)
{
    const notice_wanted *want = user;
    size_t count = td_conf_count(want->rec);
    for (size_t i = 0; i < count; i++) {
        td_conf_event event = td_conf_at(want->rec, i);
        if (event.up == want->up && strcmp(event.key, want->key) == 0)
            return true;
    }
    return false;
}

void td_conf_until_notified(td_conf_world *world, td_conf_recorder *rec,
                            const char *key, bool up)
{
    td_conf_until(world, has_notice, &(notice_wanted){rec, key, up});
}

void td_conf_flush_one_way(td_conf_world *world, td_net *from, td_net *to)
{
    static unsigned count; // a key of its own: no subscriber of old matches it
    char key[32];
    snprintf(key, sizeof key, "flush/%u", count++);
    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    td_net_decl *sub = td_conf_subscribe(to, key, &rec);
    td_net_pub *pub = td_conf_publish(from, key);
    td_conf_until_matched(world, pub, true);
    td_conf_put(pub, "all before me");
    td_conf_until_count(world, &rec, 1);
    td_net_unpublish(pub);
    assert_int_equal(td_net_undeclare(sub), TD_OK);
    td_conf_recorder_done(&rec);
}

void td_conf_flush(td_conf_world *world)
{
    td_conf_flush_one_way(world, world->a, world->b);
    td_conf_flush_one_way(world, world->b, world->a);
}
