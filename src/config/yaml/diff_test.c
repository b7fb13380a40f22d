// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/diff.h"

#include "config/manifest/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                   \
    "cluster_uuid: c\n"                                                        \
    "experiment_tag: e\n"
#define ENTRY(id)                                                              \
    "- {model_id: m, model_version: v1, application_tag: a, server_id: " id    \
    ", endpoint: tcp/127.0.0.1:1, accept_unknown: true, engine: {kind: "       \
    "synthetic}"
#define ONE HEAD "models:\n" ENTRY("x")

static td_config_manifest *parsed(const char *text)
{
    td_config_manifest *manifest = NULL;
    td_errinfo info = {""};
    if (td_config_manifest_parse("m.yaml", text, strlen(text), &manifest,
                                 &info) != TD_OK)
        fail_msg("%s", info.text);
    return manifest;
}

// A line for each change, "+" if it can be taken on.
static void note(void *user, const td_config_change *change)
{
    static const char *const kinds[] = {[TD_CONFIG_CHANGED] = "",
                                        [TD_CONFIG_ADDED] = " added",
                                        [TD_CONFIG_REMOVED] = " removed"};
    FILE *out = user;
    fprintf(out, "%s%s%s", change->live ? "+" : "-", change->field,
            kinds[change->kind]);
    if (change->now[0]) fprintf(out, " %s>%s", change->was, change->now);
    fprintf(out, "\n");
}

static char *changes(const char *was, const char *now)
{
    TD_AUTO(td_config_manifest) *before = parsed(was);
    TD_AUTO(td_config_manifest) *after = parsed(now);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_config_manifest_diff(before, after, note, out);
    fclose(out);
    return text;
}

static const struct {
    const char *name, *was, *now, *changes;
} cases[] = {
    {"nothing", ONE "}", ONE "}", ""},
    {"a default that is written out", ONE "}", ONE ", fps: 30}", ""},
    {"the strategy", ONE "}",
     HEAD "scheduling: {strategy: round_robin}\nmodels:\n" ENTRY("x") "}",
     "+scheduling.strategy model_deadline>round_robin\n"},
    {"weights and a score", ONE "}",
     HEAD "scheduling: {weights: {age: 3.5}, score: urgency}\n"
          "models:\n" ENTRY("x") "}",
     "+scheduling.weights.age 15>3.5\n+scheduling.score \"\">urgency\n"},
    {"tiers and room", ONE "}",
     HEAD "scheduling: {tiers: 2, queue: {size: 9, retries: 1}}\n"
          "models:\n" ENTRY("x") "}",
     "-scheduling.tiers 4>2\n-scheduling.queue.size 1000>9\n"
     "+scheduling.queue.retries 0>1\n"},
    {"who is served", ONE "}", ONE ", clients: [{client_uuid: r1}]}",
     "+models[0].clients\n"},
    {"what a client may claim", ONE ", clients: [{client_uuid: r1}]}",
     ONE ", clients: [{client_uuid: r1, max_urgency: 0.5}]}",
     "+models[0].clients\n"},
    {"batches and inputs", ONE "}",
     ONE ", batch: {wait: none}, precompute: false, "
         "inputs: {alignment_ms: 5}}",
     "+models[0].batch.wait slack>none\n+models[0].precompute true>false\n"
     "+models[0].inputs.alignment_ms 20>5\n"},
    {"what only a start can take", ONE "}",
     ONE ", fps: 50, device: cuda:0, connect: [tcp/127.0.0.1:2]}",
     "-models[0].device cpu>cuda:0\n-models[0].fps 30>50\n"
     "-models[0].connect\n"},
    {"a channel's kind", ONE "}",
     HEAD "models:\n- {model_id: m, model_version: v1, application_tag: a, "
          "server_id: x, endpoint: tcp/127.0.0.1:1, accept_unknown: true, "
          "engine: {kind: synthetic, actions: [a]}}\n",
     "-models[0].engine.actions\n-models[0].engine.states\n"},
    {"an entry more", ONE "}", ONE "}\n" ENTRY("y") "}", "-models[1] added\n"},
    {"an entry less", ONE "}\n" ENTRY("y") ", fps: 9}",
     HEAD "models:\n" ENTRY("y") ", fps: 9}", "-models[0] removed\n"},
    {"entries in another order, and one of them changed",
     ONE "}\n" ENTRY("y") "}",
     HEAD "models:\n" ENTRY("y") "}\n" ENTRY("x") ", precompute: false}",
     "+models[1].precompute true>false\n"},
    {"another model under the same name", ONE "}",
     HEAD "models:\n- {model_id: n, model_version: v1, application_tag: a, "
          "server_id: x, endpoint: tcp/127.0.0.1:1, accept_unknown: true, "
          "engine: {kind: synthetic}}\n",
     "-models[0] added\n-models[0] removed\n"},
};

static void changes_are_named_and_whether_they_can_be_taken_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char *found = changes(cases[i].was, cases[i].now);
        if (strcmp(found, cases[i].changes) != 0)
            fail_msg("%s:\n got\n%s want\n%s", cases[i].name, found,
                     cases[i].changes);
        free(found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_named_and_whether_they_can_be_taken_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
