// SPDX-License-Identifier: Apache-2.0
// What every transport promises of queries: all servers that fit are asked,
// every reply arrives before on_done, on_done comes exactly once, also when
// nobody is there and when time is up; a request may be answered later, from
// another thread; a reply must match what was asked.
//
// `talk` is the usual set-up: an asker, up to two servers, and recorders for
// what they saw. That a server is there takes a while to get around, so a talk
// asks again until all of them have answered; only what happens after that is
// held to the promise.
//
// The recorders' locks are taken by callbacks for a moment each; tests assert
// on their own thread.
#include "net/conformance/tests.h"

#include "base/clock.h"

#include <string.h>

#define PATIENT_NS (60 * TD_NS_PER_S) // longer than the suite waits

typedef void (*answer_fn)(td_net_request *request, const char *key);

// Asks until the servers are known to the asker and all have answered: that a
// server is there takes a while to get around.
struct talk {
    td_net *asker;
    td_conf_recorder replies;
    struct {
        const char *key;
        td_conf_recorder requests;
        td_net_decl *decl;
    } servers[2];
    size_t server_count;
    answer_fn answer; // NULL: requests are left with the servers
    int64_t timeout_ns;
    size_t wanted; // replies
    bool asked;
};

static void talk_init(struct talk *talk, td_net *asker, answer_fn answer)
{
    *talk = (struct talk){
        .asker = asker, .answer = answer, .timeout_ns = PATIENT_NS};
    td_conf_recorder_init(&talk->replies);
}

static void talk_serve(struct talk *talk, td_net *net, const char *key)
{
    size_t i = talk->server_count++;
    talk->servers[i].key = key;
    td_conf_recorder_init(&talk->servers[i].requests);
    assert_int_equal(td_net_serve(net, key, td_conf_on_request,
                                  &talk->servers[i].requests,
                                  &talk->servers[i].decl, NULL),
                     TD_OK);
    talk->wanted++;
}

static void talk_done(struct talk *talk)
{
    for (size_t i = 0; i < talk->server_count; i++) {
        assert_int_equal(td_net_undeclare(talk->servers[i].decl), TD_OK);
        td_conf_recorder_done(&talk->servers[i].requests);
    }
    td_conf_recorder_done(&talk->replies);
}

static void ask(struct talk *talk)
{
    pthread_mutex_lock(&talk->replies.lock);
    talk->replies.count = talk->replies.done = 0;
    pthread_mutex_unlock(&talk->replies.lock);
    td_slice question = {"who?", 4};
    assert_int_equal(td_net_query(talk->asker, "suite/query/*", question,
                                  talk->timeout_ns, td_conf_on_sample,
                                  td_conf_on_done, &talk->replies, NULL),
                     TD_OK);
    talk->asked = true;
}

static void answer_pending(struct talk *talk)
{
    for (size_t i = 0; i < talk->server_count; i++) {
        td_net_request *request;
        while ((request = td_conf_take_request(&talk->servers[i].requests)))
            talk->answer(request, talk->servers[i].key);
    }
}

static bool all_answered(void *user)
{
    struct talk *talk = user;
    answer_pending(talk);
    bool done = talk->asked && td_conf_done(&talk->replies) > 0;
    if (done && td_conf_count(&talk->replies) >= talk->wanted) return true;
    if (done || !talk->asked) ask(talk);
    return false;
}

// The question comes back with a mark behind it.
static void echo(td_net_request *request, const char *key)
{
    assert_string_equal(td_net_request_key(request), "suite/query/*");
    td_slice parts[] = {td_net_request_payload(request), {" me", 3}};
    assert_int_equal(td_net_reply(request, key, parts, 2), TD_OK);
    td_net_request_free(request);
}

static void assert_echoes(struct talk *talk)
{
    assert_int_equal(td_conf_done(&talk->replies), 1);
    assert_int_equal(td_conf_count(&talk->replies), talk->server_count);
    for (size_t i = 0; i < talk->server_count; i++) {
        size_t found = 0;
        for (size_t j = 0; j < talk->server_count; j++) {
            td_conf_event event = td_conf_at(&talk->replies, j);
            assert_string_equal(event.text, "who? me");
            found += strcmp(event.key, talk->servers[i].key) == 0;
        }
        assert_int_equal(found, 1);
    }
}

void td_conf_query_gathers_every_reply_then_ends_once(void **state)
{
    td_conf_world *world = *state;
    struct talk talk;
    talk_init(&talk, world->a, echo);
    talk_serve(&talk, world->a, "suite/query/one");
    talk_serve(&talk, world->b, "suite/query/two");
    td_conf_until(world, all_answered, &talk);
    td_conf_flush(world);
    assert_echoes(&talk);
    talk_done(&talk);
}

void td_conf_query_that_nobody_serves_ends_without_reply(void **state)
{
    td_conf_world *world = *state;
    struct talk talk;
    talk_init(&talk, world->a, NULL);
    ask(&talk);
    td_conf_until_done(world, &talk.replies);
    td_conf_flush(world);
    assert_int_equal(td_conf_done(&talk.replies), 1);
    assert_int_equal(td_conf_count(&talk.replies), 0);
    talk_done(&talk);
}

struct late_reply {
    td_net_request *request;
    const char *key;
    td_err err;
};

static void *send_late_reply(void *user)
{
    struct late_reply *late_reply = user;
    td_slice parts[] = {td_net_request_payload(late_reply->request),
                        {" me", 3}};
    late_reply->err =
        td_net_reply(late_reply->request, late_reply->key, parts, 2);
    td_net_request_free(late_reply->request);
    return NULL;
}

static void echo_elsewhere(td_net_request *request, const char *key)
{
    struct late_reply late_reply = {.request = request, .key = key};
    pthread_t thread;
    assert_int_equal(
        pthread_create(&thread, NULL, send_late_reply, &late_reply), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(late_reply.err, TD_OK);
}

void td_conf_request_may_be_answered_from_another_thread(void **state)
{
    td_conf_world *world = *state;
    struct talk talk;
    talk_init(&talk, world->a, echo_elsewhere);
    talk_serve(&talk, world->b, "suite/query/one");
    td_conf_until(world, all_answered, &talk);
    td_conf_flush(world);
    assert_echoes(&talk);
    talk_done(&talk);
}

static void echo_off_key_first(td_net_request *request, const char *key)
{
    td_slice part = {"x", 1};
    assert_int_equal(td_net_reply(request, "suite/other", &part, 1),
                     TD_ERR_INVALID);
    assert_int_equal(td_net_reply(request, "suite/query/*", &part, 1),
                     TD_ERR_INVALID);
    echo(request, key);
}

void td_conf_reply_must_match_what_was_asked(void **state)
{
    td_conf_world *world = *state;
    struct talk talk;
    talk_init(&talk, world->a, echo_off_key_first);
    talk_serve(&talk, world->b, "suite/query/one");
    td_conf_until(world, all_answered, &talk);
    td_conf_flush(world);
    assert_echoes(&talk);
    talk_done(&talk);
}

static bool timed_out(void *user)
{
    struct talk *talk = user;
    bool done = talk->asked && td_conf_done(&talk->replies) > 0;
    pthread_mutex_lock(&talk->servers[0].requests.lock);
    bool heard = talk->servers[0].requests.request_count > 0;
    pthread_mutex_unlock(&talk->servers[0].requests.lock);
    if (done && heard) return true;
    if (done || !talk->asked) ask(talk);
    return false;
}

void td_conf_unanswered_query_ends_when_its_time_is_up(void **state)
{
    td_conf_world *world = *state;
    struct talk talk;
    talk_init(&talk, world->a, NULL);
    talk.timeout_ns = 100 * TD_NS_PER_MS;
    talk_serve(&talk, world->b, "suite/query/one");
    td_conf_until(world, timed_out, &talk);

    td_net_request *late;
    while ((late = td_conf_take_request(&talk.servers[0].requests))) {
        td_slice part = {"late", 4};
        td_err err = td_net_reply(late, "suite/query/one", &part, 1);
        (void)err; // nobody listens; whether the server is told is left open
        td_net_request_free(late);
    }
    td_conf_flush(world);
    assert_int_equal(td_conf_done(&talk.replies), 1);
    assert_int_equal(td_conf_count(&talk.replies), 0);
    talk_done(&talk);
}
