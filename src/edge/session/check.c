// SPDX-License-Identifier: Apache-2.0
#include "edge/session/check.h"

#include "wire/msgpack/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static td_err check_text(const char *field, const char *own,
                         td_wire_text theirs, td_errinfo *info)
{
    if (td_wire_text_is(theirs, own)) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "%s: this robot has \"%s\", the server has \"%.*s\"", field,
                   own, (int)theirs.size, theirs.data);
}

static td_err check_number(const char *field, uint64_t own, uint64_t theirs,
                           td_errinfo *info)
{
    if (own == theirs) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "%s: this robot has %llu, the server wants %llu", field,
                   (unsigned long long)own, (unsigned long long)theirs);
}

static td_err check_channels(const char *field, const td_wire_channel *own,
                             uint32_t own_count, const td_wire_channel *theirs,
                             uint32_t their_count, td_errinfo *info)
{
    TD_TRY(check_number(field, own_count, their_count, info));
    for (uint32_t i = 0; i < own_count; i++) {
        if (!td_wire_text_same(own[i].name, theirs[i].name))
            return td_fail(info, TD_ERR_MISMATCH,
                           "%s[%u]: this robot has \"%.*s\", the server wants "
                           "\"%.*s\"; the order counts",
                           field, i, (int)own[i].name.size, own[i].name.data,
                           (int)theirs[i].name.size, theirs[i].name.data);
        if (own[i].kind != theirs[i].kind)
            return td_fail(info, TD_ERR_MISMATCH,
                           "%s[%u] %.*s: this robot has kind %s, the server "
                           "wants %s",
                           field, i, (int)own[i].name.size, own[i].name.data,
                           td_wire_channel_kind_name(own[i].kind),
                           td_wire_channel_kind_name(theirs[i].kind));
    }
    return TD_OK;
}

// To less than a row of the smaller one: sides are whole numbers.
static bool has_same_shape(const td_wire_camera *own,
                           const td_wire_camera *theirs)
{
    int64_t off = (int64_t)own->height * theirs->width -
                  (int64_t)theirs->height * own->width;
    return llabs(off) < own->width;
}

static td_err check_size(const td_edge_profile *profile,
                         const td_wire_camera *own,
                         const td_wire_camera *theirs, td_errinfo *info)
{
    const char *why;
    if (own->height == theirs->height && own->width == theirs->width)
        return TD_OK;
    if (theirs->height > own->height || theirs->width > own->width)
        why = "; a picture is never made larger";
    else if (!profile->downscale)
        why = "; downscale is off";
    else if (theirs->height == 0 || theirs->width == 0 ||
             !has_same_shape(own, theirs))
        why = "; a picture of another shape would be distorted";
    else
        return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "expected_cameras.%.*s: this robot has %ux%u, the server "
                   "wants %ux%u%s",
                   (int)own->name.size, own->name.data, own->height, own->width,
                   theirs->height, theirs->width, why);
}

static td_err check_camera(const td_edge_profile *profile,
                           const td_wire_camera *theirs, td_errinfo *info)
{
    for (uint32_t i = 0; i < profile->camera_count; i++) {
        const td_wire_camera *own = &profile->cameras[i];
        if (td_wire_text_same(own->name, theirs->name))
            return check_size(profile, own, theirs, info);
    }
    return td_fail(info, TD_ERR_MISMATCH,
                   "expected_cameras.%.*s: this robot has no such camera, the "
                   "server wants %ux%u",
                   (int)theirs->name.size, theirs->name.data, theirs->height,
                   theirs->width);
}

// By its own name, or as LeRobot would call it.
static bool is_called(td_wire_text name, const char *before, td_wire_text own)
{
    size_t skip = strlen(before);
    if (name.size > skip && memcmp(name.data, before, skip) == 0)
        name = (td_wire_text){name.data + skip, name.size - skip};
    return td_wire_text_same(name, own);
}

// What an observation brings under that name: the state, and pictures of the
// cameras that the server expects, which are checked by themselves.
static bool sends(const td_edge_profile *profile, const td_wire_status *status,
                  td_wire_text name, td_wire_feature *ret_sent)
{
    if (is_called(name, "observation.", td_wire_text_of("state"))) {
        *ret_sent = (td_wire_feature){
            .dtype = TD_WIRE_F32, .rank = 1, .shape = {profile->state_count}};
        return true;
    }
    for (uint32_t i = 0; i < status->camera_count; i++) {
        const td_wire_camera *camera = &status->cameras[i];
        if (!is_called(name, "observation.images.", camera->name)) continue;
        *ret_sent = (td_wire_feature){
            .dtype = TD_WIRE_U8,
            .rank = 3,
            .shape = {camera->height, camera->width, 3},
        };
        return true;
    }
    return false;
}

// Channels of a picture may be said first, as models have them.
static bool is_same_feature(const td_wire_feature *sent,
                            const td_wire_feature *wanted)
{
    const uint32_t *shape = sent->shape;
    const uint32_t planes[] = {shape[2], shape[0], shape[1]};
    if (sent->dtype != wanted->dtype || sent->rank != wanted->rank)
        return false;
    return memcmp(shape, wanted->shape, sent->rank * sizeof *shape) == 0 ||
           (sent->rank == 3 &&
            memcmp(planes, wanted->shape, sizeof planes) == 0);
}

#define FEATURE_TEXT 128

static const char *write_feature(const td_wire_feature *feature,
                                 char text[FEATURE_TEXT])
{
    size_t size = 0;
    for (uint32_t i = 0; i < feature->rank; i++)
        size += (size_t)snprintf(text + size, FEATURE_TEXT - size, "%s%u",
                                 i ? "x" : "", feature->shape[i]);
    (void)snprintf(text + size, FEATURE_TEXT - size, "%s%s",
                   feature->rank ? " of " : "one ",
                   td_wire_dtype_name(feature->dtype));
    return text;
}

static td_err check_feature(const td_edge_profile *profile,
                            const td_wire_status *status,
                            const td_wire_feature *wanted, td_errinfo *info)
{
    char own[FEATURE_TEXT], theirs[FEATURE_TEXT];
    td_wire_feature sent;
    bool has = sends(profile, status, wanted->name, &sent);
    if (has && is_same_feature(&sent, wanted)) return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "observation_features.%.*s: this robot has %s, the server "
                   "wants %s",
                   (int)wanted->name.size, wanted->name.data,
                   has ? write_feature(&sent, own) : "none",
                   write_feature(wanted, theirs));
}

// A period in whole microseconds: 30 Hz is 33333 on both sides.
static td_err check_timing(const td_edge_profile *profile,
                           const td_wire_status *status, td_errinfo *info)
{
    TD_TRY(check_number("step_period_us", (uint64_t)profile->step_period_us,
                        (uint64_t)status->step_period_us, info));
    if (profile->actions_per_chunk <= status->max_actions_per_chunk)
        return TD_OK;
    return td_fail(info, TD_ERR_MISMATCH,
                   "max_actions_per_chunk: this robot plays %u a chunk, the "
                   "server gives %u",
                   profile->actions_per_chunk, status->max_actions_per_chunk);
}

td_err td_edge_check_server(const td_edge_profile *profile,
                            const td_wire_status *status, td_errinfo *info)
{
    TD_TRY(check_text("model_id", profile->model_id, status->model_id, info));
    TD_TRY(check_text("model_version", profile->model_version,
                      status->model_version, info));
    TD_TRY(check_number("action_dim", profile->action_count, status->action_dim,
                        info));
    TD_TRY(check_channels("action_names", profile->actions,
                          profile->action_count, status->actions,
                          status->action_count, info));
    TD_TRY(check_channels("state_names", profile->states, profile->state_count,
                          status->states, status->state_count, info));
    for (uint32_t i = 0; i < status->camera_count; i++)
        TD_TRY(check_camera(profile, &status->cameras[i], info));
    for (uint32_t i = 0; i < status->feature_count; i++)
        TD_TRY(check_feature(profile, status, &status->features[i], info));
    return check_timing(profile, status, info);
}
