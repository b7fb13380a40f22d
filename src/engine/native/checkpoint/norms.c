// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/norms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE "observation.state"
#define ACTION "action"
#define COLOURS 3
#define MAX_NAME 256

static const struct {
    const char *name, *low, *high;
} modes[] = {
#define TD_NATIVE_MODE_ROW(name, low, high) {#name, low, high},
    TD_NATIVE_MODES(TD_NATIVE_MODE_ROW)
#undef TD_NATIVE_MODE_ROW
};

const char *td_native_mode_name(td_native_mode mode)
{
    return modes[mode].name;
}

// A step under way.
typedef struct reading {
    td_json_at config;
    td_json_at features, norm_map;
    json_t *only; // the keys that are normalised, or NULL: all
    float eps;
    const td_native_safetensors *stats;
} reading;

// What is done to features of this type; nothing to those that it leaves out.
static td_err mode_of(const reading *from, const char *type,
                      td_native_mode *ret_mode, td_errinfo *info)
{
    const char *name = modes[TD_NATIVE_IDENTITY].name;
    if (json_object_get(from->norm_map.object, type))
        TD_TRY(td_json_read_text(&from->norm_map, type, &name, info));
    for (td_native_mode i = 0; i < TD_NATIVE_MODE_COUNT; i++)
        if (strcmp(modes[i].name, name) == 0) {
            *ret_mode = i;
            return TD_OK;
        }
    return td_json_read_fail(&from->norm_map, type, info, TD_ERR_UNSUPPORTED,
                             "%.32s is not known", name);
}

// Whether there is any number of this feature's.
static bool has_stats(const reading *from, const char *key)
{
    size_t count = 0, length = strlen(key);
    if (!from->stats) return false;
    const td_native_tensor *all =
        td_native_safetensors_all(from->stats, &count);
    for (size_t i = 0; i < count; i++) {
        const char *dot = strrchr(all[i].name, '.');
        if (dot && (size_t)(dot - all[i].name) == length &&
            strncmp(all[i].name, key, length) == 0)
            return true;
    }
    return false;
}

// One statistic, whose single value may stand for all.
static td_err read_stat(const reading *from, const char *key, const char *stat,
                        uint32_t count, float *ret_values, td_errinfo *info)
{
    char name[MAX_NAME];
    (void)snprintf(name, sizeof name, "%s.%s", key, stat);
    const td_native_tensor *tensor =
        td_native_safetensors_find(from->stats, name);
    if (!tensor)
        return td_json_read_fail(&from->config, key, info, TD_ERR_NOTFOUND,
                                 "its statistics have no %s", stat);
    if (tensor->count != count && tensor->count != 1)
        return td_json_read_fail(
            &from->config, key, info, TD_ERR_MISMATCH,
            "its statistics have %llu values of %s, the policy %u",
            (unsigned long long)tensor->count, stat, count);
    td_errinfo why = {""};
    if (td_native_tensor_check_finite(tensor, &why) != TD_OK)
        return td_json_read_fail(&from->config, key, info, TD_ERR_FORMAT, "%s",
                                 why.text);
    for (uint32_t i = 0; i < count; i++)
        td_native_tensor_read(tensor, tensor->count == 1 ? 0 : i, 1,
                              &ret_values[i]);
    return TD_OK;
}

static float span_of(td_native_mode mode, float low, float high, float eps)
{
    if (mode == TD_NATIVE_MEAN_STD) return high + eps;
    return high - low == 0 ? eps : high - low;
}

static td_err read_norm(const reading *from, const char *key, const char *type,
                        uint32_t count, td_native_norm *ret_norm,
                        td_errinfo *info)
{
    td_native_mode mode = TD_NATIVE_IDENTITY;
    TD_TRY(mode_of(from, type, &mode, info));
    if (mode == TD_NATIVE_IDENTITY || !has_stats(from, key)) return TD_OK;
    float *values = calloc(3 * (size_t)count, sizeof *values);
    if (!values) return TD_ERR_NOMEM;
    *ret_norm = (td_native_norm){mode, count, values, values + count,
                                 values + 2 * (size_t)count};
    TD_TRY(read_stat(from, key, modes[mode].low, count, ret_norm->low, info));
    TD_TRY(read_stat(from, key, modes[mode].high, count, ret_norm->high, info));
    for (uint32_t i = 0; i < count; i++)
        ret_norm->span[i] =
            span_of(mode, ret_norm->low[i], ret_norm->high[i], from->eps);
    return TD_OK;
}

static bool is_left_out(const reading *from, const char *key)
{
    if (!json_object_get(from->features.object, key)) return true;
    if (!from->only) return false;
    for (size_t i = 0; i < json_array_size(from->only); i++) {
        const char *name = json_string_value(json_array_get(from->only, i));
        if (name && strcmp(name, key) == 0) return false;
    }
    return true;
}

// An input by its own type in the step, as long as the step speaks of it.
static td_err read_input(const reading *from, const char *key, uint32_t count,
                         td_native_norm *ret_norm, td_errinfo *info)
{
    if (is_left_out(from, key)) return TD_OK;
    td_json_at feature = {from->features.file, "features.", NULL};
    TD_TRY(td_json_read_object(&from->features, key, &feature.object, info));
    const char *type = NULL;
    TD_TRY(td_json_read_text(&feature, "type", &type, info));
    return read_norm(from, key, type, count, ret_norm, info);
}

static td_err read_norms(const reading *from, const td_native_policy *policy,
                         td_native_norms *norms, td_errinfo *info)
{
    if (policy->state_dim > 0)
        TD_TRY(read_input(from, STATE, policy->state_dim, &norms->state, info));
    if (policy->env_dim > 0)
        TD_TRY(read_input(from, policy->env_key, policy->env_dim, &norms->env,
                          info));
    for (uint32_t i = 0; i < policy->camera_count; i++)
        TD_TRY(read_input(from, policy->cameras[i].key, COLOURS,
                          &norms->cameras[i], info));
    return read_norm(from, ACTION, "ACTION", policy->action_dim, &norms->action,
                     info);
}

static td_err read_config(const td_json_at *config, reading *ret_from,
                          td_errinfo *info)
{
    static const char only[] = "normalize_observation_keys";
    double eps = 0;
    json_t *features = NULL, *norm_map = NULL, *keys = NULL;
    TD_TRY(td_json_read_number(config, "eps", &eps, info));
    if (!((float)eps > 0))
        return td_json_read_fail(config, "eps", info, TD_ERR_LIMIT,
                                 "must be above 0");
    TD_TRY(td_json_read_object(config, "features", &features, info));
    TD_TRY(td_json_read_object(config, "norm_map", &norm_map, info));
    if (!td_json_read_is_null(config, only))
        TD_TRY(td_json_read_array(config, only, &keys, info));
    *ret_from = (reading){.config = *config,
                          .features = {config->file, config->where, features},
                          .norm_map = {config->file, config->where, norm_map},
                          .only = keys,
                          .eps = (float)eps};
    return TD_OK;
}

td_err td_native_norms_new(const td_json_at *config,
                           const td_native_safetensors *stats,
                           const td_native_policy *policy,
                           td_native_norms **ret_norms, td_errinfo *info)
{
    reading from = {0};
    TD_TRY(read_config(config, &from, info));
    from.stats = stats;
    TD_AUTO(td_native_norms) *norms = calloc(1, sizeof *norms);
    if (!norms) return TD_ERR_NOMEM;
    TD_TRY(read_norms(&from, policy, norms, info));
    *ret_norms = TD_TAKE(norms);
    return TD_OK;
}

void td_native_norms_free(td_native_norms *norms)
{
    free(norms->state.low);
    free(norms->env.low);
    free(norms->action.low);
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        free(norms->cameras[i].low);
    free(norms);
}

static float applied(const td_native_norm *norm, uint32_t i, float value)
{
    if (norm->mode == TD_NATIVE_MEAN_STD)
        return (value - norm->low[i]) / norm->span[i];
    return 2.0f * (value - norm->low[i]) / norm->span[i] - 1.0f;
}

static float undone(const td_native_norm *norm, uint32_t i, float value)
{
    if (norm->mode == TD_NATIVE_MEAN_STD)
        return value * norm->high[i] + norm->low[i];
    return (value + 1.0f) * norm->span[i] / 2.0f + norm->low[i];
}

void td_native_norm_apply(const td_native_norm *norm, uint32_t rows,
                          float *values)
{
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < norm->count; i++, values++)
            *values = applied(norm, i, *values);
}

void td_native_norm_undo(const td_native_norm *norm, uint32_t rows,
                         float *values)
{
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t i = 0; i < norm->count; i++, values++)
            *values = undone(norm, i, *values);
}
