// SPDX-License-Identifier: Apache-2.0
// The `engine` of a manifest, kind by kind.
#include "config/manifest/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                   \
    "cluster_uuid: c\n"                                                        \
    "experiment_tag: e\n"                                                      \
    "models:\n"                                                                \
    "- {model_id: m, model_version: v, application_tag: a, accept_unknown: "   \
    "true, endpoint: tcp/127.0.0.1:7447,\n"                                    \
    "   engine: "

static td_errinfo info;

static td_err parse(const char *engine, td_config_manifest **ret_manifest)
{
    char text[1024];
    int size = snprintf(text, sizeof text, HEAD "%s}\n", engine);
    return td_config_manifest_parse("shop/m.yaml", text, (size_t)size,
                                    ret_manifest, &info);
}

static void a_worker_leaves_open_what_is_not_given(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = NULL;
    assert_int_equal(
        parse("{kind: worker, python: pkg.policy:infer}", &manifest), TD_OK);
    const td_config_engine *engine = &manifest->models[0].engine;
    assert_int_equal(engine->kind, TD_CONFIG_WORKER);
    assert_string_equal(engine->python, "pkg.policy:infer");
    assert_int_equal(engine->action_count, 0);
    assert_int_equal(engine->state_count, 0);
    assert_int_equal(engine->chunk, 0);
    assert_int_equal(engine->max_batch, 0);
    assert_int_equal(engine->memory_mb, 0);
    assert_true(engine->start_s == 300 && engine->answer_s == 5);
}

static void
batches_of_a_worker_may_be_bounded_before_it_says_its_size(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = NULL;
    assert_int_equal(
        parse("{kind: worker, python: p:f}, batch: {max_size: 4}", &manifest),
        TD_OK);
    assert_int_equal(manifest->models[0].batch.max_size, 4);
}

static void a_worker_takes_what_is_given(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = NULL;
    assert_int_equal(
        parse("{kind: worker, command: [prog, -x, \"a b\"], actions: [j], "
              "chunk: 9, max_batch: 4, memory_mb: 512, answer_s: 0.5, rtc: "
              "true, tolerance: 0.25, results_kb: 2}",
              &manifest),
        TD_OK);
    const td_config_engine *engine = &manifest->models[0].engine;
    assert_int_equal(engine->command_count, 3);
    assert_string_equal(engine->command[2], "a b");
    assert_int_equal(engine->action_count, 1);
    assert_int_equal(engine->state_count, 1);
    assert_int_equal(engine->chunk, 9);
    assert_int_equal(engine->max_batch, 4);
    assert_int_equal(engine->memory_mb, 512);
    assert_int_equal(engine->results_kb, 2);
    assert_true(engine->answer_s == 0.5 && engine->tolerance == 0.25);
    assert_true(engine->rtc);
}

static void a_policy_in_a_file_is_beside_the_manifest(void **state)
{
    (void)state;
    static const struct {
        const char *python, *want;
    } cases[] = {
        {"policy.py:infer", "shop/policy.py:infer"},
        {"/opt/policy.py:infer", "/opt/policy.py:infer"},
        {"policy:infer", "policy:infer"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        TD_AUTO(td_config_manifest) *manifest = NULL;
        char engine[128];
        (void)snprintf(engine, sizeof engine, "{kind: worker, python: \"%s\"}",
                       cases[i].python);
        assert_int_equal(parse(engine, &manifest), TD_OK);
        assert_string_equal(manifest->models[0].engine.python, cases[i].want);
    }
}

static void a_checkpoint_is_run_natively_unless_said_otherwise(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = NULL;
    assert_int_equal(
        parse("{threads: 2, tokenizer: t.json, ensemble: {enabled: true}}, "
              "pretrained_path: act",
              &manifest),
        TD_OK);
    const td_config_engine *engine = &manifest->models[0].engine;
    assert_int_equal(engine->kind, TD_CONFIG_NATIVE);
    assert_int_equal(engine->action_count, 0);
    assert_int_equal(engine->state_count, 0);
    assert_int_equal(engine->max_batch, 1);
    assert_int_equal(engine->threads, 2);
    assert_string_equal(engine->tokenizer, "shop/t.json");
    assert_true(engine->ensemble.enabled);
    assert_true(engine->ensemble.coefficient == 0.01);
    assert_string_equal(manifest->models[0].pretrained_path, "shop/act");
}

static void each_kind_has_its_own_fields(void **state)
{
    (void)state;
    static const struct {
        const char *engine, *text;
    } cases[] = {
        {"{kind: worker}", "engine: a worker needs python or command, and not "
                           "both"},
        {"{kind: worker, python: \"p:f\", command: [p]}",
         "engine: a worker needs python or command, and not both"},
        {"{kind: worker, python: policy.py}",
         "engine.python: must be file.py:name or module:name, got "
         "\"policy.py\""},
        {"{kind: worker, command: [p], batched: true}",
         "engine.batched: is for python only"},
        {"{kind: worker, python: \"p:f\", latency: {kind: fixed, ms: 1}}",
         "engine.latency: is for kind: synthetic only"},
        {"{kind: synthetic, python: \"p:f\"}",
         "engine.python: is for kind: worker only"},
        {"{kind: synthetic, memory_mb: 5}",
         "engine.memory_mb: is for kind: worker only"},
        {"{kind: callback, python: \"p:f\"}",
         "engine.python: is for kind: worker only"},
        {"{kind: synthetic, rtc: true}",
         "engine.rtc: is for kind: worker or callback only"},
        {"{kind: native, chunk: 5}, pretrained_path: act",
         "engine.chunk: is for kind: synthetic or worker or callback only"},
        {"{kind: synthetic, threads: 2}",
         "engine.threads: is for kind: native only"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_config_manifest *manifest = NULL;
        assert_int_equal(parse(cases[i].engine, &manifest), TD_ERR_INVALID);
        char want[256];
        (void)snprintf(want, sizeof want, "shop/m.yaml:5: models[0].%s",
                       cases[i].text);
        assert_string_equal(info.text, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_leaves_open_what_is_not_given),
        cmocka_unit_test(
            batches_of_a_worker_may_be_bounded_before_it_says_its_size),
        cmocka_unit_test(a_worker_takes_what_is_given),
        cmocka_unit_test(a_policy_in_a_file_is_beside_the_manifest),
        cmocka_unit_test(a_checkpoint_is_run_natively_unless_said_otherwise),
        cmocka_unit_test(each_kind_has_its_own_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
