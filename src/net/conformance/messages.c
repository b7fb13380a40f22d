// SPDX-License-Identifier: Apache-2.0
// What every transport must do with messages: the conformance suite's tests of
// publish and subscribe.
//
// Each test gets two open sessions, `a` and `b`, and a recorder into which
// callbacks write from any thread (world.h); it sends, waits until the recorder
// has what is expected, and looks. It runs against every implementation of
// td_net_ops, so it promises nothing about time: it waits for what must come,
// and proves that nothing else came by sending one message more after it.
//
// A test that does not concern a transport ends itself with td_conf_skip().
#include "net/conformance/tests.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One publisher in `a` and one subscriber in `b` that know each other.
struct stream {
    td_conf_recorder rec;
    td_net_decl *sub;
    td_net_pub *pub;
};

static void stream_join(struct stream *stream, td_conf_world *world)
{
    stream->sub = td_conf_subscribe(world->b, "suite/stream", &stream->rec);
    td_conf_until_matched(world, stream->pub, true);
}

static void stream_open(struct stream *stream, td_conf_world *world)
{
    stream->pub = td_conf_publish(world->a, "suite/stream");
    stream_join(stream, world);
}

static void stream_close(struct stream *stream)
{
    td_net_unpublish(stream->pub);
    if (stream->sub) assert_int_equal(td_net_undeclare(stream->sub), TD_OK);
    td_conf_recorder_done(&stream->rec);
}

static void send_numbers(struct stream *stream, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %zu", i);
        td_conf_put(stream->pub, text);
    }
}

// A few at a time: a put that finds no room may drop, and how soon there is
// room again is the machine's to say.
static void send_until_there(struct stream *stream, td_conf_world *world,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %zu", i);
        td_conf_put(stream->pub, text);
        if (i % 4 == 3) td_conf_until_count(world, &stream->rec, i + 1);
    }
    td_conf_until_count(world, &stream->rec, count);
}

static void assert_numbers(struct stream *stream, size_t count)
{
    assert_int_equal(td_conf_count(&stream->rec), count);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "message %zu", i);
        td_conf_event event = td_conf_at(&stream->rec, i);
        assert_string_equal(event.key, "suite/stream");
        assert_string_equal(event.text, text);
        assert_int_equal(event.size, strlen(text));
    }
}

void td_conf_messages_arrive_whole_and_in_order(void **state)
{
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream_open(&stream, *state);
    send_until_there(&stream, *state, 100);
    td_conf_flush(*state);
    assert_numbers(&stream, 100);
    stream_close(&stream);
}

// How many of them, how often and in which order is not promised.
void td_conf_best_effort_messages_that_arrive_are_whole(void **state)
{
    td_conf_world *world = *state;
    struct stream stream;
    td_net_qos qos = {.priority = TD_NET_DATA};
    td_conf_recorder_init(&stream.rec);
    assert_int_equal(
        td_net_publish(world->a, "suite/stream", &qos, &stream.pub, NULL),
        TD_OK);
    stream_join(&stream, world);
    send_numbers(&stream, 100);
    td_conf_until_count(world, &stream.rec, 1);
    assert_int_equal(td_net_undeclare(TD_TAKE(stream.sub)), TD_OK);
    for (size_t i = 0; i < stream.rec.count; i++) {
        td_conf_event event = td_conf_at(&stream.rec, i);
        size_t number = 100;
        assert_int_equal(sscanf(event.text, "message %zu", &number), 1);
        assert_true(number < 100);
        assert_int_equal(event.size, strlen(event.text));
        assert_string_equal(event.key, "suite/stream");
    }
    stream_close(&stream);
}

void td_conf_slow_callback_keeps_the_order(void **state)
{
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream.rec.slow_ns = TD_NS_PER_MS;
    stream_open(&stream, *state);
    send_until_there(&stream, *state, 50);
    td_conf_flush(*state);
    assert_numbers(&stream, 50);
    stream_close(&stream);
}

void td_conf_parts_arrive_joined(void **state)
{
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream_open(&stream, *state);
    const td_slice parts[] = {
        {"one ", 4}, {NULL, 0}, {"two ", 4}, {"three", 5}};
    assert_int_equal(td_net_put(stream.pub, parts, 4, NULL, NULL), TD_OK);
    assert_int_equal(td_net_put(stream.pub, NULL, 0, NULL, NULL), TD_OK);
    td_conf_until_count(*state, &stream.rec, 2);
    assert_string_equal(td_conf_at(&stream.rec, 0).text, "one two three");
    assert_int_equal(td_conf_at(&stream.rec, 1).size, 0);
    stream_close(&stream);
}

#define LARGE_BYTES (70 * 1024)

static void assert_released_once(td_conf_world *world, td_net_pub *pub,
                                 const td_slice *part)
{
    td_conf_recorder released;
    td_conf_recorder_init(&released);
    assert_int_equal(td_net_put(pub, part, 1, td_conf_on_release, &released),
                     TD_OK);
    td_conf_until_released(world, &released, 1);
    td_conf_flush(world);
    assert_int_equal(released.released, 1);
    td_conf_recorder_done(&released);
}

void td_conf_buffers_are_released_exactly_once(void **state)
{
    static const size_t sizes[] = {1, LARGE_BYTES};
    static const unsigned char bytes[LARGE_BYTES];

    td_net_pub *alone =
        td_conf_publish(((td_conf_world *)*state)->a, "suite/x");
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++)
        assert_released_once(*state, alone, &(td_slice){bytes, sizes[i]});
    td_net_unpublish(alone);

    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream_open(&stream, *state);
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++)
        assert_released_once(*state, stream.pub, &(td_slice){bytes, sizes[i]});
    stream_close(&stream);
}

static unsigned char *pattern(size_t size)
{
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(1 + i % 251);
    return bytes;
}

static void assert_pieces(td_net_msg *msg, const unsigned char *bytes,
                          size_t size)
{
    const td_slice *pieces = NULL;
    size_t count = 0, at = 0;
    assert_int_equal(td_net_msg_pieces(msg, &pieces, &count), TD_OK);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(pieces[i].size, 0, size - at);
        assert_memory_equal(pieces[i].data, bytes + at, pieces[i].size);
        at += pieces[i].size;
    }
    assert_int_equal(at, size);
}

static void assert_kept(td_conf_recorder *rec, const unsigned char *bytes,
                        size_t size)
{
    td_conf_event event = td_conf_at(rec, 0);
    assert_int_equal(event.size, size);
    assert_true(event.head <= size);
    assert_int_equal(event.whole, event.head == size);
    assert_true(rec->kept_count > 0);
    for (int again = 0; again < 2; again++) {
        td_slice kept = {0};
        assert_pieces(rec->kept[0], bytes, size);
        assert_int_equal(td_net_msg_bytes(rec->kept[0], &kept), TD_OK);
        assert_int_equal(kept.size, size);
        assert_memory_equal(kept.data, bytes, size);
    }
}

// A large message may find no room on a busy machine, and is then dropped.
static void put_until_kept(td_conf_world *world, struct stream *stream,
                           const td_slice *part)
{
    for (int i = 0; i < TD_CONF_MAX_HELD && !td_conf_count(&stream->rec); i++) {
        assert_int_equal(td_net_put(stream->pub, part, 1, NULL, NULL), TD_OK);
        td_conf_flush(world);
    }
    td_conf_until_count(world, &stream->rec, 1);
}

void td_conf_kept_messages_outlive_their_callback(void **state)
{
    static const size_t sizes[] = {1, 3 << 10, LARGE_BYTES, 2 << 20};
    for (size_t i = 0; i < TD_COUNT_OF(sizes); i++) {
        struct stream stream;
        td_conf_recorder_init(&stream.rec);
        stream.rec.keep = true;
        stream_open(&stream, *state);
        unsigned char *bytes = pattern(sizes[i]);
        put_until_kept(*state, &stream, &(td_slice){bytes, sizes[i]});
        assert_int_equal(td_net_undeclare(TD_TAKE(stream.sub)), TD_OK);
        assert_kept(&stream.rec, bytes, sizes[i]);
        free(bytes);
        stream_close(&stream);
    }
}

static const struct {
    const char *keyexpr;
    const char *key;
    bool match;
} expressions[] = {
    {"s/a", "s/a", true},
    {"s/a", "s/b", false},
    {"s/a", "s/a/b", false},
    {"s/*", "s/a", true},
    {"s/*", "s", false},
    {"s/*", "s/a/b", false},
    {"s/*/c", "s/b/c", true},
    {"s/*/c", "s/b/d", false},
    {"s/**", "s", true},
    {"s/**", "s/a/b", true},
    {"s/**", "t/a", false},
    {"**", "s/a", true},
    {"**/c", "s/b/c", true},
    {"**/c", "c", true},
    {"**/c", "c/d", false},
    {"s/**/c", "s/c", true},
    {"s/**/c", "s/a/b/c", true},
    {"s/**/c", "s/a/b", false},
    {"s/*/**", "s", false},
    {"s/*/**", "s/a", true},
    {"s/**/b/*/d", "s/b/b/c/d", true},
    {"s/*", "s/@a", false},
    {"s/**", "s/@a/b", false},
    {"s/@a/**", "s/@a/b", true},
};

static size_t count_on(td_conf_recorder *rec, const char *key)
{
    size_t found = 0;
    for (size_t i = 0; i < td_conf_count(rec); i++)
        found += strcmp(td_conf_at(rec, i).key, key) == 0;
    return found;
}

// The witness is declared second, in the same session: when it has the message,
// the first has had it or never will.
static void assert_expression(td_conf_world *world, size_t row)
{
    td_conf_recorder rec;
    td_conf_recorder witness;
    td_conf_recorder_init(&rec);
    td_conf_recorder_init(&witness);
    td_net_decl *sub =
        td_conf_subscribe(world->b, expressions[row].keyexpr, &rec);
    td_net_decl *exact =
        td_conf_subscribe(world->b, expressions[row].key, &witness);
    td_net_pub *pub = td_conf_publish(world->a, expressions[row].key);
    td_conf_until_matched(world, pub, true);
    td_conf_put(pub, "x");
    td_conf_until_count(world, &witness, 1);
    td_conf_flush_one_way(world, world->a, world->b);
    size_t count = count_on(&rec, expressions[row].key);
    if (count != (expressions[row].match ? 1 : 0))
        fail_msg("'%s' on '%s': %zu messages", expressions[row].keyexpr,
                 expressions[row].key, count);
    assert_int_equal(td_net_undeclare(exact), TD_OK);
    assert_int_equal(td_net_undeclare(sub), TD_OK);
    td_conf_until_matched(world, pub, false); // lest the next row is, by these
    td_net_unpublish(pub);
    td_conf_recorder_done(&witness);
    td_conf_recorder_done(&rec);
}

void td_conf_key_expressions_match_as_zenoh_has_it(void **state)
{
    for (size_t i = 0; i < TD_COUNT_OF(expressions); i++)
        assert_expression(*state, i);
}

void td_conf_every_subscriber_gets_its_copy(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder near;
    td_conf_recorder_init(&near);
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    td_net_decl *sub = td_conf_subscribe(world->a, "suite/*", &near);
    stream_open(&stream, world);
    td_conf_flush(world); // the far subscriber is known too
    td_conf_put(stream.pub, "for all");
    td_conf_until_count(world, &near, 1);
    td_conf_until_count(world, &stream.rec, 1);
    assert_string_equal(td_conf_at(&stream.rec, 0).text, "for all");
    stream_close(&stream);
    assert_int_equal(td_net_undeclare(sub), TD_OK);
    td_conf_recorder_done(&near);
}

void td_conf_undeclared_subscriber_is_called_no_more(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    td_net_decl *gone = td_conf_subscribe(world->b, "suite/stream", &rec);
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream_open(&stream, world);
    td_conf_put(stream.pub, "first");
    td_conf_until_count(world, &rec, 1);
    assert_int_equal(td_net_undeclare(gone), TD_OK);
    td_conf_put(stream.pub, "second");
    td_conf_until_count(world, &stream.rec, 2);
    td_conf_flush(world);
    assert_int_equal(td_conf_count(&rec), 1);
    stream_close(&stream);
    td_conf_recorder_done(&rec);
}

void td_conf_undeclare_inside_a_callback_is_busy(void **state)
{
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream_open(&stream, *state);
    pthread_mutex_lock(&stream.rec.lock);
    stream.rec.decl = stream.sub;
    pthread_mutex_unlock(&stream.rec.lock);
    td_conf_put(stream.pub, "try");
    td_conf_until_count(*state, &stream.rec, 1);
    assert_int_equal(td_net_undeclare(TD_TAKE(stream.sub)), TD_OK);
    assert_int_equal(stream.rec.undeclared, TD_ERR_BUSY);
    stream_close(&stream);
}

static bool has_entered(void *user)
{
    td_conf_recorder *rec = user;
    pthread_mutex_lock(&rec->lock);
    bool entered = rec->entered > 0;
    pthread_mutex_unlock(&rec->lock);
    return entered;
}

void td_conf_undeclare_waits_for_a_running_callback(void **state)
{
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream.rec.slow_ns = 20 * TD_NS_PER_MS;
    stream_open(&stream, *state);
    td_conf_put(stream.pub, "slow");
    td_conf_until(*state, has_entered, &stream.rec);
    assert_int_equal(td_net_undeclare(TD_TAKE(stream.sub)), TD_OK);
    assert_int_equal(stream.rec.left, 1);
    stream_close(&stream);
}

void td_conf_publisher_knows_whether_it_is_matched(void **state)
{
    td_conf_world *world = *state;
    td_net_pub *pub = td_conf_publish(world->a, "suite/stream");
    td_conf_until_matched(world, pub, false);
    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    td_net_decl *sub = td_conf_subscribe(world->b, "suite/**", &rec);
    td_conf_until_matched(world, pub, true);
    assert_int_equal(td_net_undeclare(sub), TD_OK);
    td_conf_until_matched(world, pub, false);
    td_net_unpublish(pub);
    td_conf_recorder_done(&rec);
}

void td_conf_what_arrives_is_not_counted_as_dropped(void **state)
{
    const td_conf_world *world = *state;
    struct stream stream;
    td_conf_recorder_init(&stream.rec);
    stream_open(&stream, *state);
    send_until_there(&stream, *state, 100);
    td_net_counts counts = td_net_counts_get(world->a);
    assert_int_equal(counts.drops, 0);
    assert_int_equal(counts.pool_misses, 0);
    assert_int_equal(counts.panics, 0);
    stream_close(&stream);
}
