// SPDX-License-Identifier: Apache-2.0
// What a worker says of its model, against what the manifest says.
//
// A hello lies in memory that the other process may write at any time. It is
// copied first, and the copy is checked: magic, version, counts, then each name
// and kind, with words that name the field. Texts that it wrote are made
// printable before anybody sees them.
//
// Agreeing goes field by field: what only one of the two says holds; what both
// say must be alike, and the message names both; what neither says has a
// default or is refused, as channels without names are.
#include "engine/worker/ring/spec.h"

#include "engine/results.h"
#include "wire/msgpack/text.h"

#include <stdio.h>
#include <string.h>

#define MAX_SIDE 8192
#define MAX_ROWS 4096
#define DEFAULT_ROWS 50
#define DEFAULT_VALUES_BYTES (1u << 20)

void td_engine_worker_spec_text(const char *field, size_t size,
                                char ret_text[TD_ENGINE_WORKER_TEXT_BYTES])
{
    size_t length = strnlen(field, size);
    memcpy(ret_text, field, length);
    ret_text[length] = '\0';
    td_wire_text text = {ret_text, (uint32_t)length};
    bool whole = td_wire_text_check(&(td_wire_at){0}, text) == TD_OK;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)ret_text[i];
        if (byte < ' ' || byte == 0x7f) ret_text[i] = ' ';
        if (byte >= 0x80 && !whole) ret_text[i] = '?';
    }
}

static td_wire_text name_of(const char field[64])
{
    return (td_wire_text){field, (uint32_t)strnlen(field, 64)};
}

static td_err check_name(const char *what, uint32_t index, const char field[64],
                         td_errinfo *info)
{
    if (td_wire_text_check_name(&(td_wire_at){0}, name_of(field)) == TD_OK)
        return TD_OK;
    return td_fail(info, TD_ERR_FORMAT,
                   "the worker's %s %u has a name that cannot be printed", what,
                   index);
}

static td_err check_cameras(const td_worker_spec *spec, td_errinfo *info)
{
    for (uint32_t i = 0; i < spec->camera_count; i++) {
        const td_worker_camera *camera = &spec->cameras[i];
        TD_TRY(check_name("camera", i, camera->name, info));
        if (camera->height < 1 || camera->height > MAX_SIDE ||
            camera->width < 1 || camera->width > MAX_SIDE)
            return td_fail(info, TD_ERR_FORMAT,
                           "the worker's camera %u has %ux%u pixels", i,
                           camera->height, camera->width);
    }
    return TD_OK;
}

static td_err check_channels(const char *what,
                             const td_worker_channel *channels, uint32_t count,
                             td_errinfo *info)
{
    for (uint32_t i = 0; i < count; i++) {
        TD_TRY(check_name(what, i, channels[i].name, info));
        if (channels[i].kind > TD_WIRE_HOLD)
            return td_fail(info, TD_ERR_FORMAT,
                           "the worker's %s %u is of kind %u", what, i,
                           channels[i].kind);
    }
    return TD_OK;
}

static td_err check_spec(const td_worker_spec *spec, td_errinfo *info)
{
    const struct {
        const char *name;
        uint32_t got, most;
    } counts[] = {
        {"camera_count", spec->camera_count, TD_WIRE_MAX_IMAGES},
        {"state_count", spec->state_count, TD_WIRE_MAX_CHANNELS},
        {"action_count", spec->action_count, TD_WIRE_MAX_CHANNELS},
        {"chunk_rows", spec->chunk_rows, MAX_ROWS},
        {"max_batch", spec->max_batch, TD_WORKER_MAX_BATCH},
        {"rtc", spec->rtc, 1},
        {"values_bytes", spec->values_bytes, TD_ENGINE_RESULTS_MOST_BYTES},
        {"prefix", spec->prefix, 1},
        {"expects", spec->expects, 1},
    };
    for (size_t i = 0; i < TD_COUNT_OF(counts); i++)
        if (counts[i].got > counts[i].most)
            return td_fail(info, TD_ERR_FORMAT,
                           "the worker's %s is %u, at most %u", counts[i].name,
                           counts[i].got, counts[i].most);
    if (!(spec->tolerance >= 0 && spec->tolerance < 1e30f))
        return td_fail(info, TD_ERR_FORMAT,
                       "the worker's tolerance is no number from 0 on");
    TD_TRY(check_cameras(spec, info));
    TD_TRY(check_channels("state", spec->states, spec->state_count, info));
    return check_channels("action", spec->actions, spec->action_count, info);
}

td_err td_engine_worker_spec_read(const td_worker_hello *shared,
                                  td_worker_hello *ret_hello, td_errinfo *info)
{
    td_worker_hello hello;
    memcpy(&hello, shared, sizeof hello);
    if (hello.magic != TD_WORKER_MAGIC)
        return td_fail(info, TD_ERR_FORMAT, "the worker's hello is malformed");
    if (hello.version != TD_WORKER_VERSION)
        return td_fail(info, TD_ERR_VERSION,
                       "the worker speaks version %u, this server %u",
                       hello.version, TD_WORKER_VERSION);
    if (hello.phase > TD_WORKER_FAILED)
        return td_fail(info, TD_ERR_FORMAT, "the worker is in phase %u",
                       hello.phase);
    if (hello.environment_count > TD_WIRE_MAX_CHANNELS)
        return td_fail(info, TD_ERR_FORMAT,
                       "the worker's environment_count is %u, at most %d",
                       hello.environment_count, TD_WIRE_MAX_CHANNELS);
    TD_TRY(check_spec(&hello.spec, info));
    char error[TD_ENGINE_WORKER_TEXT_BYTES];
    td_engine_worker_spec_text(hello.error, sizeof hello.error, error);
    memcpy(hello.error, error, sizeof hello.error);
    *ret_hello = hello;
    return TD_OK;
}

// `preset` is what holds where neither says anything; 0: one must.
static td_err agree_number(const char *name, uint32_t manifest, uint32_t worker,
                           uint32_t preset, uint32_t *ret_number,
                           td_errinfo *info)
{
    if (manifest && worker && manifest != worker)
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s: the manifest says %u, the worker %u", name,
                       manifest, worker);
    if (!manifest && !worker && !preset)
        return td_fail(info, TD_ERR_INVALID,
                       "%s: neither the manifest nor the worker says it", name);
    uint32_t said = manifest ? manifest : worker;
    *ret_number = said ? said : preset;
    return TD_OK;
}

static void say_channel(const td_worker_channel *channel, char ret_text[96])
{
    (void)snprintf(
        ret_text, 96, "%.64s (%s)", channel->name,
        td_wire_channel_kind_name((td_wire_channel_kind)channel->kind));
}

static bool same_channel(const td_worker_channel *a, const td_worker_channel *b)
{
    return a->kind == b->kind &&
           td_wire_text_same(name_of(a->name), name_of(b->name));
}

// A count of 0 says nothing.
static td_err
agree_channels(const char *what, const td_worker_channel *manifest,
               uint32_t manifest_count, const td_worker_channel *worker,
               uint32_t worker_count, td_worker_channel *ret_channels,
               uint32_t *ret_count, td_errinfo *info)
{
    TD_TRY(
        agree_number(what, manifest_count, worker_count, 0, ret_count, info));
    char ours[96];
    char theirs[96];
    for (uint32_t i = 0; manifest_count && i < worker_count; i++) {
        if (same_channel(&manifest[i], &worker[i])) continue;
        say_channel(&manifest[i], ours);
        say_channel(&worker[i], theirs);
        return td_fail(info, TD_ERR_MISMATCH,
                       "%s[%u]: the manifest says %s, the worker %s", what, i,
                       ours, theirs);
    }
    memcpy(ret_channels, manifest_count ? manifest : worker,
           *ret_count * sizeof *ret_channels);
    return TD_OK;
}

static void say_camera(const td_worker_camera *camera, char ret_text[96])
{
    (void)snprintf(ret_text, 96, "%.64s %ux%u", camera->name, camera->height,
                   camera->width);
}

static bool same_camera(const td_worker_camera *a, const td_worker_camera *b)
{
    return a->height == b->height && a->width == b->width &&
           td_wire_text_same(name_of(a->name), name_of(b->name));
}

// A model may well have no camera: then neither says any.
static td_err agree_cameras(const td_worker_spec *manifest,
                            const td_worker_spec *worker,
                            td_worker_spec *ret_spec, td_errinfo *info)
{
    if (manifest->camera_count || worker->camera_count)
        TD_TRY(agree_number("cameras", manifest->camera_count,
                            worker->camera_count, 0, &ret_spec->camera_count,
                            info));
    char ours[96];
    char theirs[96];
    bool both = manifest->camera_count > 0;
    for (uint32_t i = 0; both && i < worker->camera_count; i++) {
        if (same_camera(&manifest->cameras[i], &worker->cameras[i])) continue;
        say_camera(&manifest->cameras[i], ours);
        say_camera(&worker->cameras[i], theirs);
        return td_fail(info, TD_ERR_MISMATCH,
                       "cameras[%u]: the manifest says %s, the worker %s", i,
                       ours, theirs);
    }
    const td_worker_spec *from = both ? manifest : worker;
    memcpy(ret_spec->cameras, from->cameras, sizeof ret_spec->cameras);
    return TD_OK;
}

td_err td_engine_worker_spec_agree(const td_worker_spec *manifest,
                                   const td_worker_spec *worker,
                                   td_worker_spec *ret_spec, td_errinfo *info)
{
    td_worker_spec spec = {0};
    TD_TRY(agree_cameras(manifest, worker, &spec, info));
    TD_TRY(agree_channels("actions", manifest->actions, manifest->action_count,
                          worker->actions, worker->action_count, spec.actions,
                          &spec.action_count, info));
    TD_TRY(agree_channels("states", manifest->states, manifest->state_count,
                          worker->states, worker->state_count, spec.states,
                          &spec.state_count, info));
    TD_TRY(agree_number("chunk", manifest->chunk_rows, worker->chunk_rows,
                        DEFAULT_ROWS, &spec.chunk_rows, info));
    TD_TRY(agree_number("max_batch", manifest->max_batch, worker->max_batch, 1,
                        &spec.max_batch, info));
    TD_TRY(agree_number("results_bytes", manifest->values_bytes,
                        worker->values_bytes, DEFAULT_VALUES_BYTES,
                        &spec.values_bytes, info));
    spec.rtc = manifest->rtc | worker->rtc;
    spec.prefix = worker->prefix;
    spec.expects = worker->expects;
    spec.tolerance = manifest->tolerance > worker->tolerance
                         ? manifest->tolerance
                         : worker->tolerance;
    *ret_spec = spec;
    return TD_OK;
}

static void channels_of(const td_worker_channel *from, uint32_t count,
                        td_wire_channel *ret_channels)
{
    for (uint32_t i = 0; i < count; i++)
        ret_channels[i] = (td_wire_channel){name_of(from[i].name),
                                            (td_wire_channel_kind)from[i].kind};
}

void td_engine_worker_spec_of(const td_worker_spec *from,
                              td_engine_spec *ret_spec)
{
    for (uint32_t i = 0; i < from->camera_count; i++)
        ret_spec->cameras[i] =
            (td_wire_camera){name_of(from->cameras[i].name),
                             from->cameras[i].height, from->cameras[i].width};
    ret_spec->camera_count = from->camera_count;
    channels_of(from->states, from->state_count, ret_spec->states);
    ret_spec->state_count = from->state_count;
    channels_of(from->actions, from->action_count, ret_spec->actions);
    ret_spec->action_count = from->action_count;
    ret_spec->chunk_rows = from->chunk_rows;
    ret_spec->max_batch = from->max_batch;
    ret_spec->tolerance = from->tolerance;
    ret_spec->rtc = from->rtc != 0;
    ret_spec->most_inflight = TD_WORKER_SLOTS;
}
