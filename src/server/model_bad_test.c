// SPDX-License-Identifier: Apache-2.0
// Bad input over the network: told, counted, and the others keep running.
#include "server/model_fixture.h"

#include "base/rand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void short_state(td_wire_obs *obs)
{
    obs->state.shape[0] = 1;
    obs->state.size = sizeof(float);
}

static void flat_state(td_wire_obs *obs)
{
    obs->state.rank = 2;
    obs->state.shape[0] = 1;
    obs->state.shape[1] = STATES;
}

static void no_picture(td_wire_obs *obs)
{
    obs->image_count = 0;
}

static void other_picture(td_wire_obs *obs)
{
    obs->images[0].name = td_wire_text_of("bottom");
}

static void not_a_jpeg(td_wire_obs *obs)
{
    obs->images[0].data = "not a JPEG at all";
    obs->images[0].size = 17;
}

static void half_a_header(td_wire_obs *obs)
{
    obs->images[0].size = 20;
}

static void not_a_png(td_wire_obs *obs)
{
    obs->images[0].codec = TD_WIRE_PNG;
}

// A PNG's header: width, height, bits a channel and kind.
#define PNG_HEADER(width, height, bits)                                        \
    "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" width height bits "\2\0\0\0CRC."

static void set_png(td_wire_obs *obs, const char *header)
{
    obs->images[0].codec = TD_WIRE_PNG;
    obs->images[0].data = header;
    obs->images[0].size = sizeof PNG_HEADER("0064", "0048", "8") - 1;
}

static void small_png(td_wire_obs *obs)
{
    set_png(obs, PNG_HEADER("\0\0\0\x20", "\0\0\0\x18", "\x08"));
}

static void huge_png(td_wire_obs *obs)
{
    set_png(obs, PNG_HEADER("\0\1\x86\xa0", "\0\1\x86\xa0", "\x08"));
}

static void deep_png(td_wire_obs *obs)
{
    set_png(obs, PNG_HEADER("\0\0\0\x40", "\0\0\0\x30", "\x10"));
}

static void small_raw(td_wire_obs *obs)
{
    static const uint8_t rgb[24 * 32 * 3];
    obs->images[0].codec = TD_WIRE_RAW;
    obs->images[0].shape[0] = 24;
    obs->images[0].shape[1] = 32;
    obs->images[0].shape[2] = 3;
    obs->images[0].data = rgb;
    obs->images[0].size = sizeof rgb;
}

static void other_client(td_wire_obs *obs)
{
    obs->client = td_wire_text_of("arm-1");
}

static void again(td_wire_obs *obs)
{
    obs->has_again = true;
    obs->again = 1;
}

static void an_observation_that_does_not_fit_is_told_and_counted(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(td_wire_obs *obs);
        const char *code, *text;
    } cases[] = {
        {"short state", short_state, "MISMATCH", "state: is rank 1, 1 x <f4"},
        {"flat state", flat_state, "MISMATCH", "state: is rank 2"},
        {"no picture", no_picture, "MISMATCH", "images.top: missing"},
        {"other picture", other_picture, "MISMATCH", "images.top: missing"},
        {"not a JPEG", not_a_jpeg, "FORMAT", "images.top: "},
        {"half a header", half_a_header, "FORMAT", "images.top: "},
        {"not a PNG", not_a_png, "FORMAT", "images.top: not a PNG"},
        {"small PNG", small_png, "MISMATCH", "images.top: is 24x32, the model"},
        {"huge PNG", huge_png, "LIMIT", "images.top: a picture of 100000 x"},
        {"16-bit PNG", deep_png, "UNSUPPORTED", "images.top: a PNG of 16 bits"},
        {"small picture", small_raw, "MISMATCH", "images.top: is 24x32x3"},
        {"other client", other_client, "MISMATCH", "client_uuid: is \"arm-1\""},
        {"again", again, "NOTFOUND", "again: "},
    };
    world *w = *state;
    world_open(w);
    client *c = client_attached(w);
    for (uint64_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char text[512];
        td_wire_obs obs = client_obs(c, i + 1);
        cases[i].spoil(&obs);
        client_send(c, &obs);
        const td_wire_action *answer = client_hear(c);
        (void)snprintf(text, sizeof text, "%.*s", (int)answer->error_text.size,
                       answer->error_text.data);
        print_message("%s: %s\n", cases[i].name, text);
        assert_memory_equal(&answer->ident, &obs.ident, sizeof obs.ident);
        assert_true(td_wire_text_is(answer->error_code, cases[i].code));
        assert_non_null(strstr(text, cases[i].text));
        assert_int_equal(answer->actions.rank, 0);
        assert_int_equal(world_counts(w).outcomes[TD_SERVER_REFUSED], i + 1);
    }
    client_send_seq(c, 100);
    assert_int_equal(client_hear(c)->error_code.size, 0);
}

// An observation with another value beside its state, each of its own age.
static td_wire_obs aged_obs(client *c, uint64_t seq, int64_t state_us,
                            int64_t force_us)
{
    static const float force[1] = {9.81f};
    td_wire_obs obs = client_obs(c, seq);
    obs.state.has_age = true;
    obs.state.age_us = state_us;
    obs.tensors[0] = (td_wire_named){.name = td_wire_text_of("force"),
                                     .tensor = {.dtype = TD_WIRE_F32,
                                                .rank = 1,
                                                .shape = {1},
                                                .data = force,
                                                .size = sizeof force,
                                                .has_age = true,
                                                .age_us = force_us}};
    obs.tensor_count = 1;
    return obs;
}

static void values_that_are_too_old_are_told_and_counted(void **state)
{
    world *w = *state;
    w->config.model.inputs.staleness_us = 50000;
    world_open(w);
    client *c = client_attached(w);
    td_wire_obs obs = aged_obs(c, 1, 45000, 50001);
    client_send(c, &obs);
    const td_wire_action *answer = client_hear(c);
    assert_true(td_wire_text_is(answer->error_code, "LIMIT"));
    assert_true(td_wire_text_is(answer->error_text,
                                "force: is 50.001 ms old, at most 50 ms are "
                                "taken"));
    obs = aged_obs(c, 2, 45000, 50000);
    client_send(c, &obs);
    assert_int_equal(client_hear(c)->error_code.size, 0);
    w->config.model.inputs.staleness_us = 49999; // while it runs
    assert_int_equal(
        td_server_model_use(w->server, &w->config.settings, &w->config.model),
        TD_OK);
    obs = aged_obs(c, 3, 45000, 50000);
    client_send(c, &obs);
    assert_true(td_wire_text_is(client_hear(c)->error_code, "LIMIT"));
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_STALE], 2);
    assert_int_equal(world_counts(w).misaligned, 0);
}

static void values_of_different_moments_are_counted_and_served(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_attached(w);
    static const int64_t force_us[] = {1000, 21000, 21001, 900000};
    for (uint64_t i = 0; i < TD_COUNT_OF(force_us); i++) {
        td_wire_obs obs = aged_obs(c, i + 1, 1000, force_us[i]);
        client_send(c, &obs);
        assert_int_equal(client_hear(c)->error_code.size, 0);
    }
    assert_int_equal(world_counts(w).misaligned, 2);
}

// The bytes of an observation whose first state value is not a number.
static size_t make_nan(client *c, uint64_t seq, unsigned char *ret_bytes,
                       size_t room)
{
    const float marker = 1234.5f;
    const float nothing = NAN;
    c->state[0] = marker;
    const td_wire_obs obs = client_obs(c, seq);
    assert_int_equal(td_wire_obs_encode(c->world->encoder, &obs, NULL), TD_OK);
    size_t size = td_wire_encoder_size(c->world->encoder);
    assert_true(size <= room);
    td_wire_encoder_join(c->world->encoder, ret_bytes);
    unsigned char *at = memmem(ret_bytes, size, &marker, sizeof marker);
    assert_non_null(at);
    memcpy(at, &nothing, sizeof nothing);
    return size;
}

static void a_message_that_cannot_be_read_is_told_and_counted(void **state)
{
    static const char announced[] = "\xdf\x7f\xff\xff\xff\xa6seq_id\x05";
    static unsigned char bytes[65536];
    world *w = *state;
    world_open(w);
    client *c = client_attached(w);

    client_send_bytes(c->obs, bytes, make_nan(c, 9, bytes, sizeof bytes));
    const td_wire_action *answer = client_hear(c);
    assert_int_equal(answer->ident.seq, 9);
    assert_true(td_wire_text_is(answer->error_code, "FORMAT"));
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_MALFORMED], 1);

    client_send_bytes(c->obs, announced, sizeof announced - 1);
    assert_true(client_hear(c)->error_code.size > 0);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_MALFORMED], 2);

    client_send_bytes(c->obs, NULL, 0);
    assert_true(client_hear(c)->error_code.size > 0);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_MALFORMED], 3);
}

static size_t random_bytes(td_rand *rand, unsigned char *ret_bytes, size_t room)
{
    size_t size = 1 + td_rand_u64(rand) % room;
    for (size_t i = 0; i < size; i++)
        ret_bytes[i] = (unsigned char)td_rand_u64(rand);
    return size;
}

static bool is_settled(world *w)
{
    return is_idle(w) && w->report.counts.received >= 500;
}

static void random_bytes_do_not_disturb_the_others(void **state)
{
    world *w = *state;
    unsigned char bytes[64];
    td_rand rand;
    td_rand_init(&rand, 5);
    world_open(w);
    client *bad = client_open(w, 0, "arm-0", 1);
    client *good = client_open(w, 1, "arm-1", 1);
    assert_true(client_attach(bad, "gpu-1"));
    assert_true(client_attach(good, "gpu-1"));
    for (uint64_t seq = 1; seq <= 100; seq++) {
        for (int i = 0; i < 5; i++)
            client_send_bytes(bad->obs, bytes,
                              random_bytes(&rand, bytes, sizeof bytes));
        client_send_bytes(bad->reset, bytes,
                          random_bytes(&rand, bytes, sizeof bytes));
        client_query(bad, bytes, random_bytes(&rand, bytes, sizeof bytes));
        assert_int_equal(w->reply_count, 1);
        assert_true(w->status.has_attach && !w->status.attached);
        client_send_seq(good, seq);
        assert_int_equal(client_hear(good)->ident.seq, seq);
        assert_int_equal(good->answer.error_code.size, 0);
    }
    world_until(w, is_settled);
    td_server_counts counts = world_counts(w);
    assert_int_equal(counts.outcomes[TD_SERVER_ANSWERED], 100);
    assert_true(counts.outcomes[TD_SERVER_MALFORMED] > 0);
    assert_int_equal(counts.received,
                     counts.outcomes[TD_SERVER_ANSWERED] +
                         counts.outcomes[TD_SERVER_MALFORMED] +
                         counts.outcomes[TD_SERVER_SUPERSEDED]);
}

static void send_reset(client *c, const char *id, uint64_t boot,
                       uint64_t episode)
{
    size_t count;
    const td_wire_reset reset = {
        .client = td_wire_text_of(id), .boot = boot, .episode = episode};
    assert_int_equal(td_wire_reset_encode(c->world->encoder, &reset, NULL),
                     TD_OK);
    const td_slice *parts = td_wire_encoder_parts(c->world->encoder, &count);
    assert_int_equal(td_net_put(c->reset, parts, count, NULL, NULL), TD_OK);
}

static bool has_departed(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_DEPARTED] == 1;
}

static bool is_waiting_one(world *w)
{
    return w->report.counts.outcomes[TD_SERVER_WAITING] == 1;
}

static void a_reset_drops_what_waits_and_a_strange_one_does_not(void **state)
{
    world *w = *state;
    client *c = client_running_one(w);
    client_send_seq(c, 2);
    world_until(w, is_waiting_one);
    send_reset(c, "arm-0", 2, 9); // another start's
    client_query(c, NULL, 0);     // comes after it
    send_reset(c, "arm-0", 1, 1); // the same episode
    client_query(c, NULL, 0);
    send_reset(c, "arm-1", 1, 2); // another client's
    client_query(c, NULL, 0);
    assert_int_equal(world_counts(w).outcomes[TD_SERVER_WAITING], 1);
    send_reset(c, "arm-0", 1, 2);
    world_until(w, has_departed);
    gate_finish(&w->gate, TD_OK);
}

#define RESETS 1000

static bool has_counted_resets(world *w)
{
    const td_server_stats *stats = td_server_model_stats(w->server);
    return td_server_stats_counter(stats, TD_SERVER_COUNT_BAD_RESETS) +
               td_server_stats_counter(stats, TD_SERVER_COUNT_RESETS_UNREAD) ==
           RESETS;
}

static void every_bad_reset_is_refused_or_counted_as_unread(void **state)
{
    world *w = *state;
    world_open(w);
    client *c = client_open(w, 0, "arm-0", 1);
    assert_true(client_attach(c, "gpu-1"));
    for (int i = 0; i < RESETS; i++)
        client_send_bytes(c->reset, "?", 1);
    world_until(w, has_counted_resets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(an_observation_that_does_not_fit_is_told_and_counted),
        WORLD_TEST(values_that_are_too_old_are_told_and_counted),
        WORLD_TEST(values_of_different_moments_are_counted_and_served),
        WORLD_TEST(a_message_that_cannot_be_read_is_told_and_counted),
        WORLD_TEST(random_bytes_do_not_disturb_the_others),
        WORLD_TEST(a_reset_drops_what_waits_and_a_strange_one_does_not),
        WORLD_TEST(every_bad_reset_is_refused_or_counted_as_unread),
    };
    return cmocka_run_group_tests_name("server/server_bad", tests, NULL, NULL);
}
