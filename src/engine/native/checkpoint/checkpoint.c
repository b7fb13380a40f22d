// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/checkpoint.h"

#include "engine/native/checkpoint/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG "config.json"
#define TOKENIZER "tokenizer.json"

static bool is_enabled(const td_native_steps *steps, td_native_step_kind kind)
{
    const td_native_step *step = td_native_steps_find(steps, kind);
    return step && step->enabled;
}

// What one place leaves to the other: a robot is given absolute actions.
static td_err check_both(const td_native_checkpoint *checkpoint,
                         td_errinfo *info)
{
    if (is_enabled(&checkpoint->before, TD_NATIVE_STEP_RELATIVE) !=
        is_enabled(&checkpoint->after, TD_NATIVE_STEP_ABSOLUTE))
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: %s and %s of %s must both be on or off",
                       checkpoint->before.file,
                       td_native_step_name(TD_NATIVE_STEP_RELATIVE),
                       td_native_step_name(TD_NATIVE_STEP_ABSOLUTE),
                       checkpoint->after.file);
    bool has_text = td_native_policy_has_text(checkpoint->policy.type);
    bool tokenizes =
        td_native_steps_find(&checkpoint->before, TD_NATIVE_STEP_TOKENIZE);
    if (has_text && !tokenizes)
        return td_fail(info, TD_ERR_MISMATCH, "%s: has no %s, and %s wants one",
                       checkpoint->before.file,
                       td_native_step_name(TD_NATIVE_STEP_TOKENIZE),
                       td_native_policy_name(checkpoint->policy.type));
    return TD_OK;
}

td_err td_native_checkpoint_open(const char *folder,
                                 td_native_checkpoint **ret_checkpoint,
                                 td_errinfo *info)
{
    TD_AUTO(td_native_checkpoint) *opened = calloc(1, sizeof *opened);
    if (opened) opened->folder = strdup(folder);
    if (!opened || !opened->folder)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", folder);
    TD_TRY(td_native_policy_init(folder, &opened->policy, info));
    TD_TRY(td_native_steps_init(folder, &opened->policy, TD_NATIVE_BEFORE,
                                &opened->before, info));
    TD_TRY(td_native_steps_init(folder, &opened->policy, TD_NATIVE_AFTER,
                                &opened->after, info));
    TD_TRY(check_both(opened, info));
    TD_TRY(td_native_weights_open(folder, &opened->weights, info));
    *ret_checkpoint = TD_TAKE(opened);
    return TD_OK;
}

void td_native_checkpoint_close(td_native_checkpoint *checkpoint)
{
    if (checkpoint->weights) td_native_weights_close(checkpoint->weights);
    td_native_steps_done(&checkpoint->after);
    td_native_steps_done(&checkpoint->before);
    td_native_policy_done(&checkpoint->policy);
    free(checkpoint->folder);
    free(checkpoint);
}

td_err td_native_checkpoint_find(const char *folder, const char *name,
                                 char ret_folder[TD_NATIVE_MAX_PATH],
                                 td_errinfo *info)
{
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_path_join(folder, CONFIG, path, info));
    bool there = access(path, R_OK) == 0;
    if (!there && td_native_hub_is_name(name)) {
        if (td_native_hub_find(name, CONFIG, path, NULL) != TD_OK)
            return td_fail(info, TD_ERR_NOTFOUND,
                           "%s: is no checkpoint's folder, and not in the "
                           "hub's local cache: get it with `hf download %s`",
                           folder, name);
        *strrchr(path, '/') = '\0';
        memcpy(ret_folder, path, sizeof path);
        return TD_OK;
    }
    (void)snprintf(ret_folder, TD_NATIVE_MAX_PATH, "%s", folder);
    return TD_OK;
}

td_err td_native_checkpoint_tokenizer(const td_native_checkpoint *from,
                                      char ret_path[TD_NATIVE_MAX_PATH],
                                      td_errinfo *info)
{
    const td_native_step *step =
        td_native_steps_find(&from->before, TD_NATIVE_STEP_TOKENIZE);
    const char *name = step ? step->tokenizer : NULL;
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_path_join(from->folder, TOKENIZER, ret_path, info));
    if (access(ret_path, R_OK) == 0) return TD_OK;
    TD_TRY(
        td_native_path_join(from->folder, "tokenizer/" TOKENIZER, path, info));
    if (access(path, R_OK) == 0 ||
        (name && (name[0] == '/' || td_native_hub_is_name(name)) &&
         td_native_hub_find(name, TOKENIZER, path, NULL) == TD_OK))
        memcpy(ret_path, path, sizeof path);
    return TD_OK;
}

// The key that a robot has for one of the policy's.
static const char *before_renaming(const td_native_steps *steps,
                                   const char *key)
{
    const td_native_step *step =
        td_native_steps_find(steps, TD_NATIVE_STEP_RENAME);
    json_t *renames = step ? step->renames : NULL;
    for (void *at = json_object_iter(renames); at;
         at = json_object_iter_next(renames, at))
        if (strcmp(json_string_value(json_object_iter_value(at)), key) == 0)
            return json_object_iter_key(at);
    return key;
}

static const char *without(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : text;
}

const char *td_native_checkpoint_name(const td_native_checkpoint *from,
                                      const char *key)
{
    const char *robots = before_renaming(&from->before, key);
    return without(without(robots, "observation."), "images.");
}
