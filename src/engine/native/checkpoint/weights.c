// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/weights.h"

#include "base/json/read.h"
#include "engine/native/checkpoint/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"

struct td_native_weights {
    char *folder;
    uint32_t count;
    struct {
        char *name;
        td_native_safetensors *file;
    } shards[TD_NATIVE_MAX_SHARDS];
};

static td_err add_shard(td_native_weights *weights, const char *name,
                        td_errinfo *info)
{
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_path_join(weights->folder, name, path, info));
    if (weights->count == TD_NATIVE_MAX_SHARDS)
        return td_fail(info, TD_ERR_LIMIT, "%s/%s: names more than %d files",
                       weights->folder, INDEX, TD_NATIVE_MAX_SHARDS);
    TD_AUTO(td_native_safetensors) *file = NULL;
    TD_TRY(td_native_safetensors_open(path, &file, info));
    char *copy = strdup(name);
    if (!copy) return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    weights->shards[weights->count].name = copy;
    weights->shards[weights->count].file = TD_TAKE(file);
    weights->count++;
    return TD_OK;
}

// The shard of this name, opened if it is not yet.
static td_err find_shard(td_native_weights *weights, const char *name,
                         const td_native_safetensors **ret_file,
                         td_errinfo *info)
{
    uint32_t i = 0;
    while (i < weights->count && strcmp(weights->shards[i].name, name) != 0)
        i++;
    if (i == weights->count) TD_TRY(add_shard(weights, name, info));
    *ret_file = weights->shards[i].file;
    return TD_OK;
}

static td_err open_shards(td_native_weights *weights, const td_json_at *at,
                          td_errinfo *info)
{
    const char *tensor = NULL;
    json_t *value = NULL;
    json_object_foreach(at->object, tensor, value)
    {
        const td_native_safetensors *file = NULL;
        const char *name = NULL;
        TD_TRY(td_json_read_text(at, tensor, &name, info));
        if (!td_native_path_is_plain(name))
            return td_json_read_fail(at, tensor, info, TD_ERR_FORMAT,
                                     "%.64s is no file of this folder", name);
        TD_TRY(find_shard(weights, name, &file, info));
        if (!td_native_safetensors_find(file, tensor))
            return td_json_read_fail(at, tensor, info, TD_ERR_FORMAT,
                                     "is not in %s", name);
    }
    return TD_OK;
}

// With each name found where the index has it, as many tensors as names mean
// that there are no others.
static td_err check_others(const td_native_weights *weights,
                           const td_json_at *at, td_errinfo *info)
{
    uint64_t tensors = td_native_weights_count(weights).tensors;
    size_t named = json_object_size(at->object);
    if (tensors == named) return TD_OK;
    return td_fail(info, TD_ERR_FORMAT,
                   "%s: names %zu tensors, its files have %llu", at->file,
                   named, (unsigned long long)tensors);
}

static td_err open_index(td_native_weights *weights, const char *path,
                         td_errinfo *info)
{
    TD_AUTO(json_t) *index = NULL;
    TD_TRY(td_json_read_file(path, TD_NATIVE_MAX_JSON_BYTES, &index, info));
    const td_json_at top = {path, "", index};
    td_json_at map = {path, "weight_map.", NULL};
    TD_TRY(td_json_read_object(&top, "weight_map", &map.object, info));
    TD_TRY(open_shards(weights, &map, info));
    return check_others(weights, &map, info);
}

static td_err open_all(td_native_weights *weights, td_errinfo *info)
{
    char path[TD_NATIVE_MAX_PATH];
    TD_TRY(td_native_path_join(weights->folder, SINGLE, path, info));
    if (access(path, F_OK) == 0) return add_shard(weights, SINGLE, info);
    TD_TRY(td_native_path_join(weights->folder, INDEX, path, info));
    if (access(path, F_OK) == 0) return open_index(weights, path, info);
    return td_fail(info, TD_ERR_NOTFOUND, "%s: has neither %s nor %s",
                   weights->folder, SINGLE, INDEX);
}

td_err td_native_weights_open(const char *folder,
                              td_native_weights **ret_weights, td_errinfo *info)
{
    TD_AUTO(td_native_weights) *weights = calloc(1, sizeof *weights);
    if (weights) weights->folder = strdup(folder);
    if (!weights || !weights->folder)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", folder);
    TD_TRY(open_all(weights, info));
    *ret_weights = TD_TAKE(weights);
    return TD_OK;
}

void td_native_weights_close(td_native_weights *weights)
{
    for (uint32_t i = 0; i < weights->count; i++) {
        td_native_safetensors_close(weights->shards[i].file);
        free(weights->shards[i].name);
    }
    free(weights->folder);
    free(weights);
}

const td_native_tensor *td_native_weights_find(const td_native_weights *weights,
                                               const char *name)
{
    const td_native_tensor *found = NULL;
    for (uint32_t i = 0; i < weights->count && !found; i++)
        found = td_native_safetensors_find(weights->shards[i].file, name);
    return found;
}

td_err td_native_weights_get(const td_native_weights *weights, const char *name,
                             uint32_t rank, const uint64_t *shape,
                             const td_native_tensor **ret_tensor,
                             td_errinfo *info)
{
    const td_native_tensor *tensor = td_native_weights_find(weights, name);
    if (!tensor)
        return td_fail(info, TD_ERR_NOTFOUND, "%s: the weights have no %s",
                       weights->folder, name);
    if (!td_native_dtype_is_float(tensor->dtype))
        return td_fail(info, TD_ERR_UNSUPPORTED, "%s: %s is of %s",
                       weights->folder, name,
                       td_native_dtype_name(tensor->dtype));
    if (!td_native_tensor_has_shape(tensor, rank, shape)) {
        char has[TD_NATIVE_SHAPE_BYTES], wanted[TD_NATIVE_SHAPE_BYTES];
        td_native_tensor_shape_text(tensor->rank, tensor->shape, has);
        td_native_tensor_shape_text(rank, shape, wanted);
        return td_fail(info, TD_ERR_MISMATCH, "%s: %s is %s, wanted is %s",
                       weights->folder, name, has, wanted);
    }
    *ret_tensor = tensor;
    return TD_OK;
}

td_native_weights_sum td_native_weights_count(const td_native_weights *weights)
{
    td_native_weights_sum sum = {.files = weights->count};
    for (uint32_t i = 0; i < weights->count; i++) {
        size_t count = 0;
        const td_native_tensor *all =
            td_native_safetensors_all(weights->shards[i].file, &count);
        sum.tensors += count;
        for (size_t k = 0; k < count; k++) {
            sum.bytes += all[k].bytes;
            sum.by_dtype[all[k].dtype] += all[k].count;
            if (td_native_dtype_is_float(all[k].dtype))
                sum.parameters += all[k].count;
        }
    }
    return sum;
}

static td_err check_shard(const char *folder, const char *name,
                          const td_native_safetensors *file, td_errinfo *info)
{
    size_t count = 0;
    const td_native_tensor *all = td_native_safetensors_all(file, &count);
    td_errinfo why = {""};
    for (size_t k = 0; k < count; k++)
        if (td_native_tensor_check_finite(&all[k], &why) != TD_OK)
            return td_fail(info, TD_ERR_FORMAT, "%s/%s: %s", folder, name,
                           why.text);
    return TD_OK;
}

td_err td_native_weights_check_finite(const td_native_weights *weights,
                                      td_errinfo *info)
{
    for (uint32_t i = 0; i < weights->count; i++)
        TD_TRY(check_shard(weights->folder, weights->shards[i].name,
                           weights->shards[i].file, info));
    return TD_OK;
}
