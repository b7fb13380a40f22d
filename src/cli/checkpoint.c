// SPDX-License-Identifier: Apache-2.0
// `tendon checkpoint`: shows what a LeRobot checkpoint wants and gives.
//
// It reads a checkpoint's configuration and the headers of its weights, without
// loading them, and prints what a person needs to serve it: cameras, states and
// actions, the steps before and after the network in words, the weights, and
// whether the native engine can run it. --json prints the same for programs.
//
// The text and the JSON are two writers over the same struct,
// td_native_checkpoint; each section has one function of either kind. `words`
// is a line of text that grows and is cut where it has no more room.
#include "engine/native/checkpoint/checkpoint.h"
#include "base/json/json.h"
#include "cli/cli.h"
#include "engine/native/checkpoint/path.h"
#include "engine/native/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: tendon checkpoint show DIR [--json]\n"
    "\n"
    "Says what a LeRobot checkpoint wants and gives: cameras, state, actions, "
    "what is\n"
    "done to them before and after the policy, its weights, and whether it "
    "runs here\n"
    "without Python. Fails on a folder that is no checkpoint, or that asks for "
    "what\n"
    "is not understood.\n"
    "\n"
    "  --json  one object\n"
    "\n"
    "examples:\n"
    "  tendon checkpoint show outputs/train/act/checkpoints/last/"
    "pretrained_model\n"
    "  tendon checkpoint show my_policy --json\n";

#define MAX_LINE 1024

// What a step does, as far as a word can say it; empty where it says itself.
typedef struct words {
    char text[MAX_LINE];
    size_t used;
} words;

static void add(words *to, const char *fmt, ...) TD_PRINTF(2, 3);

static void add(words *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (to->used > 0 && to->used + 2 < MAX_LINE) {
        memcpy(to->text + to->used, ", ", 2);
        to->used += 2;
    }
    int size = vsnprintf(to->text + to->used, MAX_LINE - to->used, fmt, args);
    va_end(args);
    to->used += size > 0 ? (size_t)size : 0;
    if (to->used >= MAX_LINE) to->used = MAX_LINE - 1;
}

static void add_norm(words *to, const char *what, const td_native_norm *norm)
{
    if (norm->mode != TD_NATIVE_IDENTITY)
        add(to, "%s %s", what, td_native_mode_name(norm->mode));
}

static void add_norms(words *to, const td_native_checkpoint *shown,
                      const td_native_step *step)
{
    const td_native_policy *policy = &shown->policy;
    if (step->kind == TD_NATIVE_STEP_UNNORMALIZE) {
        add_norm(to, "actions", &step->norms->action);
    } else {
        add_norm(to, "state", &step->norms->state);
        add_norm(to, "environment", &step->norms->env);
        for (uint32_t i = 0; i < policy->camera_count; i++)
            add_norm(to,
                     td_native_checkpoint_name(shown, policy->cameras[i].key),
                     &step->norms->cameras[i]);
    }
    if (to->used == 0) add(to, "nothing");
}

static void add_renames(words *to, const td_native_step *step)
{
    for (void *at = json_object_iter(step->renames); at;
         at = json_object_iter_next(step->renames, at))
        add(to, "%s is %s", json_object_iter_key(at),
            json_string_value(json_object_iter_value(at)));
}

static void add_relative(words *to, const td_native_policy *policy,
                         const td_native_step *step)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < policy->action_dim; i++)
        count += step->mask[i];
    if (step->enabled)
        add(to, "%u of %u actions", count, policy->action_dim);
    else
        add(to, "off");
}

static bool has_tokenizer(const td_native_checkpoint *shown)
{
    char path[TD_NATIVE_MAX_PATH];
    return td_native_checkpoint_tokenizer(shown, path, NULL) == TD_OK &&
           access(path, R_OK) == 0;
}

static void describe(const td_native_checkpoint *shown,
                     const td_native_step *step, words *ret_words)
{
    *ret_words = (words){.used = 0};
    switch (step->kind) {
    case TD_NATIVE_STEP_RENAME:
        add_renames(ret_words, step);
        break;
    case TD_NATIVE_STEP_NORMALIZE:
    case TD_NATIVE_STEP_UNNORMALIZE:
        add_norms(ret_words, shown, step);
        break;
    case TD_NATIVE_STEP_TOKENIZE:
        add(ret_words, "at most %u", step->most_tokens);
        if (step->tokenizer) add(ret_words, "%s", step->tokenizer);
        add(ret_words, "its tokenizer.json is %s",
            has_tokenizer(shown) ? "here" : "missing");
        break;
    case TD_NATIVE_STEP_RELATIVE:
        add_relative(ret_words, &shown->policy, step);
        break;
    case TD_NATIVE_STEP_ABSOLUTE:
        if (!step->enabled) add(ret_words, "off");
        break;
    default:
        break;
    }
}

static void print_cameras(const td_native_checkpoint *shown)
{
    const td_native_policy *policy = &shown->policy;
    for (uint32_t i = 0; i < policy->camera_count; i++) {
        const td_native_camera *camera = &policy->cameras[i];
        (void)printf("%-12s %s  %ux%u", i ? "" : "cameras",
                     td_native_checkpoint_name(shown, camera->key),
                     camera->height, camera->width);
        if (policy->fits)
            (void)printf(", brought to %ux%u with padding", policy->fit.height,
                         policy->fit.width);
        (void)printf("%s\n", camera->empty ? ", which no robot has" : "");
    }
}

static void print_channels(const td_native_checkpoint *shown)
{
    const td_native_policy *policy = &shown->policy;
    if (policy->state_dim > 0)
        (void)printf("%-12s %u values\n", "state", policy->state_dim);
    if (policy->env_dim > 0)
        (void)printf("%-12s %u values, %s\n", "environment", policy->env_dim,
                     td_native_checkpoint_name(shown, policy->env_key));
    if (td_native_policy_has_text(policy->type))
        (void)printf("%-12s text\n", "task");
    (void)printf("%-12s %u rows of %u", "actions", policy->chunk_rows,
                 policy->action_dim);
    for (uint32_t i = 0; policy->action_names && i < policy->action_dim; i++)
        (void)printf("%s %s", i ? "," : ":", policy->action_names[i]);
    (void)printf("%s\n", policy->action_names ? "" : ", without names");
}

static void print_steps(const td_native_checkpoint *shown, const char *side,
                        const td_native_steps *steps)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        words does;
        describe(shown, &steps->each[i], &does);
        (void)printf("%-12s %s%s%s\n", i ? "" : side,
                     td_native_step_name(steps->each[i].kind),
                     does.used ? ": " : "", does.text);
    }
}

static void print_weights(const td_native_weights *weights)
{
    td_native_weights_sum sum = td_native_weights_count(weights);
    (void)printf("%-12s %" PRIu64 " parameters in %" PRIu64
                 " tensors, %u file%s, %.1f MB",
                 "weights", sum.parameters, sum.tensors, sum.files,
                 sum.files == 1 ? "" : "s", (double)sum.bytes / 1e6);
    for (td_native_dtype i = 0; i < TD_NATIVE_DTYPE_COUNT; i++)
        if (sum.by_dtype[i] > 0) (void)printf(", %s", td_native_dtype_name(i));
    (void)printf("\n");
}

static void print_text(const td_native_checkpoint *shown, const char *why_not)
{
    (void)printf("%s: %s\n", shown->folder,
                 td_native_policy_name(shown->policy.type));
    print_cameras(shown);
    print_channels(shown);
    print_steps(shown, "before", &shown->before);
    print_steps(shown, "after", &shown->after);
    print_weights(shown->weights);
    if (why_not)
        (void)printf("%-12s no: %s; the Python worker serves it "
                     "(docs/lerobot.md)\n",
                     "native", why_not);
    else
        (void)printf("%-12s yes\n", "native");
}

static void write_cameras(td_json *json, const td_native_checkpoint *shown)
{
    td_json_array(json, "cameras");
    for (uint32_t i = 0; i < shown->policy.camera_count; i++) {
        const td_native_camera *camera = &shown->policy.cameras[i];
        td_json_object(json, NULL);
        td_json_text(json, "name",
                     td_native_checkpoint_name(shown, camera->key));
        td_json_text(json, "key", camera->key);
        td_json_whole(json, "height", camera->height);
        td_json_whole(json, "width", camera->width);
        td_json_bool(json, "empty", camera->empty);
        td_json_end_object(json);
    }
    td_json_end_array(json);
}

static void write_names(td_json *json, const td_native_policy *policy)
{
    if (!policy->action_names) {
        td_json_text(json, "action_names", NULL);
        return;
    }
    td_json_array(json, "action_names");
    for (uint32_t i = 0; i < policy->action_dim; i++)
        td_json_text(json, NULL, policy->action_names[i]);
    td_json_end_array(json);
}

static void write_policy(td_json *json, const td_native_checkpoint *shown)
{
    const td_native_policy *policy = &shown->policy;
    td_json_text(json, "folder", shown->folder);
    td_json_text(json, "type", td_native_policy_name(policy->type));
    write_cameras(json, shown);
    if (policy->fits) {
        td_json_object(json, "fits_to");
        td_json_whole(json, "height", policy->fit.height);
        td_json_whole(json, "width", policy->fit.width);
        td_json_end_object(json);
    }
    td_json_whole(json, "state_dim", policy->state_dim);
    td_json_whole(json, "env_dim", policy->env_dim);
    td_json_bool(json, "task", td_native_policy_has_text(policy->type));
    td_json_whole(json, "chunk_rows", policy->chunk_rows);
    td_json_whole(json, "action_dim", policy->action_dim);
    write_names(json, policy);
}

static void write_steps(td_json *json, const td_native_checkpoint *shown,
                        const char *side, const td_native_steps *steps)
{
    td_json_array(json, side);
    for (uint32_t i = 0; i < steps->count; i++) {
        words does;
        describe(shown, &steps->each[i], &does);
        td_json_object(json, NULL);
        td_json_text(json, "step", td_native_step_name(steps->each[i].kind));
        td_json_text(json, "does", does.text);
        td_json_end_object(json);
    }
    td_json_end_array(json);
}

static void write_weights(td_json *json, const td_native_weights *weights)
{
    td_native_weights_sum sum = td_native_weights_count(weights);
    td_json_object(json, "weights");
    td_json_whole(json, "files", sum.files);
    td_json_whole(json, "tensors", sum.tensors);
    td_json_whole(json, "parameters", sum.parameters);
    td_json_whole(json, "bytes", sum.bytes);
    td_json_object(json, "values");
    for (td_native_dtype i = 0; i < TD_NATIVE_DTYPE_COUNT; i++)
        if (sum.by_dtype[i] > 0)
            td_json_whole(json, td_native_dtype_name(i), sum.by_dtype[i]);
    td_json_end_object(json);
    td_json_end_object(json);
}

static void print_json(const td_native_checkpoint *shown, const char *why_not)
{
    td_json json;
    td_json_init(&json, stdout);
    td_json_object(&json, NULL);
    write_policy(&json, shown);
    write_steps(&json, shown, "before", &shown->before);
    write_steps(&json, shown, "after", &shown->after);
    write_weights(&json, shown->weights);
    td_json_bool(&json, "native", !why_not);
    td_json_text(&json, "why_not", why_not);
    td_json_end_object(&json);
    (void)printf("\n");
}

static int show(const char *folder, bool as_json)
{
    TD_AUTO(td_native_checkpoint) *shown = NULL;
    td_errinfo info = {""};
    td_err err = td_native_checkpoint_open(folder, &shown, &info);
    if (err != TD_OK) return td_cli_fail("checkpoint show", err, &info);
    bool native = td_native_model_check(shown, &info) == TD_OK;
    (as_json ? print_json : print_text)(shown, native ? NULL : info.text);
    return 0;
}

int td_cli_checkpoint(int argc, char **argv)
{
    static char typed[] = "checkpoint show";
    bool as_json = false;
    const char *folder = NULL;
    const td_cli_option options[] = {{"json", NULL, &as_json}, {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)printf("%s", help);
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "show") != 0) {
        (void)fprintf(stderr, "tendon checkpoint: what shall be done?\n\n%s",
                      help);
        return 2;
    }
    argv[1] = typed;
    if (!td_cli_parse(argc - 1, argv + 1, options, &folder)) return 2;
    if (!folder) {
        (void)fprintf(stderr, "tendon %s: which folder?\n\n%s", typed, help);
        return 2;
    }
    return show(folder, as_json);
}
