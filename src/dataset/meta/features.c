// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/features.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define IMAGES "observation.images."

void td_dataset_features_key(const td_dataset_camera *camera,
                             char ret_key[TD_DATASET_MAX_KEY])
{
    (void)snprintf(ret_key, TD_DATASET_MAX_KEY, IMAGES "%s", camera->name);
}

uint32_t td_dataset_features_camera(const td_dataset_schema *schema,
                                    const char *key)
{
    size_t prefix = strlen(IMAGES);
    if (strncmp(key, IMAGES, prefix) != 0) return schema->camera_count;
    for (uint32_t i = 0; i < schema->camera_count; i++)
        if (strcmp(schema->cameras[i].name, key + prefix) == 0) return i;
    return schema->camera_count;
}

static td_err add_vector(td_dataset_info *dataset, const char *key,
                         const char *const *names, uint32_t count,
                         td_errinfo *info)
{
    return td_dataset_info_add(dataset, key, TD_DATASET_DTYPE_F32, &count, 1,
                               names, info);
}

static td_err add_camera(td_dataset_info *dataset,
                         const td_dataset_schema *schema, uint32_t index,
                         td_errinfo *info)
{
    static const char *const names[] = {"height", "width", "channels"};
    char key[TD_DATASET_MAX_KEY];
    const td_dataset_camera *camera = &schema->cameras[index];
    const uint32_t shape[] = {camera->height, camera->width, 3};
    td_dataset_features_key(camera, key);
    TD_TRY(td_dataset_info_add(dataset, key, TD_DATASET_DTYPE_VIDEO, shape, 3,
                               names, info));
    return td_dataset_info_set_video(dataset, key,
                                     td_media_codec_name(schema->codec), info);
}

static td_err add_extras(td_dataset_info *dataset, td_errinfo *info)
{
    const uint32_t one = 1;
#define ADD(key, dtype, field)                                                 \
    TD_TRY(td_dataset_info_add(dataset, key, TD_DATASET_DTYPE_##dtype, &one,   \
                               1, NULL, info));
    TD_DATASET_EXTRAS(ADD)
#undef ADD
    return TD_OK;
}

td_err td_dataset_features_new(const td_dataset_schema *schema,
                               td_dataset_info **ret_info, td_errinfo *info)
{
    TD_AUTO(td_dataset_info) *dataset = NULL;
    TD_TRY(
        td_dataset_info_new(schema->fps, schema->robot_type, &dataset, info));
    TD_TRY(add_vector(dataset, "action", schema->action, schema->action_count,
                      info));
    TD_TRY(add_vector(dataset, "observation.state", schema->state,
                      schema->state_count, info));
    for (uint32_t i = 0; i < schema->camera_count; i++)
        TD_TRY(add_camera(dataset, schema, i, info));
    TD_TRY(add_extras(dataset, info));
    TD_TRY(td_dataset_info_add_defaults(dataset, info));
    *ret_info = TD_TAKE(dataset);
    return TD_OK;
}

// A picture's as height, width, channels, in whatever order they stand there.
static void write_shape(const td_dataset_feature *feature, char *to,
                        size_t size)
{
    size_t used = 0;
    uint32_t height = 0;
    uint32_t width = 0;
    to[0] = 0;
    if (td_dataset_feature_picture(feature, &height, &width) == TD_OK) {
        size_t channels = td_dataset_feature_size(feature) / height / width;
        (void)snprintf(to, size, "%ux%ux%zu", height, width, channels);
        return;
    }
    for (uint32_t i = 0; i < feature->dims && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%u", i ? "x" : "",
                                 feature->shape[i]);
}

static td_err differ(const char *key, const char *what, const char *there,
                     const char *here, td_errinfo *info)
{
    return td_fail(info, TD_ERR_MISMATCH,
                   "%s%s%s: the dataset has %s, this recorder %s", key,
                   *what ? ": " : "", what, there, here);
}

static td_err check_names(const td_dataset_feature *there,
                          const td_dataset_feature *here, td_errinfo *info)
{
    if (there->name_count == 0 || here->name_count == 0 ||
        td_dataset_feature_is_picture(here))
        return TD_OK;
    for (size_t i = 0; i < here->name_count; i++) {
        char what[32];
        const char *name = i < there->name_count ? there->names[i] : "none";
        if (strcmp(name, here->names[i]) == 0) continue;
        (void)snprintf(what, sizeof what, "names[%zu]", i);
        return differ(here->key, what, name, here->names[i], info);
    }
    return TD_OK;
}

// float64 keeps all that float32 says.
static bool can_keep(td_dataset_dtype there, td_dataset_dtype here)
{
    return there == here ||
           (there == TD_DATASET_DTYPE_F64 && here == TD_DATASET_DTYPE_F32);
}

static td_err check_feature(const td_dataset_feature *there,
                            const td_dataset_feature *here, td_errinfo *info)
{
    char one[64];
    char other[64];
    if (!here) return differ(there->key, "", "it", "does not", info);
    if (there->dtype == TD_DATASET_DTYPE_IMAGE &&
        here->dtype == TD_DATASET_DTYPE_VIDEO)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: the dataset has images, this recorder makes "
                       "videos; LeRobot converts it: lerobot-edit-dataset "
                       "--operation.type convert_image_to_video",
                       here->key);
    if (!can_keep(there->dtype, here->dtype))
        return differ(here->key, "dtype", td_dataset_dtype_name(there->dtype),
                      td_dataset_dtype_name(here->dtype), info);
    write_shape(there, one, sizeof one);
    write_shape(here, other, sizeof other);
    if (strcmp(one, other) != 0)
        return differ(here->key, "shape", one, other, info);
    if (there->codec && here->codec && strcmp(there->codec, here->codec) != 0)
        return differ(here->key, "codec", there->codec, here->codec, info);
    return check_names(there, here, info);
}

bool td_dataset_features_say_what_was_done(const td_dataset_info *dataset)
{
    return td_dataset_info_find(dataset, "tendon.missing") != NULL;
}

static td_err check_head(const td_dataset_info *there,
                         const td_dataset_info *here, td_errinfo *info)
{
    char one[32];
    char other[32];
    (void)snprintf(one, sizeof one, "%" PRIu32, there->fps);
    (void)snprintf(other, sizeof other, "%" PRIu32, here->fps);
    if (there->fps != here->fps) return differ("fps", "", one, other, info);
    if (td_dataset_features_say_what_was_done(there) && there->robot_type &&
        here->robot_type && strcmp(there->robot_type, here->robot_type) != 0)
        return differ("robot_type", "", there->robot_type, here->robot_type,
                      info);
    return TD_OK;
}

td_err td_dataset_features_check(const td_dataset_schema *schema,
                                 const td_dataset_info *dataset,
                                 td_errinfo *info)
{
    TD_AUTO(td_dataset_info) *own = NULL;
    TD_TRY(td_dataset_features_new(schema, &own, info));
    TD_TRY(check_head(dataset, own, info));
    for (size_t i = 0; i < dataset->feature_count; i++) {
        const td_dataset_feature *there = &dataset->features[i];
        TD_TRY(
            check_feature(there, td_dataset_info_find(own, there->key), info));
    }
    for (size_t i = 0; i < own->feature_count; i++) {
        const char *key = own->features[i].key;
        if (!td_dataset_info_find(dataset, key) &&
            strncmp(key, "tendon.", strlen("tendon.")) != 0)
            return differ(key, "", "it not", "does", info);
    }
    return TD_OK;
}
