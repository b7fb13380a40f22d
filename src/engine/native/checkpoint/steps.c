// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/steps.h"

#include "engine/native/checkpoint/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE "policy_preprocessor.json"
#define AFTER "policy_postprocessor.json"

const td_native_step *td_native_steps_find(const td_native_steps *steps,
                                           td_native_step_kind kind)
{
    for (uint32_t i = 0; i < steps->count; i++)
        if (steps->each[i].kind == kind) return &steps->each[i];
    return NULL;
}

// Renaming comes before all that goes by names, and each thing is done once.
static td_err check_order(const td_native_steps *steps, const td_json_at *entry,
                          td_native_step_kind kind, td_errinfo *info)
{
    static const td_native_step_kind by_name[] = {TD_NATIVE_STEP_NORMALIZE,
                                                  TD_NATIVE_STEP_RELATIVE,
                                                  TD_NATIVE_STEP_STATE_TO_TEXT};
    const char *name = td_native_step_name(kind);
    if (kind != TD_NATIVE_STEP_DEVICE && td_native_steps_find(steps, kind))
        return td_json_read_fail(entry, "registry_name", info,
                                 TD_ERR_UNSUPPORTED, "a second %s", name);
    for (size_t i = 0;
         kind == TD_NATIVE_STEP_RENAME && i < TD_COUNT_OF(by_name); i++)
        if (td_native_steps_find(steps, by_name[i]))
            return td_json_read_fail(entry, "registry_name", info,
                                     TD_ERR_UNSUPPORTED, "%s after %s", name,
                                     td_native_step_name(by_name[i]));
    return TD_OK;
}

static td_err read_step(const char *folder, const td_native_policy *policy,
                        td_native_step_place place, const td_json_at *entry,
                        td_native_steps *steps, td_errinfo *info)
{
    td_native_step_kind kind = TD_NATIVE_STEP_COUNT;
    TD_TRY(td_native_step_kind_of(entry, place, &kind, info));
    TD_TRY(check_order(steps, entry, kind, info));
    td_native_step *step = &steps->each[steps->count++];
    *step = (td_native_step){.kind = kind, .enabled = true};
    return td_native_step_read(folder, policy, entry, step, info);
}

static td_err read_steps(const char *folder, const td_native_policy *policy,
                         td_native_step_place place, td_native_steps *steps,
                         td_errinfo *info)
{
    const td_json_at top = {steps->file, "", steps->config};
    json_t *list = NULL;
    TD_TRY(td_json_read_array(&top, "steps", &list, info));
    if (json_array_size(list) > TD_NATIVE_MAX_STEPS)
        return td_json_read_fail(&top, "steps", info, TD_ERR_LIMIT,
                                 "are %zu, at most %d", json_array_size(list),
                                 TD_NATIVE_MAX_STEPS);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char where[32];
        (void)snprintf(where, sizeof where, "steps[%zu].", i);
        const td_json_at entry = {steps->file, where, json_array_get(list, i)};
        if (!json_is_object(entry.object))
            return td_json_read_fail(&top, "steps", info, TD_ERR_FORMAT,
                                     "must be objects");
        TD_TRY(read_step(folder, policy, place, &entry, steps, info));
    }
    return TD_OK;
}

td_err td_native_steps_init_from(json_t *config, const char *file,
                                 const char *folder,
                                 const td_native_policy *policy,
                                 td_native_step_place place,
                                 td_native_steps *ret_steps, td_errinfo *info)
{
    td_native_steps steps = {.config = config, .file = strdup(file)};
    td_err err = steps.file ? read_steps(folder, policy, place, &steps, info)
                            : TD_ERR_NOMEM;
    if (err != TD_OK) {
        td_native_steps_done(&steps);
        return err;
    }
    *ret_steps = steps;
    return TD_OK;
}

td_err td_native_steps_init(const char *folder, const td_native_policy *policy,
                            td_native_step_place place,
                            td_native_steps *ret_steps, td_errinfo *info)
{
    char path[TD_NATIVE_MAX_PATH];
    json_t *config = NULL;
    TD_TRY(td_native_path_join(
        folder, place == TD_NATIVE_BEFORE ? BEFORE : AFTER, path, info));
    TD_TRY(td_json_read_file(path, TD_NATIVE_MAX_JSON_BYTES, &config, info));
    return td_native_steps_init_from(config, path, folder, policy, place,
                                     ret_steps, info);
}

void td_native_steps_done(td_native_steps *steps)
{
    for (uint32_t i = 0; i < steps->count; i++)
        td_native_step_done(&steps->each[i]);
    json_decref(steps->config);
    free(steps->file);
}
