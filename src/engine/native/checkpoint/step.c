// SPDX-License-Identifier: Apache-2.0
// One step of LeRobot's pipelines, out of its JSON: a table of the kinds, and
// for each kind a function that reads what it holds.
//
// A step is known by its registry name, and may stand before the policy, after
// it, or both (TD_NATIVE_STEPS). Its options are read with the names that
// LeRobot writes; a value that would change numbers in a way that is not
// computed here is refused. Statistics of normalisers come from a safetensors
// file that the step names, which must lie in the same folder.
//
// td_native_step_read() leaves what it has read in `step` also when it fails,
// and td_native_step_done() frees it in any case.
#include "engine/native/checkpoint/step.h"

#include "engine/native/checkpoint/path.h"
#include "engine/native/checkpoint/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MEMBERS 8

static const struct {
    const char *name;
    td_native_step_place place;
} kinds[] = {
#define TD_NATIVE_STEP_ROW(id, name, place) {name, TD_NATIVE_##place},
    TD_NATIVE_STEPS(TD_NATIVE_STEP_ROW)
#undef TD_NATIVE_STEP_ROW
};

const char *td_native_step_name(td_native_step_kind kind)
{
    return kinds[kind].name;
}

// A step under way.
typedef struct reading {
    const char *folder;
    const td_native_policy *policy;
    td_json_at entry;  // steps[i]
    td_json_at config; // its member of this name
    td_native_step *step;
} reading;

typedef td_err (*reader)(const reading *from, td_errinfo *info);

static td_err read_nothing(const reading *from, td_errinfo *info)
{
    (void)from;
    (void)info;
    return TD_OK;
}

static td_err wants(const reading *from, const char *name, const char *value,
                    td_errinfo *info)
{
    const char *text = NULL;
    TD_TRY(td_json_read_text(&from->config, name, &text, info));
    if (strcmp(text, value) == 0) return TD_OK;
    return td_json_read_fail(&from->config, name, info, TD_ERR_UNSUPPORTED,
                             "must be %s, got %.64s", value, text);
}

// Whether a member before `end` has this text.
static bool has_text(json_t *object, void *end, const char *text)
{
    for (void *at = json_object_iter(object); at != end;
         at = json_object_iter_next(object, at))
        if (strcmp(json_string_value(json_object_iter_value(at)), text) == 0)
            return true;
    return false;
}

// Two keys for one would leave it to chance which of them counts.
static td_err read_rename(const reading *from, td_errinfo *info)
{
    static const char name[] = "rename_map";
    json_t *renames = NULL;
    TD_TRY(td_json_read_object(&from->config, name, &renames, info));
    for (void *at = json_object_iter(renames); at;
         at = json_object_iter_next(renames, at)) {
        const char *to = json_string_value(json_object_iter_value(at));
        if (!to)
            return td_json_read_fail(&from->config, name, info, TD_ERR_FORMAT,
                                     "must be texts");
        if (has_text(renames, at, to))
            return td_json_read_fail(&from->config, name, info, TD_ERR_FORMAT,
                                     "has two keys for %.64s", to);
    }
    from->step->renames = renames;
    return TD_OK;
}

// We compute in our own place; only a cast would change the numbers.
static td_err read_device(const reading *from, td_errinfo *info)
{
    const char *dtype = NULL;
    if (td_json_read_is_null(&from->config, "float_dtype")) return TD_OK;
    TD_TRY(td_json_read_text(&from->config, "float_dtype", &dtype, info));
    if (strcmp(dtype, "float32") == 0 || strcmp(dtype, "float") == 0)
        return TD_OK;
    return td_json_read_fail(&from->config, "float_dtype", info,
                             TD_ERR_UNSUPPORTED,
                             "must be null or float32, got %.32s", dtype);
}

static td_err open_state(const reading *from, td_native_safetensors **ret_state,
                         td_errinfo *info)
{
    const char *name = NULL;
    if (td_json_read_is_null(&from->entry, "state_file")) return TD_OK;
    TD_TRY(td_json_read_text(&from->entry, "state_file", &name, info));
    if (!td_native_path_is_plain(name))
        return td_json_read_fail(&from->entry, "state_file", info,
                                 TD_ERR_FORMAT,
                                 "%.64s is no file of this folder", name);
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_path_join(from->folder, name, path, info));
    return td_native_safetensors_open(path, ret_state, info);
}

static td_err read_norms(const reading *from, td_errinfo *info)
{
    TD_AUTO(td_native_safetensors) *state = NULL;
    TD_TRY(open_state(from, &state, info));
    return td_native_norms_new(&from->config, state, from->policy,
                               &from->step->norms, info);
}

static td_err read_tokenizer(const reading *from, td_errinfo *info)
{
    const td_json_at *config = &from->config;
    td_native_step *step = from->step;
    const char *padding = NULL;
    bool truncates = false;
    TD_TRY(wants(from, "task_key", "task", info));
    TD_TRY(wants(from, "padding_side", "right", info));
    TD_TRY(td_json_read_bool(config, "truncation", &truncates, info));
    if (!truncates)
        return td_json_read_fail(config, "truncation", info, TD_ERR_UNSUPPORTED,
                                 "must be true");
    TD_TRY(td_json_read_text(config, "padding", &padding, info));
    step->pads = strcmp(padding, "max_length") == 0;
    if (!step->pads && strcmp(padding, "longest") != 0)
        return td_json_read_fail(config, "padding", info, TD_ERR_UNSUPPORTED,
                                 "must be max_length or longest, got %.32s",
                                 padding);
    if (!td_json_read_is_null(config, "tokenizer_name"))
        TD_TRY(td_json_read_text(config, "tokenizer_name", &step->tokenizer,
                                 info));
    return td_json_read_whole(config, "max_length", 1, TD_NATIVE_MAX_TOKENS,
                              &step->most_tokens, info);
}

static td_err read_state_to_text(const reading *from, td_errinfo *info)
{
    if (from->policy->state_dim == 0)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: %s wants a state, the policy has none",
                       from->entry.file, td_native_step_name(from->step->kind));
    if (td_json_read_is_null(&from->config, "task_key")) return TD_OK;
    return wants(from, "task_key", "task", info);
}

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; strlen(text) >= length; text++)
        if (strncasecmp(text, part, length) == 0) return true;
    return false;
}

static bool is_excluded(json_t *excluded, const char *name)
{
    for (size_t i = 0; i < json_array_size(excluded); i++) {
        const char *part = json_string_value(json_array_get(excluded, i));
        if (part && *part && contains(name, part)) return true;
    }
    return false;
}

// Which actions are relative: those whose names hold none of the excluded
// words, and all where nobody names them.
static td_err read_relative(const reading *from, td_errinfo *info)
{
    td_native_step *step = from->step;
    json_t *excluded = NULL, *names = NULL;
    TD_TRY(td_json_read_bool(&from->config, "enabled", &step->enabled, info));
    TD_TRY(
        td_json_read_array(&from->config, "exclude_joints", &excluded, info));
    if (!td_json_read_is_null(&from->config, "action_names"))
        TD_TRY(td_json_read_array(&from->config, "action_names", &names, info));
    step->mask = calloc(from->policy->action_dim, sizeof *step->mask);
    if (!step->mask) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < from->policy->action_dim; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        step->mask[i] = !name || !is_excluded(excluded, name);
    }
    return TD_OK;
}

static td_err read_absolute(const reading *from, td_errinfo *info)
{
    TD_TRY(td_json_read_bool(&from->config, "enabled", &from->step->enabled,
                             info));
    if (from->step->enabled &&
        from->policy->state_dim < from->policy->action_dim)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: actions are relative to a state of %u values, and "
                       "are %u",
                       from->entry.file, from->policy->state_dim,
                       from->policy->action_dim);
    return TD_OK;
}

// How each is read, and all that its configuration may hold.
static const struct {
    reader read;
    const char *members[MAX_MEMBERS];
} readers[] = {
    [TD_NATIVE_STEP_RENAME] = {read_rename, {"rename_map"}},
    [TD_NATIVE_STEP_TO_BATCH] = {read_nothing, {NULL}},
    [TD_NATIVE_STEP_DEVICE] = {read_device, {"device", "float_dtype"}},
    [TD_NATIVE_STEP_NORMALIZE] = {read_norms,
                                  {"eps", "features", "norm_map",
                                   "normalize_observation_keys"}},
    [TD_NATIVE_STEP_NEW_LINE] = {read_nothing, {NULL}},
    [TD_NATIVE_STEP_PI0_NEW_LINE] = {read_nothing, {NULL}},
    [TD_NATIVE_STEP_TOKENIZE] = {read_tokenizer,
                                 {"max_length", "task_key", "padding_side",
                                  "padding", "truncation", "tokenizer_name"}},
    [TD_NATIVE_STEP_STATE_TO_TEXT] = {read_state_to_text,
                                      {"max_state_dim", "task_key"}},
    [TD_NATIVE_STEP_RELATIVE] = {read_relative,
                                 {"enabled", "exclude_joints", "action_names"}},
    [TD_NATIVE_STEP_UNNORMALIZE] = {read_norms,
                                    {"eps", "features", "norm_map",
                                     "normalize_observation_keys"}},
    [TD_NATIVE_STEP_ABSOLUTE] = {read_absolute, {"enabled"}},
};

td_err td_native_step_kind_of(const td_json_at *entry,
                              td_native_step_place wanted,
                              td_native_step_kind *ret_kind, td_errinfo *info)
{
    const char *name = NULL;
    TD_TRY(td_json_read_text(entry, "registry_name", &name, info));
    for (td_native_step_kind i = 0; i < TD_NATIVE_STEP_COUNT; i++)
        if (strcmp(kinds[i].name, name) == 0 && kinds[i].place & wanted) {
            *ret_kind = i;
            return TD_OK;
        }
    return td_json_read_fail(entry, "registry_name", info, TD_ERR_UNSUPPORTED,
                             "%.64s is a step that is not known here", name);
}

static bool is_member(td_native_step_kind kind, const char *name)
{
    for (size_t i = 0; i < MAX_MEMBERS && readers[kind].members[i]; i++)
        if (strcmp(readers[kind].members[i], name) == 0) return true;
    return false;
}

static td_err check_members(const reading *from, td_errinfo *info)
{
    json_t *config = from->config.object;
    for (void *at = json_object_iter(config); at;
         at = json_object_iter_next(config, at)) {
        const char *name = json_object_iter_key(at);
        if (!is_member(from->step->kind, name))
            return td_json_read_fail(&from->config, name, info,
                                     TD_ERR_UNSUPPORTED, "is not known of %s",
                                     kinds[from->step->kind].name);
    }
    return TD_OK;
}

td_err td_native_step_read(const char *folder, const td_native_policy *policy,
                           const td_json_at *entry, td_native_step *step,
                           td_errinfo *info)
{
    char where[64];
    (void)snprintf(where, sizeof where, "%sconfig.", entry->where);
    reading from = {folder, policy, *entry, {entry->file, where, NULL}, step};
    TD_TRY(td_json_read_object(entry, "config", &from.config.object, info));
    TD_TRY(check_members(&from, info));
    return readers[step->kind].read(&from, info);
}

void td_native_step_done(td_native_step *step)
{
    if (step->norms) td_native_norms_free(step->norms);
    free(step->mask);
}
