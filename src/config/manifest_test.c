// SPDX-License-Identifier: Apache-2.0
#include "config/manifest.h"

#include "config/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The smallest manifest, line by line, so that a case can replace or add some.
#define HEAD                                                                   \
    "cluster_uuid: jupiter\n"                                                  \
    "experiment_tag: fabio2\n"                                                 \
    "server:\n"
#define NAMES                                                                  \
    "- model_id: pi0\n"                                                        \
    "  model_version: v1\n"                                                    \
    "  application_tag: cookie\n"
#define PLACE "  endpoint: tcp/192.168.1.50:7447\n"
#define CLIENTS                                                                \
    "  clients:\n"                                                             \
    "  - client_uuid: cookie-worker-4269\n"
#define ENGINE "  engine: {kind: synthetic}\n"
#define WHOLE HEAD NAMES PLACE CLIENTS // and then line 10

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
    assert_int_equal(manifest->server_count, 1);
    const td_config_server *server = &manifest->server[0];
    assert_string_equal(server->model_id, "pi0");
    assert_string_equal(server->model_version, "v1");
    assert_string_equal(server->pretrained_path, "lerobot/pi0-cookie-v1");
    assert_string_equal(server->application_tag, "cookie");
    assert_string_equal(server->device, "cuda:0");
    assert_int_equal(server->fps, 30);
    assert_string_equal(server->endpoint, "tcp/192.168.1.50:7447");
    assert_int_equal(server->client_count, 1);
    assert_string_equal(server->clients[0].client_uuid, "cookie-worker-4269");
}

static void the_rest_has_defaults(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest = parsed(WHOLE ENGINE);
    const td_config_server *server = &manifest->server[0];
    assert_string_equal(server->pretrained_path, "");
    assert_string_equal(server->device, "cpu");
    assert_true(strlen(server->server_id) > 0);
    assert_int_equal(server->fps, 30);
    assert_int_equal(server->mode, TD_CONFIG_PEER);
    assert_int_equal(server->connect_count, 0);
    assert_true(server->shared_memory);
    assert_false(server->accept_unknown);
    assert_int_equal(server->capacity, 256);
    const td_config_engine *engine = &server->engine;
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
    const td_config_engine *engine = &manifest->server[0].engine;
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
    assert_string_equal(beside->server[0].engine.latency.file, "etc/p.txt");
    TD_AUTO(td_config_manifest) *absolute = parsed(
        WHOLE
        "  engine: {kind: synthetic, latency: {kind: profile, file: /p}}\n");
    assert_string_equal(absolute->server[0].engine.latency.file, "/p");
}

static void servers_of_one_manifest_get_names_of_their_own(void **state)
{
    (void)state;
    TD_AUTO(td_config_manifest) *manifest =
        parsed(WHOLE ENGINE NAMES PLACE CLIENTS ENGINE);
    assert_int_equal(manifest->server_count, 2);
    assert_string_not_equal(manifest->server[0].server_id,
                            manifest->server[1].server_id);
}

#define CHUNK_RULE "1 to 64 of A-Z a-z 0-9 . _ -, not starting with '.'"
#define ENDPOINT_RULE "protocol/address such as tcp/192.168.1.50:7447"
static const struct {
    const char *name, *text, *error; // after "manifest.yaml:"
} broken[] = {
    {"fps of 0", WHOLE "  fps: 0\n" ENGINE,
     "10: server[0].fps: must be 1 to 1000, got 0"},
    {"fps in words", WHOLE "  fps: thirty\n" ENGINE,
     "10: server[0].fps: must be a whole number, 1 to 1000, got thirty"},
    {"no cluster", "experiment_tag: x\n",
     "1: cluster_uuid: is missing, must be " CHUNK_RULE},
    {"no server", "cluster_uuid: a\nexperiment_tag: b\n",
     "1: server: is missing, must be a list"},
    {"an empty list", "cluster_uuid: a\nexperiment_tag: b\nserver: []\n",
     "3: server: must have 1 to 64 members, got 0"},
    {"a server that is no list",
     "cluster_uuid: a\nexperiment_tag: b\nserver: {model_id: x}\n",
     "3: server: must be a list, got a map"},
    {"not a map at all", "just words\n",
     "1: must be a map of fields, got just words"},
    {"slash in the cluster",
     "cluster_uuid: a/b\nexperiment_tag: b\nserver: []\n",
     "1: cluster_uuid: must be " CHUNK_RULE ", got a/b"},
    {"star in a client",
     HEAD NAMES PLACE "  clients: [{client_uuid: \"*\"}]\n" ENGINE,
     "8: server[0].clients[0].client_uuid: must be " CHUNK_RULE ", got \"*\""},
    {"no model",
     HEAD "- model_version: v1\n  application_tag: c\n" PLACE CLIENTS ENGINE,
     "4: server[0].model_id: is missing, must be " CHUNK_RULE},
    {"no endpoint", HEAD NAMES CLIENTS ENGINE,
     "4: server[0].endpoint: is missing, must be " ENDPOINT_RULE},
    {"an endpoint without protocol",
     HEAD NAMES "  endpoint: 192.168.1.50\n" CLIENTS ENGINE,
     "7: server[0].endpoint: must be " ENDPOINT_RULE ", got 192.168.1.50"},
    {"no engine", WHOLE,
     "4: server[0].engine: is missing, must be a map of fields"},
    {"an engine that is not known", WHOLE "  engine: {kind: cuda}\n",
     "10: server[0].engine.kind: must be synthetic, got cuda"},
    {"an engine of no kind", WHOLE "  engine: {chunk: 3}\n",
     "10: server[0].engine.kind: is missing, must be synthetic"},
    {"a misspelt field", WHOLE "  modle_id: x\n" ENGINE,
     "10: server[0].modle_id: no such field, did you mean model_id?"},
    {"a field twice", WHOLE ENGINE "  endpoint: tcp/a:1\n",
     "11: endpoint: given twice, first on line 7"},
    {"a mode that is not known", WHOLE "  mode: mesh\n" ENGINE,
     "10: server[0].mode: must be peer, client, router, got mesh"},
    {"nobody to serve", HEAD NAMES PLACE ENGINE,
     "4: server[0].clients: lists nobody, name a client or set "
     "accept_unknown: true"},
    {"a client twice",
     HEAD NAMES PLACE CLIENTS "  - client_uuid: cookie-worker-4269\n" ENGINE,
     "10: server[0].clients: cookie-worker-4269 is listed twice"},
    {"more clients than room",
     HEAD NAMES PLACE CLIENTS "  - client_uuid: b\n  capacity: 1\n" ENGINE,
     "11: server[0].capacity: must be at least the 2 clients listed, got "
     "1"},
    {"a server's name twice",
     WHOLE "  server_id: x\n" ENGINE NAMES PLACE CLIENTS
           "  server_id: x\n" ENGINE,
     "12: server: server_id x is given twice"},
    {"a profile without a file",
     WHOLE "  engine: {kind: synthetic, latency: {kind: profile}}\n",
     "10: server[0].engine.latency.file: is missing, a profile needs the "
     "file of its samples"},
    {"a file without a profile",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    latency: {kind: fixed, ms: 3, file: x}\n",
     "12: server[0].engine.latency.file: is for kind: profile only"},
    {"a lognormal around nothing",
     WHOLE "  engine: {kind: synthetic, latency: {kind: lognormal}}\n",
     "10: server[0].engine.latency.ms: must be above 0 for kind: "
     "lognormal, got 0"},
    {"a batch too large",
     WHOLE "  engine: {kind: synthetic, "
           "max_batch: 65}\n",
     "10: server[0].engine.max_batch: must be 1 to 64, got 65"},
    {"half a quaternion",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    actions: {a: {}, x: {kind: quaternion}, b: {}}\n",
     "12: server[0].engine.actions: a quaternion is four channels in a "
     "row, x begins fewer"},
    {"a camera without pixels",
     WHOLE "  engine: {kind: synthetic, cameras: {top: {height: 0}}}\n",
     "10: server[0].engine.cameras.top.height: must be 32 to 8192, got 0"},
};

static void a_broken_manifest_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(broken); i++) {
        td_config_manifest *manifest = NULL;
        td_errinfo info = {""};
        char error[512];
        snprintf(error, sizeof error, "manifest.yaml:%s", broken[i].error);
        td_err err =
            td_config_manifest_parse("manifest.yaml", broken[i].text,
                                     strlen(broken[i].text), &manifest, &info);
        if (err == TD_OK || manifest || strcmp(info.text, error) != 0)
            fail_msg("%s:\n got  %s\n want %s", broken[i].name, info.text,
                     error);
    }
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
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_manifest_is_read),
        cmocka_unit_test(the_rest_has_defaults),
        cmocka_unit_test(an_engine_with_all_its_settings_is_read),
        cmocka_unit_test(a_profile_lies_beside_the_manifest),
        cmocka_unit_test(servers_of_one_manifest_get_names_of_their_own),
        cmocka_unit_test(a_broken_manifest_is_refused_with_its_line),
        cmocka_unit_test(a_manifest_that_is_not_there_is_named),
        cmocka_unit_test(help_speaks_of_every_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
