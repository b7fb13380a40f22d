// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/manifest.h"
#include "config/manifest/manifest_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CHUNK_RULE "1 to 64 of A-Z a-z 0-9 . _ -, not starting with '.'"
#define ENDPOINT_RULE "protocol/address such as tcp/192.168.1.50:7447"
static const struct {
    const char *name, *text, *error; // after "manifest.yaml:"
} broken[] = {
    {"fps of 0", WHOLE "  fps: 0\n" ENGINE,
     "10: models[0].fps: must be 1 to 1000, got 0"},
    {"fps in words", WHOLE "  fps: thirty\n" ENGINE,
     "10: models[0].fps: must be a whole number, 1 to 1000, got thirty"},
    {"no cluster", "experiment_tag: x\n",
     "1: cluster_uuid: is missing, must be " CHUNK_RULE},
    {"no model", "cluster_uuid: a\nexperiment_tag: b\n",
     "1: models: is missing, must be a list"},
    {"an empty list", "cluster_uuid: a\nexperiment_tag: b\nmodels: []\n",
     "3: models: must have 1 to 64 members, got 0"},
    {"models that are no list",
     "cluster_uuid: a\nexperiment_tag: b\nmodels: {model_id: x}\n",
     "3: models: must be a list, got a map"},
    {"as the list was called",
     "cluster_uuid: a\nexperiment_tag: b\nserver: [{fps: 0}]\n",
     "3: server[0].model_id: is missing, must be " CHUNK_RULE},
    {"a name twice as the list was called",
     "cluster_uuid: a\nexperiment_tag: b\nserver:\n" NAMES PLACE CLIENTS
     "  server_id: x\n" ENGINE NAMES PLACE CLIENTS "  server_id: x\n" ENGINE,
     "12: server: server_id x is given twice"},
    {"both names of the list", WHOLE ENGINE "server: []\n",
     "11: server: is another name of models, which is given too: move its "
     "members there"},
    {"not a map at all", "just words\n",
     "1: must be a map of fields, got just words"},
    {"slash in the cluster",
     "cluster_uuid: a/b\nexperiment_tag: b\nmodels: []\n",
     "1: cluster_uuid: must be " CHUNK_RULE ", got a/b"},
    {"star in a client",
     HEAD NAMES PLACE "  clients: [{client_uuid: \"*\"}]\n" ENGINE,
     "8: models[0].clients[0].client_uuid: must be " CHUNK_RULE ", got \"*\""},
    {"no model",
     HEAD "- model_version: v1\n  application_tag: c\n" PLACE CLIENTS ENGINE,
     "4: models[0].model_id: is missing, must be " CHUNK_RULE},
    {"no endpoint", HEAD NAMES CLIENTS ENGINE,
     "4: models[0].endpoint: is missing, must be " ENDPOINT_RULE},
    {"an endpoint without protocol",
     HEAD NAMES "  endpoint: 192.168.1.50\n" CLIENTS ENGINE,
     "7: models[0].endpoint: must be " ENDPOINT_RULE ", got 192.168.1.50"},
    {"no engine", WHOLE,
     "4: models[0].pretrained_path: is missing, an engine of kind: native "
     "reads the checkpoint in that folder"},
    {"an engine that is not known", WHOLE "  engine: {kind: cuda}\n",
     "10: models[0].engine.kind: must be synthetic, worker, callback, "
     "native, got cuda"},
    {"an engine of no kind", WHOLE "  engine: {chunk: 3}\n",
     "10: models[0].engine.chunk: is for kind: synthetic or worker or callback "
     "only"},
    {"a misspelt field", WHOLE "  modle_id: x\n" ENGINE,
     "10: models[0].modle_id: no such field, did you mean model_id?"},
    {"a field twice", WHOLE ENGINE "  endpoint: tcp/a:1\n",
     "11: endpoint: given twice, first on line 7"},
    {"a mode that is not known", WHOLE "  mode: mesh\n" ENGINE,
     "10: models[0].mode: must be peer, client, router, got mesh"},
    {"nobody to serve", HEAD NAMES PLACE ENGINE,
     "4: models[0].clients: lists nobody, name a client or set "
     "accept_unknown: true"},
    {"a client twice",
     HEAD NAMES PLACE CLIENTS "  - client_uuid: cookie-worker-4269\n" ENGINE,
     "10: models[0].clients: cookie-worker-4269 is listed twice"},
    {"more clients than room",
     HEAD NAMES PLACE CLIENTS "  - client_uuid: b\n  capacity: 1\n" ENGINE,
     "11: models[0].capacity: must be at least the 2 clients listed, got "
     "1"},
    {"a server_id twice",
     WHOLE "  server_id: x\n" ENGINE NAMES PLACE CLIENTS
           "  server_id: x\n" ENGINE,
     "12: models: server_id x is given twice"},
    {"a profile without a file",
     WHOLE "  engine: {kind: synthetic, latency: {kind: profile}}\n",
     "10: models[0].engine.latency.file: is missing, a profile needs the "
     "file of its samples"},
    {"a file without a profile",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    latency: {kind: fixed, ms: 3, file: x}\n",
     "12: models[0].engine.latency.file: is for kind: profile only"},
    {"a time of no kind",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    latency: {ms: 80}\n",
     "12: models[0].engine.latency.ms: is for kind: fixed or normal or "
     "lognormal only"},
    {"a deviation of a fixed time",
     WHOLE "  engine:\n    kind: synthetic\n    latency:\n"
           "      kind: fixed\n      ms: 3\n      std_ms: 1\n",
     "15: models[0].engine.latency.std_ms: is for kind: normal or lognormal "
     "only"},
    {"a time beside a profile",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    latency: {kind: profile, file: x, ms: 3}\n",
     "12: models[0].engine.latency.ms: is for kind: fixed or normal or "
     "lognormal only"},
    {"a deviation beside a profile",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    latency: {kind: profile, file: x, std_ms: 3}\n",
     "12: models[0].engine.latency.std_ms: is for kind: normal or lognormal "
     "only"},
    {"a lognormal around nothing",
     WHOLE "  engine: {kind: synthetic, latency: {kind: lognormal}}\n",
     "10: models[0].engine.latency.ms: must be above 0 for kind: "
     "lognormal, got 0"},
    {"a batch too large",
     WHOLE "  engine: {kind: synthetic, "
           "max_batch: 65}\n",
     "10: models[0].engine.max_batch: must be 1 to 64, got 65"},
    {"half a quaternion",
     WHOLE "  engine:\n    kind: synthetic\n"
           "    actions: {a: {}, x: {kind: quaternion}, b: {}}\n",
     "12: models[0].engine.actions: a quaternion is four channels in a "
     "row, x begins fewer"},
    {"an unknown strategy", "scheduling: {strategy: fifo}\n" WHOLE ENGINE,
     "1: scheduling.strategy: must be deadline_aware, model_deadline, "
     "tiered_deadline, priority_tiered, batch_optimized, round_robin, got "
     "fifo"},
    {"a weight below nothing",
     "scheduling: {weights: {age: -1}}\n" WHOLE ENGINE,
     "1: scheduling.weights.age: must be 0 to 1000, got -1"},
    {"no tiers", "scheduling: {tiers: 0}\n" WHOLE ENGINE,
     "1: scheduling.tiers: must be 1 to 8, got 0"},
    {"a score and a plug-in",
     "scheduling:\n  score: urgency\n  plugin: my.so\n" WHOLE ENGINE,
     "3: scheduling.plugin: a score is given too, choose one of the two"},
    {"a score for a strategy that does not score",
     "scheduling:\n  strategy: round_robin\n  score: urgency\n" WHOLE ENGINE,
     "3: scheduling.score: is for strategies that score, round_robin does "
     "not"},
    {"a plug-in for a strategy that does not score",
     "scheduling: {strategy: priority_tiered, plugin: x}\n" WHOLE ENGINE,
     "1: scheduling.plugin: is for strategies that score, priority_tiered "
     "does not"},
    {"no room to queue", "scheduling: {queue: {size: 0}}\n" WHOLE ENGINE,
     "1: scheduling.queue.size: must be 1 to 1000000, got 0"},
    {"an overflow that is not known",
     "scheduling: {queue: {overflow: wait}}\n" WHOLE ENGINE,
     "1: scheduling.queue.overflow: must be drop_oldest, reject_newest, got "
     "wait"},
    {"an average that never moves",
     "scheduling: {cadence: {alpha: 0}}\n" WHOLE ENGINE,
     "1: scheduling.cadence.alpha: must be 0.001 to 1, got 0"},
    {"a flush beyond any batch",
     "scheduling: {flush: {max_size: 65}}\n" WHOLE ENGINE,
     "1: scheduling.flush.max_size: must be 1 to 64, got 65"},
    {"an admin address by name", "admin: {address: gpu}\n" WHOLE ENGINE,
     "1: admin.address: must be an address such as 127.0.0.1 or ::1, got "
     "gpu"},
    {"an admin port too high", "admin: {port: 70000}\n" WHOLE ENGINE,
     "1: admin.port: must be 0 to 65535, got 70000"},
    {"an urgency above all",
     HEAD NAMES PLACE "  clients: [{client_uuid: a, max_urgency: 2}]\n" ENGINE,
     "8: models[0].clients[0].max_urgency: must be 0 to 1, got 2"},
    {"a priority beyond the lowest",
     WHOLE "  unknown: {highest_priority: 11}\n" ENGINE,
     "10: models[0].unknown.highest_priority: must be 0 to 10, got 11"},
    {"no batches under way", WHOLE "  max_inflight: 0\n" ENGINE,
     "10: models[0].max_inflight: must be 1 to 64, got 0"},
    {"a larger batch than the engine takes",
     WHOLE
     "  batch: {max_size: 4}\n  engine: {kind: synthetic, max_batch: 2}\n",
     "10: models[0].batch.max_size: must be at most the engine's max_batch, 2, "
     "got 4"},
    {"a wait that is not waited", WHOLE "  batch: {wait_ms: 5}\n" ENGINE,
     "10: models[0].batch.wait_ms: is for wait: fixed only"},
    {"a fixed wait of nothing", WHOLE "  batch: {wait: fixed}\n" ENGINE,
     "10: models[0].batch.wait_ms: must be above 0 for wait: fixed"},
    {"prefixes of less than nothing", WHOLE "  prefixes: {mb: -1}\n" ENGINE,
     "10: models[0].prefixes.mb: must be 0 to 1048576, got -1"},
    {"stale at once", WHOLE "  inputs: {staleness_ms: 0}\n" ENGINE,
     "10: models[0].inputs.staleness_ms: must be 1 to 600000, got 0"},
    {"one endpoint, two modes",
     WHOLE "  server_id: a\n" ENGINE NAMES PLACE CLIENTS
           "  server_id: b\n  mode: router\n" ENGINE,
     "12: models: a and b have one endpoint: mode, connect and "
     "shared_memory must be the same"},
    {"a camera without pixels",
     WHOLE "  engine: {kind: synthetic, cameras: {top: {height: 0}}}\n",
     "10: models[0].engine.cameras.top.height: must be 32 to 8192, got 0"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_manifest_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
