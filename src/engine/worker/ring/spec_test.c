// SPDX-License-Identifier: Apache-2.0
// What a worker says against what the manifest says, without any process.
//
// Tables of hellos that are refused, with the words they are refused with;
// texts that are made printable; and pairs of specs that agree, differ or leave
// something out that neither says.
#include "engine/worker/ring/spec.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static td_worker_spec make_spec(void)
{
    return (td_worker_spec){
        .camera_count = 1,
        .state_count = 2,
        .action_count = 2,
        .chunk_rows = 20,
        .max_batch = 4,
        .values_bytes = 4096,
        .cameras = {{"front", 48, 64}},
        .states = {{"x", TD_WIRE_LINEAR}, {"y", TD_WIRE_LINEAR}},
        .actions = {{"a", TD_WIRE_LINEAR}, {"b", TD_WIRE_HOLD}},
    };
}

static td_worker_hello hello, heard;
static td_errinfo info;

static int setup(void **state)
{
    (void)state;
    hello = (td_worker_hello){.magic = TD_WORKER_MAGIC,
                              .version = TD_WORKER_VERSION,
                              .phase = TD_WORKER_DESCRIBED,
                              .spec = make_spec()};
    info.text[0] = '\0';
    return 0;
}

static void a_hello_is_taken_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(td_engine_worker_spec_read(&hello, &heard, &info), TD_OK);
    assert_memory_equal(&heard.spec, &hello.spec, sizeof hello.spec);
}

static void no_magic(void)
{
    hello.magic++;
}
static void newer(void)
{
    hello.version++;
}
static void no_phase(void)
{
    hello.phase = 4;
}
static void many_cameras(void)
{
    hello.spec.camera_count = 17;
}
static void many_states(void)
{
    hello.spec.state_count = 257;
}
static void many_actions(void)
{
    hello.spec.action_count = UINT32_MAX;
}
static void large_batch(void)
{
    hello.spec.max_batch = 65;
}
static void many_rows(void)
{
    hello.spec.chunk_rows = UINT32_MAX;
}
static void large_values(void)
{
    hello.spec.values_bytes = (32u << 20) + 1;
}
static void large_environment(void)
{
    hello.environment_count = 257;
}
static void half_a_prefix(void)
{
    hello.spec.prefix = 2;
}
static void no_number(void)
{
    hello.spec.tolerance = NAN;
}
static void no_name(void)
{
    hello.spec.states[1].name[0] = '\0';
}
static void no_text(void)
{
    memset(hello.spec.actions[0].name, 0xff, 64);
}
static void no_kind(void)
{
    hello.spec.actions[1].kind = 4;
}
static void no_size(void)
{
    hello.spec.cameras[0].height = 0;
}
static void huge(void)
{
    hello.spec.cameras[0].width = 1 << 30;
}

static void what_no_hello_can_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(void);
        td_err err;
        const char *text;
    } cases[] = {
        {no_magic, TD_ERR_FORMAT, "the worker's hello is malformed"},
        {newer, TD_ERR_VERSION, "the worker speaks version 3, this server 2"},
        {no_phase, TD_ERR_FORMAT, "the worker is in phase 4"},
        {many_cameras, TD_ERR_FORMAT,
         "the worker's camera_count is 17, at most 16"},
        {many_states, TD_ERR_FORMAT,
         "the worker's state_count is 257, at most 256"},
        {many_actions, TD_ERR_FORMAT,
         "the worker's action_count is 4294967295, at most 256"},
        {large_batch, TD_ERR_FORMAT,
         "the worker's max_batch is 65, at most 64"},
        {many_rows, TD_ERR_FORMAT,
         "the worker's chunk_rows is 4294967295, at most 4096"},
        {large_values, TD_ERR_FORMAT,
         "the worker's values_bytes is 33554433, at most 33554432"},
        {large_environment, TD_ERR_FORMAT,
         "the worker's environment_count is 257, at most 256"},
        {half_a_prefix, TD_ERR_FORMAT, "the worker's prefix is 2, at most 1"},
        {no_number, TD_ERR_FORMAT,
         "the worker's tolerance is no number from 0 on"},
        {no_name, TD_ERR_FORMAT,
         "the worker's state 1 has a name that cannot be printed"},
        {no_text, TD_ERR_FORMAT,
         "the worker's action 0 has a name that cannot be printed"},
        {no_kind, TD_ERR_FORMAT, "the worker's action 1 is of kind 4"},
        {no_size, TD_ERR_FORMAT, "the worker's camera 0 has 0x64 pixels"},
        {huge, TD_ERR_FORMAT, "the worker's camera 0 has 48x1073741824 pixels"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        (void)setup(state);
        cases[i].spoil();
        assert_int_equal(td_engine_worker_spec_read(&hello, &heard, &info),
                         cases[i].err);
        assert_string_equal(info.text, cases[i].text);
    }
}

static void an_error_becomes_text_that_can_be_printed(void **state)
{
    (void)state;
    static const struct {
        const char *said, *heard;
    } cases[] = {
        {"no such device", "no such device"},
        {"two\nlines\x7f", "two lines "},
        {"k\xc3\xb6nnte", "k\xc3\xb6nnte"},
        {"k\xc3 nnte", "k? nnte"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char text[TD_ENGINE_WORKER_TEXT_BYTES];
        td_engine_worker_spec_text(cases[i].said, strlen(cases[i].said) + 1,
                                   text);
        assert_string_equal(text, cases[i].heard);
    }
    memset(hello.error, 'x', sizeof hello.error); // without an end
    assert_int_equal(td_engine_worker_spec_read(&hello, &heard, &info), TD_OK);
}

static void what_only_one_says_holds(void **state)
{
    (void)state;
    td_worker_spec whole = make_spec(), nothing = {0}, agreed;
    assert_int_equal(
        td_engine_worker_spec_agree(&whole, &nothing, &agreed, &info), TD_OK);
    assert_memory_equal(&agreed, &whole, sizeof whole);
    assert_int_equal(
        td_engine_worker_spec_agree(&nothing, &whole, &agreed, &info), TD_OK);
    assert_memory_equal(&agreed, &whole, sizeof whole);
    assert_int_equal(
        td_engine_worker_spec_agree(&whole, &whole, &agreed, &info), TD_OK);
    assert_memory_equal(&agreed, &whole, sizeof whole);
}

static void other_camera(td_worker_spec *s)
{
    s->cameras[0].width = 65;
}
static void two_cameras(td_worker_spec *s)
{
    s->camera_count = 2;
}
static void other_action(td_worker_spec *s)
{
    s->actions[1].name[0] = 'c';
}
static void other_kind(td_worker_spec *s)
{
    s->actions[1].kind = 0;
}
static void other_states(td_worker_spec *s)
{
    s->state_count = 1;
}
static void other_chunk(td_worker_spec *s)
{
    s->chunk_rows = 50;
}
static void other_batch(td_worker_spec *s)
{
    s->max_batch = 8;
}

static void other_values(td_worker_spec *s)
{
    s->values_bytes = 8192;
}

static void a_difference_names_both_sides(void **state)
{
    (void)state;
    static const struct {
        void (*change)(td_worker_spec *spec);
        const char *text;
    } cases[] = {
        {other_camera, "cameras[0]: the manifest says front 48x64, the worker "
                       "front 48x65"},
        {two_cameras, "cameras: the manifest says 1, the worker 2"},
        {other_action,
         "actions[1]: the manifest says b (hold), the worker c (hold)"},
        {other_kind,
         "actions[1]: the manifest says b (hold), the worker b (linear)"},
        {other_states, "states: the manifest says 2, the worker 1"},
        {other_chunk, "chunk: the manifest says 20, the worker 50"},
        {other_batch, "max_batch: the manifest says 4, the worker 8"},
        {other_values,
         "results_bytes: the manifest says 4096, the worker 8192"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_worker_spec ours = make_spec(), theirs = make_spec(), agreed;
        cases[i].change(&theirs);
        assert_int_equal(
            td_engine_worker_spec_agree(&ours, &theirs, &agreed, &info),
            TD_ERR_MISMATCH);
        assert_string_equal(info.text, cases[i].text);
    }
}

static void what_neither_says_is_missing(void **state)
{
    (void)state;
    td_worker_spec ours = make_spec(), theirs = {0}, agreed;
    ours.action_count = 0;
    assert_int_equal(
        td_engine_worker_spec_agree(&ours, &theirs, &agreed, &info),
        TD_ERR_INVALID);
    assert_string_equal(info.text,
                        "actions: neither the manifest nor the worker says it");
}

static void rows_batches_and_results_have_a_default(void **state)
{
    (void)state;
    td_worker_spec ours = make_spec(), theirs = {0}, agreed;
    ours.chunk_rows = ours.max_batch = ours.values_bytes = 0;
    assert_int_equal(
        td_engine_worker_spec_agree(&ours, &theirs, &agreed, &info), TD_OK);
    assert_int_equal(agreed.chunk_rows, 50);
    assert_int_equal(agreed.max_batch, 1);
    assert_int_equal(agreed.values_bytes, 1 << 20);
}

static void only_the_worker_knows_whether_it_works_in_halves(void **state)
{
    (void)state;
    td_worker_spec ours = make_spec(), theirs = make_spec(), agreed;
    theirs.prefix = 1;
    assert_int_equal(
        td_engine_worker_spec_agree(&ours, &theirs, &agreed, &info), TD_OK);
    assert_int_equal(agreed.prefix, 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, setup)
    const struct CMUnitTest tests[] = {
        TEST(a_hello_is_taken_as_it_is),
        TEST(what_no_hello_can_be_is_refused),
        TEST(an_error_becomes_text_that_can_be_printed),
        TEST(what_only_one_says_holds),
        TEST(a_difference_names_both_sides),
        TEST(what_neither_says_is_missing),
        TEST(rows_batches_and_results_have_a_default),
        TEST(only_the_worker_knows_whether_it_works_in_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
