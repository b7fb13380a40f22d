// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/writer.h"
#include "base/log.h"
#include "dataset/meta/schema.h"
#include "dataset/table/table.h"
#include "dataset/write/append.h"
#include "dataset/write/recording.h"
#include "dataset/write/save.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_RESERVE_BYTES (UINT64_C(256) << 20)

struct td_dataset_writer {
    td_dataset_schema *schema;
    td_dataset_staging *staging;
    td_dataset_append *append;
    td_dataset_recording *recording; // NULL: no episode is open
    const td_clock *clock;
    int64_t sync_ns;
    int64_t sync_at_ns;
    uint64_t reserve_bytes;
    uint64_t free_bytes; // beyond the reserve and the end of the episode
    td_dataset_recording_missed missed;
    td_err stopped;
    td_errinfo why;
};

// The first error is the one that counts.
static td_err stop(td_dataset_writer *writer, td_err err, td_errinfo *info)
{
    writer->stopped = err;
    writer->why = (td_errinfo){""};
    if (info) writer->why = *info;
    td_log_text(TD_LOG_ERROR, "dataset: the recording has stopped: %s",
                info && info->text[0] ? info->text : td_err_text(err));
    return err;
}

static td_err check_running(const td_dataset_writer *writer, td_errinfo *info)
{
    if (writer->stopped == TD_OK) return TD_OK;
    return td_fail(info, writer->stopped, "the recording has stopped: %s",
                   writer->why.text);
}

// What is free on the disk beyond what is spoken for. FULL when nothing is.
static td_err look_at_disk(td_dataset_writer *writer, td_errinfo *info)
{
    uint64_t free_bytes = 0;
    uint64_t episode = writer->recording
                           ? td_dataset_recording_kept_bytes(writer->recording)
                           : 0;
    uint64_t reserved =
        writer->reserve_bytes + td_dataset_append_need(writer->append, episode);
    TD_TRY(td_dataset_disk_free_bytes(writer->staging->area.text, &free_bytes,
                                      info));
    writer->free_bytes = free_bytes > reserved ? free_bytes - reserved : 0;
    if (writer->free_bytes > 0) return TD_OK;
    return td_fail(info, TD_ERR_FULL,
                   "%s: %llu MB are free on this disk, and %llu MB are needed "
                   "to end an episode and as a reserve",
                   writer->staging->parent.text,
                   (unsigned long long)(free_bytes >> 20),
                   (unsigned long long)(reserved >> 20));
}

static td_err open_parts(td_dataset_writer *writer,
                         const td_dataset_writer_config *config,
                         td_errinfo *info)
{
    td_dataset_saved saved;
    TD_TRY(td_dataset_schema_check(&config->schema, info));
    TD_TRY(td_dataset_table_load(info));
    if (config->schema.camera_count > 0)
        TD_TRY(td_media_codec_check(config->schema.codec, info));
    TD_TRY(td_dataset_schema_copy(&config->schema, &writer->schema));
    TD_TRY(td_dataset_staging_open(config->folder, &writer->staging, info));
    TD_TRY(td_dataset_save_ended(writer->staging, &saved, info));
    const td_dataset_append_config append = {
        .staging = writer->staging,
        .schema = writer->schema,
        .data_file_mb = config->data_file_mb,
        .video_file_mb = config->video_file_mb,
    };
    TD_TRY(td_dataset_append_open(&append, &writer->append, info));
    return look_at_disk(writer, info);
}

td_err td_dataset_writer_open(const td_dataset_writer_config *config,
                              td_dataset_writer **ret_writer, td_errinfo *info)
{
    TD_AUTO(td_dataset_writer) *writer = calloc(1, sizeof *writer);
    if (!writer) return TD_ERR_NOMEM;
    writer->clock = config->clock ? config->clock : &td_clock_monotonic;
    writer->sync_ns = config->sync_ns ? config->sync_ns : TD_NS_PER_S;
    writer->reserve_bytes =
        config->reserve_bytes ? config->reserve_bytes : DEFAULT_RESERVE_BYTES;
    TD_TRY(open_parts(writer, config, info));
    *ret_writer = TD_TAKE(writer);
    return TD_OK;
}

void td_dataset_writer_close(td_dataset_writer *writer)
{
    if (writer->recording) td_dataset_recording_close(writer->recording);
    if (writer->append) td_dataset_append_close(writer->append);
    if (writer->staging) td_dataset_staging_close(writer->staging);
    if (writer->schema) td_dataset_schema_free(writer->schema);
    free(writer);
}

td_err td_dataset_writer_begin(td_dataset_writer *writer, td_errinfo *info)
{
    TD_TRY(check_running(writer, info));
    if (writer->recording)
        return td_fail(info, TD_ERR_BUSY, "an episode is open");
    TD_TRY(look_at_disk(writer, info));
    td_err err =
        td_dataset_recording_open(writer->staging->episode.text, writer->schema,
                                  &writer->missed, &writer->recording, info);
    if (err != TD_OK) {
        // Nothing is in it; what cannot be removed goes with the next open.
        td_err swept =
            td_dataset_disk_remove(writer->staging->episode.text, NULL);
        (void)swept;
        return stop(writer, err, info);
    }
    writer->sync_at_ns = td_clock_now_ns(writer->clock) + writer->sync_ns;
    return TD_OK;
}

static td_err check_open(const td_dataset_writer *writer, td_errinfo *info)
{
    TD_TRY(check_running(writer, info));
    if (writer->recording) return TD_OK;
    return td_fail(info, TD_ERR_INVALID, "no episode is open");
}

// Once in a while what was written goes to the disk.
static td_err sync_when_due(td_dataset_writer *writer, td_errinfo *info)
{
    int64_t now_ns = td_clock_now_ns(writer->clock);
    if (now_ns < writer->sync_at_ns) return TD_OK;
    writer->sync_at_ns = now_ns + writer->sync_ns;
    td_err err = td_dataset_recording_sync(writer->recording, info);
    if (err != TD_OK) return stop(writer, err, info);
    return TD_OK;
}

td_err td_dataset_writer_add(td_dataset_writer *writer,
                             const td_dataset_frame *frame, td_errinfo *info)
{
    TD_TRY(check_open(writer, info));
    TD_TRY(sync_when_due(writer, info));
    TD_TRY(look_at_disk(writer, info));
    td_err err = td_dataset_recording_add(writer->recording, frame, info);
    return err == TD_OK || err == TD_ERR_INVALID ? err
                                                 : stop(writer, err, info);
}

static void close_recording(td_dataset_writer *writer)
{
    td_dataset_recording_close(writer->recording);
    writer->recording = NULL;
}

td_err td_dataset_writer_discard(td_dataset_writer *writer, td_errinfo *info)
{
    TD_TRY(check_running(writer, info));
    if (!writer->recording) return TD_OK;
    close_recording(writer);
    td_err err = td_dataset_disk_remove(writer->staging->episode.text, info);
    if (err == TD_OK)
        err = td_dataset_disk_sync(writer->staging->area.text, info);
    return err == TD_OK ? TD_OK : stop(writer, err, info);
}

td_err td_dataset_writer_end(td_dataset_writer *writer, uint32_t *ret_episode,
                             td_errinfo *info)
{
    TD_TRY(check_open(writer, info));
    if (td_dataset_recording_frames(writer->recording) == 0) {
        TD_TRY(td_dataset_writer_discard(writer, info));
        return TD_ERR_EMPTY;
    }
    uint32_t number = td_dataset_append_episodes(writer->append);
    td_err err = td_dataset_recording_end(writer->recording, number, info);
    close_recording(writer);
    if (err == TD_OK)
        err = td_dataset_save_episode(writer->staging, writer->append, info);
    if (err != TD_OK) return stop(writer, err, info);
    *ret_episode = number;
    return TD_OK;
}

td_dataset_writer_state
td_dataset_writer_report(const td_dataset_writer *writer)
{
    td_dataset_writer_state state = {
        .episodes = td_dataset_append_episodes(writer->append),
        .total_frames = td_dataset_append_frames(writer->append),
        .recording = writer->recording != NULL,
        .free_bytes = writer->free_bytes,
        .stopped = writer->stopped,
    };
    memcpy(state.missing, writer->missed.camera, sizeof state.missing);
    memcpy(state.bad, writer->missed.bad, sizeof state.bad);
    if (writer->recording) {
        state.frames = td_dataset_recording_frames(writer->recording);
        state.bytes = td_dataset_recording_bytes(writer->recording) +
                      td_dataset_recording_kept_bytes(writer->recording);
    }
    return state;
}
