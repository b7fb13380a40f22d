// SPDX-License-Identifier: Apache-2.0
// LeRobot's steps before and after a policy, against what LeRobot's own
// pipelines made of the same observations and actions, to the bit:
// expected.json of each golden folder. Then what a request must not leave to
// the next, and where a tokenizer comes from.
#include "engine/native/pipeline/pipeline.h"

#include "engine/native/checkpoint/fixture.h"
#include "engine/native/checkpoint/path.h"

#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_VALUES 64
#define COLOUR_TOLERANCE 1e-6 // of one multiplication for LeRobot's division

static const char *const kinds[] = {"act", "smolvla", "pi0", "pi05"};

// One golden folder, opened.
typedef struct folder {
    const char *kind;
    td_native_checkpoint *checkpoint;
    td_native_pipeline *pipeline;
    json_t *expected;
} folder;

static void open_golden(const char *kind, folder *ret_golden)
{
    char path[512], expected[600];
    td_errinfo info = {""};
    folder made = {.kind = kind};
    (void)snprintf(path, sizeof path, TD_NATIVE_GOLDEN "%s", kind);
    (void)snprintf(expected, sizeof expected, "%s/expected.json", path);
    if (td_native_checkpoint_open(path, &made.checkpoint, &info) != TD_OK ||
        td_native_pipeline_new(made.checkpoint, NULL, &made.pipeline, &info) !=
            TD_OK ||
        td_json_read_file(expected, TD_NATIVE_MAX_JSON_BYTES, &made.expected,
                          &info) != TD_OK)
        fail_msg("%s", info.text);
    *ret_golden = made;
}

static void close_golden(folder *golden)
{
    td_native_pipeline_free(golden->pipeline);
    td_native_checkpoint_close(golden->checkpoint);
    json_decref(golden->expected);
}

static uint32_t read_floats(const json_t *list, float *ret_values)
{
    size_t count = json_array_size(list);
    assert_in_range(count, 1, MAX_VALUES);
    for (size_t i = 0; i < count; i++)
        ret_values[i] = (float)json_number_value(json_array_get(list, i));
    return (uint32_t)count;
}

// Bit for bit, but for the sign of 0.
static void assert_floats(const folder *golden, const char *what,
                          const json_t *wanted, const float *got)
{
    float values[MAX_VALUES];
    uint32_t count = read_floats(wanted, values);
    for (uint32_t i = 0; i < count; i++)
        if (values[i] != got[i])
            fail_msg("%s: %s[%u] is %.9g, LeRobot's %.9g", golden->kind, what,
                     i, (double)got[i], (double)values[i]);
}

static void assert_ids(const folder *golden, const json_t *wanted,
                       const td_native_pipeline_prepared *prepared)
{
    size_t count = json_array_size(wanted);
    if (count != prepared->id_count)
        fail_msg("%s: %u ids, LeRobot has %zu", golden->kind,
                 prepared->id_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(prepared->ids[i],
                         json_integer_value(json_array_get(wanted, i)));
}

static void take(const folder *golden, const json_t *sample,
                 td_native_pipeline_prepared *ret_prepared)
{
    float state[MAX_VALUES], env[MAX_VALUES];
    td_errinfo info = {""};
    json_t *given = json_object_get(sample, "given");
    const char *task = json_string_value(json_object_get(sample, "task"));
    const td_native_pipeline_input from = {
        state, env, {task, (uint32_t)strlen(task)}};
    (void)read_floats(json_object_get(given, "observation.state"), state);
    if (golden->checkpoint->policy.env_dim > 0)
        (void)read_floats(
            json_object_get(given, golden->checkpoint->policy.env_key), env);
    if (td_native_pipeline_preprocess(golden->pipeline, &from, ret_prepared,
                                      &info) != TD_OK)
        fail_msg("%s: %s", golden->kind, info.text);
}

static void check_sample(const folder *golden, const json_t *sample)
{
    td_native_pipeline_prepared prepared;
    float actions[MAX_VALUES];
    const td_native_policy *policy = &golden->checkpoint->policy;
    take(golden, sample, &prepared);
    json_t *wanted = json_object_get(sample, "taken");
    assert_floats(golden, "state", json_object_get(wanted, "observation.state"),
                  prepared.state);
    if (policy->env_dim > 0)
        assert_floats(golden, "env", json_object_get(wanted, policy->env_key),
                      prepared.env);
    assert_ids(golden, json_object_get(sample, "ids"), &prepared);

    json_t *chunk = json_object_get(sample, "actions");
    json_t *from = json_object_get(chunk, "policy");
    uint32_t rows = (uint32_t)json_array_size(from), used = 0;
    for (uint32_t i = 0; i < rows; i++)
        used += read_floats(json_array_get(from, i), actions + used);
    td_native_pipeline_postprocess(golden->pipeline, &prepared, rows, actions);
    for (uint32_t i = 0; i < rows; i++)
        assert_floats(golden, "actions",
                      json_array_get(json_object_get(chunk, "robot"), i),
                      actions + (size_t)i * policy->action_dim);
}

static void values_text_and_actions_are_lerobots_to_the_bit(void **state)
{
    (void)state;
    for (size_t k = 0; k < TD_COUNT_OF(kinds); k++) {
        folder golden;
        open_golden(kinds[k], &golden);
        json_t *samples = json_object_get(golden.expected, "samples");
        assert_int_equal(json_array_size(samples), 4);
        for (size_t i = 0; i < json_array_size(samples); i++)
            check_sample(&golden, json_array_get(samples, i));
        close_golden(&golden);
    }
}

static void check_camera(const folder *golden, uint32_t camera,
                         const json_t *pixels)
{
    td_native_colours colours =
        td_native_pipeline_colours(golden->pipeline, camera);
    json_t *bytes = json_object_get(golden->expected, "bytes");
    assert_int_equal(json_array_size(pixels), json_array_size(bytes));
    for (size_t k = 0; k < json_array_size(bytes); k++) {
        double byte = json_number_value(json_array_get(bytes, k));
        json_t *wanted = json_array_get(pixels, k);
        for (size_t i = 0; i < 3; i++) {
            double value = json_number_value(json_array_get(wanted, i));
            double got =
                byte * (double)colours.scale[i] + (double)colours.bias[i];
            double most = COLOUR_TOLERANCE * fmax(1, fabs(value));
            if (!(fabs(got - value) <= most))
                fail_msg("%s: byte %g is %.9g, LeRobot's %.9g", golden->kind,
                         byte, got, value);
        }
    }
}

static void colours_are_lerobots(void **state)
{
    (void)state;
    static const char *const names[] = {"front", "wrist"};
    for (size_t k = 0; k < TD_COUNT_OF(kinds); k++) {
        folder golden;
        open_golden(kinds[k], &golden);
        json_t *pixels = json_object_get(golden.expected, "pixels");
        for (uint32_t i = 0; i < 2; i++)
            check_camera(&golden, i, json_object_get(pixels, names[i]));
        close_golden(&golden);
    }
}

static void one_request_leaves_nothing_to_the_next(void **state)
{
    (void)state;
    folder golden;
    open_golden("pi05", &golden);
    json_t *samples = json_object_get(golden.expected, "samples");
    for (size_t i = json_array_size(samples); i-- > 0;)
        check_sample(&golden, json_array_get(samples, i));
    close_golden(&golden);
}

// What a robot has promised goes the way back.
static void actions_there_and_back_are_the_same(void **state)
{
    (void)state;
    for (size_t k = 0; k < TD_COUNT_OF(kinds); k++) {
        folder golden;
        open_golden(kinds[k], &golden);
        uint32_t columns = golden.checkpoint->policy.action_dim;
        td_native_pipeline_prepared prepared = {.id_count = 0};
        float actions[3 * TD_WIRE_MAX_CHANNELS];
        for (uint32_t i = 0; i < columns; i++)
            prepared.base[i] = 0.25f * (float)i;
        for (uint32_t i = 0; i < 3 * columns; i++)
            actions[i] = 0.1f * (float)i - 0.5f;
        td_native_pipeline_postprocess(golden.pipeline, &prepared, 3, actions);
        td_native_pipeline_renormalize(golden.pipeline, prepared.base, 3,
                                       actions);
        for (uint32_t i = 0; i < 3 * columns; i++)
            if (i % columns != 1 && i % columns != 2) // which hardly moved
                assert_true(fabsf(actions[i] - (0.1f * (float)i - 0.5f)) <
                            1e-5f);
        close_golden(&golden);
    }
}

static void a_missing_tokenizer_is_named_with_where_to_get_it(void **state)
{
    (void)state;
    assert_int_equal(setenv("HF_HOME", "/nowhere", 1), 0);
    td_native_fixture copy;
    td_native_checkpoint *checkpoint = NULL;
    td_native_pipeline *pipeline = NULL;
    td_errinfo info = {""};
    td_native_fixture_copy("pi0", "tokenizer.json", NULL, NULL, &copy);
    assert_int_equal(td_native_checkpoint_open(copy.path, &checkpoint, &info),
                     TD_OK);
    assert_int_equal(td_native_pipeline_new(checkpoint, NULL, &pipeline, &info),
                     TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "/tokenizer.json: is not there"));
    assert_non_null(strstr(info.text, "google/paligemma-3b-pt-224"));
    assert_int_equal(td_native_pipeline_new(
                         checkpoint, TD_NATIVE_GOLDEN "pi05/tokenizer.json",
                         &pipeline, &info),
                     TD_OK);
    td_native_pipeline_free(pipeline);
    td_native_checkpoint_close(checkpoint);
    td_native_fixture_remove(&copy);
}

// A home with the hub's cache in it, where the hub's name of one is.
static void make_cache(char home[32], const char *name, const char *from)
{
    char path[512];
    (void)snprintf(home, 32, "/tmp/tendon-home-XXXXXX");
    assert_non_null(mkdtemp(home));
    static const char *const below[] = {"", "/snapshots", "/snapshots/one"};
    (void)snprintf(path, sizeof path, "%s/hub", home);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < TD_COUNT_OF(below); i++) {
        (void)snprintf(path, sizeof path, "%s/hub/%s%s", home, name, below[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    (void)snprintf(path, sizeof path, "%s/hub/%s/snapshots/one/tokenizer.json",
                   home, name);
    assert_int_equal(symlink(from, path), 0);
    assert_int_equal(setenv("HF_HOME", home, 1), 0);
}

static int drop(const char *path, const struct stat *about, int kind,
                struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static void
a_tokenizer_may_be_in_the_hubs_cache_or_where_lerobot_saves_it(void **state)
{
    (void)state;
    static const char *const name = "models--google--paligemma-3b-pt-224";
    char home[32], path[512];
    td_native_fixture copy;
    td_native_checkpoint *checkpoint = NULL;
    td_native_pipeline *pipeline = NULL;
    td_errinfo info = {""};
    td_native_fixture_copy("pi0", "tokenizer.json", NULL, NULL, &copy);
    assert_int_equal(td_native_checkpoint_open(copy.path, &checkpoint, &info),
                     TD_OK);
    make_cache(home, name, TD_NATIVE_GOLDEN "pi05/tokenizer.json");
    assert_int_equal(td_native_pipeline_new(checkpoint, NULL, &pipeline, &info),
                     TD_OK);
    td_native_pipeline_free(pipeline);
    assert_int_equal(nftw(home, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(td_native_pipeline_new(checkpoint, NULL, &pipeline, &info),
                     TD_ERR_NOTFOUND);
    (void)snprintf(path, sizeof path, "%s/tokenizer", copy.path);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/tokenizer/tokenizer.json", copy.path);
    assert_int_equal(symlink(TD_NATIVE_GOLDEN "pi05/tokenizer.json", path), 0);
    assert_int_equal(td_native_pipeline_new(checkpoint, NULL, &pipeline, &info),
                     TD_OK);
    td_native_pipeline_free(pipeline);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/tokenizer", copy.path);
    assert_int_equal(rmdir(path), 0);
    td_native_checkpoint_close(checkpoint);
    td_native_fixture_remove(&copy);
}

static void a_tokenizer_that_is_given_counts(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *path;
        td_err err;
        const char *says;
    } cases[] = {
        {"pi0", TD_NATIVE_GOLDEN "pi05/tokenizer.json", TD_OK, ""},
        {"pi0", "/nowhere/tokenizer.json", TD_ERR_NOTFOUND,
         "/nowhere/tokenizer.json: is not there"},
        {"pi0", TD_NATIVE_GOLDEN "pi0/config.json", TD_ERR_FORMAT,
         "pi0/config.json: is no tokenizer"},
        {"act", TD_NATIVE_GOLDEN "pi05/tokenizer.json", TD_ERR_INVALID,
         "checkpoints/act takes no text"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char path[512];
        td_native_checkpoint *checkpoint = NULL;
        TD_AUTO(td_native_pipeline) *pipeline = NULL;
        td_errinfo info = {""};
        (void)snprintf(path, sizeof path, TD_NATIVE_GOLDEN "%s", cases[i].kind);
        assert_int_equal(td_native_checkpoint_open(path, &checkpoint, &info),
                         TD_OK);
        assert_int_equal(
            td_native_pipeline_new(checkpoint, cases[i].path, &pipeline, &info),
            cases[i].err);
        assert_non_null(strstr(info.text, cases[i].says));
        td_native_checkpoint_close(checkpoint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_text_and_actions_are_lerobots_to_the_bit),
        cmocka_unit_test(colours_are_lerobots),
        cmocka_unit_test(one_request_leaves_nothing_to_the_next),
        cmocka_unit_test(actions_there_and_back_are_the_same),
        cmocka_unit_test(a_missing_tokenizer_is_named_with_where_to_get_it),
        cmocka_unit_test(
            a_tokenizer_may_be_in_the_hubs_cache_or_where_lerobot_saves_it),
        cmocka_unit_test(a_tokenizer_that_is_given_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
