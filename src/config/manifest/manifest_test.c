// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/manifest.h"

#include "config/manifest/manifest_text.h"
#include "config/yaml/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static td_config_manifest *parsed(const char *text)
{
    td_config_manifest *manifest = NULL;
    td_errinfo info = {""};
    td_err err = td_config_manifest_parse("etc/manifest.yaml", text,
                                          strlen(text), &manifest, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return manifest;
}

static void the_reference_manifest_is_read(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest =
        parsed("cluster_uuid: jupiter\n"
               "experiment_tag: fabio2\n"
               "server:\n"
               "- model_id: pi0\n"
               "  model_version: v1\n"
               "  pretrained_path: lerobot/pi0-cookie-v1\n"
               "  application_tag: cookie\n"
               "  device: cuda:0\n"
               "  fps: 30\n"
               "  endpoint: tcp/192.168.1.50:7447\n"
               "  clients:\n"
               "  - client_uuid: cookie-worker-4269\n"
               "  engine: {kind: synthetic}\n");
    assert_string_equal(manifest->cluster_uuid, "jupiter");
    assert_string_equal(manifest->experiment_tag, "fabio2");
    assert_int_equal(manifest->model_count, 1);
    const td_config_model *model = &manifest->models[0];
    assert_string_equal(model->model_id, "pi0");
    assert_string_equal(model->model_version, "v1");
    assert_string_equal(model->pretrained_path, "lerobot/pi0-cookie-v1");
    assert_string_equal(model->application_tag, "cookie");
    assert_string_equal(model->device, "cuda:0");
    assert_int_equal(model->fps, 30);
    assert_string_equal(model->endpoint, "tcp/192.168.1.50:7447");
    assert_int_equal(model->client_count, 1);
    assert_string_equal(model->clients[0].client_uuid, "cookie-worker-4269");
}

static void a_schema_takes_either_name_of_the_list(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_config_schema_write(&td_config_manifest_table, "manifest", out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "\"oneOf\":[{\"required\":[\"models\"]},"
                                 "{\"required\":[\"server\"]}]"));
    free(text);
}

static void the_rest_has_defaults(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(WHOLE ENGINE);
    const td_config_model *model = &manifest->models[0];
    assert_string_equal(model->pretrained_path, "");
    assert_string_equal(model->device, "cpu");
    assert_true(strlen(model->server_id) > 0);
    assert_int_equal(model->fps, 30);
    assert_int_equal(model->mode, TD_CONFIG_PEER);
    assert_int_equal(model->connect_count, 0);
    assert_true(model->shared_memory);
    assert_false(model->accept_unknown);
    assert_int_equal(model->capacity, 256);
    const td_config_engine *engine = &model->engine;
    assert_int_equal(engine->kind, TD_CONFIG_SYNTHETIC);
    assert_int_equal(engine->action_count, 6);
    assert_string_equal(engine->actions[5].name, "joint_5");
    assert_int_equal(engine->actions[5].kind, TD_CONFIG_LINEAR);
    assert_int_equal(engine->state_count, 6);
    assert_string_equal(engine->states[5].name, "joint_5");
    assert_int_equal(engine->camera_count, 0);
    assert_int_equal(engine->chunk, 50);
    assert_int_equal(engine->max_batch, 1);
    assert_false(engine->continuous);
    assert_int_equal(engine->latency.kind, TD_CONFIG_LATENCY_NONE);
    assert_int_equal(engine->seed, 0);
    assert_false(engine->check_images);
}

static void scheduling_has_the_published_defaults(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(WHOLE ENGINE);
    const td_config_scheduling *scheduling = &manifest->scheduling;
    assert_int_equal(scheduling->strategy, TD_CONFIG_MODEL_DEADLINE);
    assert_true(scheduling->weights.cadence == 45);
    assert_true(scheduling->weights.urgency == 25);
    assert_true(scheduling->weights.steps == 15);
    assert_true(scheduling->weights.priority == 10);
    assert_true(scheduling->weights.age == 15);
    assert_string_equal(scheduling->score, "");
    assert_string_equal(scheduling->plugin, "");
    assert_int_equal(scheduling->tiers, 4);
    assert_int_equal(scheduling->queue.size, 1000);
    assert_true(scheduling->queue.ttl_ms == 5000);
    assert_int_equal(scheduling->queue.overflow, TD_CONFIG_DROP_OLDEST);
    assert_int_equal(scheduling->queue.retries, 0);
    assert_true(scheduling->cadence.alpha == 0.3);
    assert_true(scheduling->fairness == 0.1);
    assert_true(scheduling->cadence.gone_s == 10);
    assert_true(scheduling->cadence.wake_ahead_ms == 5);
    assert_int_equal(scheduling->cadence.wake_samples, 5);
    assert_int_equal(scheduling->flush.max_size, 8);
    assert_true(scheduling->flush.wait_ms == 10);
    assert_int_equal(manifest->admin.port, 0);
    assert_string_equal(manifest->admin.address, "127.0.0.1");
}

static void a_server_has_defaults_for_how_it_runs(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(WHOLE ENGINE);
    const td_config_model *model = &manifest->models[0];
    assert_int_equal(model->max_inflight, 2);
    assert_int_equal(model->batch.wait, TD_CONFIG_WAIT_SLACK);
    assert_int_equal(model->batch.max_size, 0);
    assert_true(model->precompute);
    assert_int_equal(model->prefixes.mb, 1024);
    assert_true(model->prefixes.age_s == 60);
    assert_true(model->inputs.alignment_ms == 20);
    assert_true(model->inputs.staleness_ms == 1000);
    assert_true(model->clients[0].latency_budget_ms == 50);
    assert_int_equal(model->clients[0].highest_priority, 0);
    assert_true(model->clients[0].max_urgency == 1);
    assert_true(model->unknown.latency_budget_ms == 50);
    assert_int_equal(model->unknown.highest_priority, 0);
    assert_null(model->unknown.client_uuid);
}

static void what_others_check_knows_its_line(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest =
        parsed("scheduling:\n"
               "  strategy: tiered_deadline\n"
               "  score: 2 * urgency\n" WHOLE ENGINE);
    assert_string_equal(manifest->scheduling.score, "2 * urgency");
    assert_string_equal(manifest->scheduling.score_at,
                        "etc/manifest.yaml:3: scheduling.score");
    TD_AUTO(td_config_manifest) *other =
        parsed("scheduling: {plugin: my.so}\n" WHOLE ENGINE);
    assert_string_equal(other->scheduling.plugin, "etc/my.so");
    assert_string_equal(other->scheduling.plugin_at,
                        "etc/manifest.yaml:1: scheduling.plugin");
}

static void one_client_may_use_several_models(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest =
        parsed(WHOLE ENGINE NAMES PLACE CLIENTS ENGINE);
    assert_string_equal(manifest->models[0].clients[0].client_uuid,
                        manifest->models[1].clients[0].client_uuid);
}

static void an_engine_with_all_its_settings_is_read(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest =
        parsed(WHOLE "  engine:\n"
                     "    kind: synthetic\n"
                     "    actions: {arm: {kind: angle}, hand: {kind: hold}}\n"
                     "    states: [arm, hand, force]\n"
                     "    cameras: {front: {height: 96, width: 128}, wrist: }\n"
                     "    chunk: 16\n"
                     "    max_batch: 8\n"
                     "    continuous: true\n"
                     "    latency:\n"
                     "      kind: lognormal\n"
                     "      ms: 40\n"
                     "      std_ms: 2.5\n"
                     "      per_batch_ms: 3\n"
                     "      prepare_ms: 1.5\n"
                     "    seed: 7\n"
                     "    check_images: true\n");
    const td_config_engine *engine = &manifest->models[0].engine;
    assert_int_equal(engine->action_count, 2);
    assert_int_equal(engine->actions[0].kind, TD_CONFIG_ANGLE);
    assert_int_equal(engine->actions[1].kind, TD_CONFIG_HOLD);
    assert_int_equal(engine->state_count, 3);
    assert_string_equal(engine->states[2].name, "force");
    assert_int_equal(engine->camera_count, 2);
    assert_string_equal(engine->cameras[0].name, "front");
    assert_int_equal(engine->cameras[0].width, 128);
    assert_int_equal(engine->cameras[1].height, 480);
    assert_int_equal(engine->chunk, 16);
    assert_int_equal(engine->max_batch, 8);
    assert_true(engine->continuous);
    assert_int_equal(engine->latency.kind, TD_CONFIG_LATENCY_LOGNORMAL);
    assert_true(engine->latency.ms == 40);
    assert_true(engine->latency.std_ms == 2.5);
    assert_true(engine->latency.per_batch_ms == 3);
    assert_true(engine->latency.prepare_ms == 1.5);
    assert_int_equal(engine->seed, 7);
    assert_true(engine->check_images);
}

static void a_profile_lies_beside_the_manifest(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *beside = parsed(
        WHOLE
        "  engine: {kind: synthetic, latency: {kind: profile, file: p.txt}}\n");
    assert_string_equal(beside->models[0].engine.latency.file, "etc/p.txt");
    TD_AUTO(td_config_manifest) *absolute = parsed(
        WHOLE
        "  engine: {kind: synthetic, latency: {kind: profile, file: /p}}\n");
    assert_string_equal(absolute->models[0].engine.latency.file, "/p");
}

static void each_server_of_a_manifest_gets_its_own_name(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest =
        parsed(WHOLE ENGINE NAMES PLACE CLIENTS ENGINE);
    assert_int_equal(manifest->model_count, 2);
    assert_string_not_equal(manifest->models[0].server_id,
                            manifest->models[1].server_id);
}

static void a_manifest_that_is_not_there_is_named(void **state)
{
    (void)state;
    td_config_manifest *manifest = NULL;
    td_errinfo info = {""};
    assert_int_equal(
        td_config_manifest_load("/nowhere/m.yaml", &manifest, &info),
        TD_ERR_IO);
    assert_string_equal(info.text,
                        "/nowhere/m.yaml: No such file or directory");
}

static void help_speaks_of_every_part(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_config_table_help(&td_config_manifest_table, out);
    fclose(out);
    assert_non_null(strstr(text, "  fps: 1 to 1000 (default 30)\n"));
    assert_non_null(strstr(text, "      per_batch_ms: "));
    assert_non_null(strstr(text, "who goes first; reloads\n"));
    assert_null(strstr(text, "policy steps a second; reloads"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_manifest_is_read),
        cmocka_unit_test(a_schema_takes_either_name_of_the_list),
        cmocka_unit_test(the_rest_has_defaults),
        cmocka_unit_test(scheduling_has_the_published_defaults),
        cmocka_unit_test(a_server_has_defaults_for_how_it_runs),
        cmocka_unit_test(what_others_check_knows_its_line),
        cmocka_unit_test(one_client_may_use_several_models),
        cmocka_unit_test(an_engine_with_all_its_settings_is_read),
        cmocka_unit_test(a_profile_lies_beside_the_manifest),
        cmocka_unit_test(each_server_of_a_manifest_gets_its_own_name),
        cmocka_unit_test(a_manifest_that_is_not_there_is_named),
        cmocka_unit_test(help_speaks_of_every_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
