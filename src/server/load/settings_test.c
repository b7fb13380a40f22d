// SPDX-License-Identifier: Apache-2.0
#include "server/load/settings.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENTRY(id, device)                                                      \
    "- {model_id: m, model_version: v1, application_tag: a, server_id: " id    \
    ", device: " device                                                        \
    ", endpoint: tcp/127.0.0.1:1, engine: {kind: synthetic, max_batch: 8}"
#define HEAD "cluster_uuid: c\nexperiment_tag: e\n"
#define PLAIN ENTRY("x", "cpu") ", accept_unknown: true}\n"

static td_config_manifest *parsed(const char *text)
{
    td_config_manifest *manifest = NULL;
    td_errinfo info = {""};
    if (td_config_manifest_parse("m.yaml", text, strlen(text), &manifest,
                                 &info) != TD_OK)
        fail_msg("%s", info.text);
    return manifest;
}

static void names_are_in_the_order_of_the_scheduler(void **state)
{
    (void)state;
    for (int i = 0; i < TD_SCHED_STRATEGY_COUNT; i++)
        assert_string_equal(td_config_strategies[i],
                            td_sched_strategy_name((td_sched_strategy)i));
    assert_null(td_config_strategies[TD_SCHED_STRATEGY_COUNT]);
    for (int i = 0; i < TD_SCHED_OVERFLOW_COUNT; i++)
        assert_string_equal(td_config_overflows[i],
                            td_sched_queue_overflow_name((td_sched_overflow)i));
    assert_null(td_config_overflows[TD_SCHED_OVERFLOW_COUNT]);
    for (int i = 0; i < TD_SCHED_WAIT_COUNT; i++)
        assert_string_equal(td_config_waits[i],
                            td_sched_batch_wait_name((td_sched_batch_wait)i));
    assert_null(td_config_waits[TD_SCHED_WAIT_COUNT]);
    assert_int_equal(TD_CONFIG_MAX_TIERS, TD_SCHED_MAX_TIERS);
    assert_int_equal(TD_CONFIG_MAX_BATCH, TD_SCHED_MAX_BATCH);
}

// Only these three may have a user's score.
static void strategies_that_score_come_first(void **state)
{
    (void)state;
    for (int i = 0; i < TD_SCHED_STRATEGY_COUNT; i++)
        assert_int_equal(td_sched_strategy_scores((td_sched_strategy)i),
                         i <= TD_CONFIG_TIERED_DEADLINE);
}

static void a_device_has_room_for_the_servers_that_share_it(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(
        HEAD "scheduling:\n"
             "  queue: {size: 7, ttl_ms: 2.5, overflow: reject_newest, "
             "retries: 2, backoff_ms: 1}\n"
             "  cadence: {gone_s: 3, wake_ahead_ms: 4}\n"
             "  flush: {max_size: 3, wait_ms: 6}\n"
             "models:\n" ENTRY(
                 "x", "cuda:0") ", accept_unknown: true, "
                                "capacity: 10}\n" ENTRY(
                                    "y", "cpu") ", accept_unknown: "
                                                "true}\n" ENTRY(
                                                    "z", "cuda:0") ", "
                                                                   "accept"
                                                                   "_unkno"
                                                                   "wn: "
                                                                   "true, "
                                                                   "capaci"
                                                                   "ty: "
                                                                   "5}\n");
    td_sched_policy policy;
    td_server_plugin *plugin = NULL;
    assert_int_equal(td_server_settings_policy(&manifest->scheduling, &policy,
                                               &plugin, NULL),
                     TD_OK);
    assert_null(plugin);
    td_server_device_settings device;
    td_server_settings_device(manifest, &manifest->scheduling, "cuda:0",
                              &policy, &device);
    assert_int_equal(device.models, 2);
    assert_int_equal(device.clients, 15);
    assert_int_equal(device.queue.size, 7);
    assert_int_equal(device.queue.ttl_ns, 2500000);
    assert_int_equal(device.queue.overflow, TD_SCHED_REJECT_NEWEST);
    assert_int_equal(device.queue.retries, 2);
    assert_int_equal(device.queue.backoff_ns, TD_NS_PER_MS);
    assert_int_equal(device.cadence.gone_ns, 3 * TD_NS_PER_S);
    assert_int_equal(device.cadence.wake_ahead_ns, 4 * TD_NS_PER_MS);
    assert_int_equal(device.flush.most, 3);
    assert_int_equal(device.flush.wait_ns, 6 * TD_NS_PER_MS);
}

static void the_defaults_are_those_of_the_scheduler(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(HEAD "models:\n" PLAIN);
    td_sched_policy policy;
    td_server_plugin *plugin = NULL;
    assert_int_equal(td_server_settings_policy(&manifest->scheduling, &policy,
                                               &plugin, NULL),
                     TD_OK);
    const td_server_device_settings *published = &td_server_device_defaults;
    td_server_device_settings device;
    td_server_settings_device(manifest, &manifest->scheduling, "cpu", &policy,
                              &device);
    assert_int_equal(policy.strategy, published->policy.strategy);
    assert_memory_equal(&policy.weights, &published->policy.weights,
                        sizeof policy.weights);
    assert_int_equal(policy.tiers, published->policy.tiers);
    assert_int_equal(device.queue.size, published->queue.size);
    assert_int_equal(device.queue.ttl_ns, published->queue.ttl_ns);
    assert_int_equal(device.queue.backoff_ns, published->queue.backoff_ns);
    assert_memory_equal(&device.flush, &published->flush, sizeof device.flush);
    assert_true(device.cadence.alpha == published->cadence.alpha);
    assert_int_equal(device.cadence.gone_ns, published->cadence.gone_ns);
}

static void a_model_and_its_clients_are_set_up_as_written(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(HEAD "models:\n" ENTRY(
        "x", "cpu") ", max_inflight: 3, "
                    "batch: {wait: fixed, max_size: 5, wait_ms: 4}, "
                    "precompute: false, prefixes: {mb: 2, age_s: 7}, "
                    "inputs: {staleness_ms: 250, alignment_ms: 12.5}, "
                    "clients: [{client_uuid: r1, latency_budget_ms: 20, "
                    "highest_priority: 2, max_urgency: 0.5}], "
                    "unknown: {highest_priority: 4}}\n");
    td_server_model_config config;
    td_server_allowance *clients = NULL;
    assert_int_equal(td_server_settings_from(manifest, &manifest->models[0], 9,
                                             &config, &clients),
                     TD_OK);
    assert_int_equal(config.settings.boot, 9);
    assert_string_equal(clients[0].id, "r1");
    assert_int_equal(clients[0].budget_ns, 20 * TD_NS_PER_MS);
    assert_int_equal(clients[0].best_priority, 2);
    assert_true(clients[0].most_urgency == 0.5F);
    assert_null(config.settings.unknown.id);
    assert_int_equal(config.settings.unknown.best_priority, 4);
    assert_int_equal(config.settings.unknown.budget_ns, 50 * TD_NS_PER_MS);
    assert_int_equal(config.model.batch.wait, TD_SCHED_WAIT_FIXED);
    assert_int_equal(config.model.batch.most, 5);
    assert_int_equal(config.model.batch.wait_ns, 4 * TD_NS_PER_MS);
    assert_int_equal(config.model.max_inflight, 3);
    assert_false(config.model.precompute);
    assert_int_equal(config.model.prefix_bytes, 2 << 20);
    assert_int_equal(config.model.prefix_age_ns, 7 * TD_NS_PER_S);
    assert_int_equal(config.model.inputs.staleness_us, 250000);
    assert_int_equal(config.model.inputs.alignment_us, 12500);
    free(clients);
}

static const struct {
    const char *name, *scheduling, *error;
} wrong[] = {
    {"a field that is not there", "score: 2 * hurry",
     "m.yaml:4: scheduling.score: column 5: "},
    {"an end too early", "score: urgency +",
     "m.yaml:4: scheduling.score: column 10: "},
    {"a library that is not there", "plugin: /nowhere/my.so",
     "m.yaml:4: scheduling.plugin: /nowhere/my.so: cannot open shared object "
     "file: No such file or directory"},
};

static void what_is_wrong_with_a_score_is_said_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(wrong); i++) {
        char text[1024];
        snprintf(text, sizeof text, HEAD "scheduling:\n  %s\nmodels:\n" PLAIN,
                 wrong[i].scheduling);
        TD_AUTO(td_config_manifest) *manifest = parsed(text);
        td_sched_policy policy;
        td_server_plugin *plugin = NULL;
        td_errinfo info = {""};
        td_err err = td_server_settings_policy(&manifest->scheduling, &policy,
                                               &plugin, &info);
        if (err == TD_OK || plugin ||
            strncmp(info.text, wrong[i].error, strlen(wrong[i].error)) != 0)
            fail_msg("%s: %s", wrong[i].name, info.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_in_the_order_of_the_scheduler),
        cmocka_unit_test(strategies_that_score_come_first),
        cmocka_unit_test(a_device_has_room_for_the_servers_that_share_it),
        cmocka_unit_test(the_defaults_are_those_of_the_scheduler),
        cmocka_unit_test(a_model_and_its_clients_are_set_up_as_written),
        cmocka_unit_test(what_is_wrong_with_a_score_is_said_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
