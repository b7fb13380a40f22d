// SPDX-License-Identifier: Apache-2.0
#include "net/conformance/tests.h"

#include <string.h>

#define LARGE_BYTES (70 * 1024)

// One publisher in `a` and one subscriber in `b` that know each other.
struct stream {
    td_conf_recorder rec; // keeps what comes
    td_net_decl *sub;
    td_net_pub *pub;
};

// A session may learn that the other shares memory after it has matched.
static bool is_lent_to(void *user)
{
    td_net_loan *loan = NULL;
    td_err err = td_net_lend(user, LARGE_BYTES, &loan);
    if (err == TD_OK) td_net_loan_free(loan);
    return err == TD_OK;
}

// False where the transport does not lend.
static bool stream_open(struct stream *stream, td_conf_world *world)
{
    const td_net_fixture *fixture = world->fixture;
    td_conf_recorder_init(&stream->rec);
    stream->rec.keep = true;
    stream->sub = td_conf_subscribe(world->b, "suite/loans", &stream->rec);
    stream->pub = td_conf_publish(world->a, "suite/loans");
    td_conf_until_matched(world, stream->pub, true);
    bool lends = fixture->lends && fixture->lends(world->a);
    if (lends) td_conf_until(world, is_lent_to, stream->pub);
    return lends;
}

static void stream_close(struct stream *stream)
{
    td_net_unpublish(stream->pub);
    assert_int_equal(td_net_undeclare(stream->sub), TD_OK);
    td_conf_recorder_done(&stream->rec);
}

// For tests that are about loans alone.
static void stream_open_lent(struct stream *stream, td_conf_world *world)
{
    if (stream_open(stream, world)) return;
    stream_close(stream);
    td_conf_skip(world);
}

static unsigned char byte_at(size_t i, unsigned seed)
{
    return (unsigned char)(seed + i % 251);
}

static td_net_loan *lend(struct stream *stream, size_t size, unsigned seed)
{
    td_net_loan *loan = NULL;
    assert_int_equal(td_net_lend(stream->pub, size, &loan), TD_OK);
    unsigned char *bytes = loan->bytes;
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(i, seed);
    return loan;
}

static void assert_kept(struct stream *stream, size_t index, size_t size,
                        unsigned seed)
{
    td_slice kept = {0};
    assert_true(index < stream->rec.kept_count);
    assert_int_equal(td_net_msg_bytes(stream->rec.kept[index], &kept), TD_OK);
    assert_int_equal(kept.size, size);
    const unsigned char *bytes = kept.data;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte_at(i, seed)) fail_msg("byte %zu is wrong", i);
}

void td_conf_lent_messages_arrive_as_written(void **state)
{
    static const size_t sizes[] = {16 << 10, LARGE_BYTES, 2 << 20};
    struct stream stream;
    if (stream_open(&stream, *state)) {
        for (size_t i = 0; i < TD_COUNT_OF(sizes); i++) {
            td_net_loan *loan = lend(&stream, sizes[i], (unsigned)i);
            assert_int_equal(td_net_loan_put(loan), TD_OK);
            td_conf_until_count(*state, &stream.rec, i + 1);
            assert_string_equal(td_conf_at(&stream.rec, i).key, "suite/loans");
            assert_int_equal(td_conf_at(&stream.rec, i).size, sizes[i]);
            assert_kept(&stream, i, sizes[i], (unsigned)i);
        }
    } else {
        td_net_loan *loan = NULL;
        assert_int_equal(td_net_lend(stream.pub, LARGE_BYTES, &loan),
                         TD_ERR_UNSUPPORTED);
        assert_null(loan);
    }
    stream_close(&stream);
}

void td_conf_kept_messages_survive_later_loans(void **state)
{
    struct stream stream;
    stream_open_lent(&stream, *state);
    for (unsigned i = 0; i < TD_CONF_MAX_HELD; i++) {
        td_net_loan *loan = lend(&stream, LARGE_BYTES, i);
        assert_int_equal(td_net_loan_put(loan), TD_OK);
        td_conf_until_count(*state, &stream.rec, i + 1);
    }
    for (unsigned i = 0; i < TD_CONF_MAX_HELD; i++)
        assert_kept(&stream, i, LARGE_BYTES, i);
    stream_close(&stream);
}

void td_conf_loans_are_sent_in_the_order_of_their_puts(void **state)
{
    struct stream stream;
    stream_open_lent(&stream, *state);
    td_net_loan *first = lend(&stream, LARGE_BYTES, 1);
    td_net_loan *second = lend(&stream, LARGE_BYTES, 2);
    td_conf_put(stream.pub, "between");
    assert_int_equal(td_net_loan_put(second), TD_OK);
    assert_int_equal(td_net_loan_put(first), TD_OK);
    td_conf_until_count(*state, &stream.rec, 3);
    assert_string_equal(td_conf_at(&stream.rec, 0).text, "between");
    assert_kept(&stream, 1, LARGE_BYTES, 2);
    assert_kept(&stream, 2, LARGE_BYTES, 1);
    stream_close(&stream);
}

// A message of a head, one loan, a word between, and as much of another loan as
// is wanted of it.
static void put_composed(struct stream *stream, td_net_loan *const loans[2],
                         size_t last)
{
    const td_slice parts[] = {
        {"head", 4},
        {loans[0]->bytes, LARGE_BYTES},
        {"between", 7},
        {loans[1]->bytes, last},
    };
    assert_int_equal(
        td_net_put_loans(stream->pub, parts, TD_COUNT_OF(parts), loans, 2),
        TD_OK);
}

static void assert_composed(struct stream *stream, size_t index, size_t last)
{
    td_slice kept = {0};
    assert_int_equal(td_net_msg_bytes(stream->rec.kept[index], &kept), TD_OK);
    assert_int_equal(kept.size, 4 + LARGE_BYTES + 7 + last);
    const unsigned char *bytes = kept.data;
    assert_memory_equal(bytes, "head", 4);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        if (bytes[4 + i] != byte_at(i, 1)) fail_msg("byte %zu is wrong", i);
    bytes += 4 + LARGE_BYTES;
    assert_memory_equal(bytes, "between", 7);
    for (size_t i = 0; i < last; i++)
        if (bytes[7 + i] != byte_at(i, 2)) fail_msg("byte %zu is wrong", i);
}

void td_conf_loans_are_parts_of_messages_again_and_again(void **state)
{
    static const size_t lasts[] = {100, LARGE_BYTES / 2, LARGE_BYTES};
    struct stream stream;
    stream_open_lent(&stream, *state);
    for (size_t i = 0; i < TD_COUNT_OF(lasts); i++) {
        td_net_loan *loans[] = {lend(&stream, LARGE_BYTES, 1),
                                lend(&stream, LARGE_BYTES, 2)};
        for (size_t again = 0; again < 2; again++) {
            put_composed(&stream, loans, lasts[i]);
            td_conf_until_count(*state, &stream.rec, 2 * i + again + 1);
        }
        td_net_loan_free(loans[0]);
        td_net_loan_free(loans[1]);
        assert_composed(&stream, 2 * i, lasts[i]);
        assert_composed(&stream, 2 * i + 1, lasts[i]);
    }
    stream_close(&stream);
}

void td_conf_loan_may_outlive_its_publisher(void **state)
{
    struct stream stream;
    stream_open_lent(&stream, *state);
    td_net_loan *loans[] = {lend(&stream, LARGE_BYTES, 1),
                            lend(&stream, LARGE_BYTES, 2)};
    put_composed(&stream, loans, LARGE_BYTES);
    td_conf_until_count(*state, &stream.rec, 1);
    td_net_unpublish(stream.pub);
    td_net_loan_free(loans[0]);
    assert_composed(&stream, 0, LARGE_BYTES);
    td_net_loan_free(loans[1]);
    assert_int_equal(td_net_undeclare(stream.sub), TD_OK);
    td_conf_recorder_done(&stream.rec);
}

void td_conf_dropped_loan_sends_nothing(void **state)
{
    struct stream stream;
    stream_open_lent(&stream, *state);
    td_net_loan_free(lend(&stream, LARGE_BYTES, 1));
    td_conf_put(stream.pub, "after");
    td_conf_until_count(*state, &stream.rec, 1);
    td_conf_flush(*state);
    assert_int_equal(td_conf_count(&stream.rec), 1);
    assert_string_equal(td_conf_at(&stream.rec, 0).text, "after");
    stream_close(&stream);
}

void td_conf_small_messages_are_not_lent(void **state)
{
    struct stream stream;
    (void)stream_open(&stream, *state);
    td_net_loan *loan = NULL;
    assert_int_equal(td_net_lend(stream.pub, 64, &loan), TD_ERR_UNSUPPORTED);
    assert_null(loan);
    stream_close(&stream);
}
