// SPDX-License-Identifier: Apache-2.0
// Which frames an episode has, and what is done when one is not whole.
//
// For each row it decides: is an episode under way, is the row of the time
// after its beginning, has anything been played yet, does the row belong to the
// next episode (the robot was reset, or there is a gap of ten seconds). A row
// that is a frame gets, of each camera, the newest picture that had arrived
// when its state was seen (pictures.c). A picture that is missing, old or
// damaged is marked in the frame, counted and said; rows that the recorder lost
// are filled in with the row that follows, marked as lost, so that the
// dataset's clock stays true.
//
// What writes is a sink, a table of functions over a td_dataset_writer; tests
// have one in memory. When the sink fails, recording stops: what was saved
// stays, the rest is for `tendon dataset repair`, the robot goes on. When the
// disk is nearly full the sink says so while there is room to end the episode,
// and the episode is saved first.
//
// No thread, no lock: the recorder's thread calls it, and tests do. The clock
// is an argument of its configuration. Its end saves what is under way and
// closes the sink.
#include "edge/record/episode_writer.h"

#include "base/log.h"

#include <stdlib.h>

// A longer gap is no part of an episode.
#define MOST_LOST_NS (10 * TD_NS_PER_S)
#define LOW_ROOM_S 600.0

struct td_edge_episode_writer {
    td_edge_episode_writer_config config;
    td_edge_pictures pictures[TD_WIRE_MAX_IMAGES];
    td_edge_record_status now;
    int64_t from_ns;    // rows from then on are of the episode under way
    uint64_t episode;   // of the robot, while there are frames
    double said_room_s; // when it was last said
    uint64_t bad[TD_WIRE_MAX_IMAGES]; // pictures of each camera, so far
    td_err why;                       // it stopped
    td_errinfo why_text;
};

const char *td_edge_record_state_name(td_edge_record_state state)
{
    static const char *const names[] = {
#define TD_EDGE_RECORD_NAME(name, text) text,
        TD_EDGE_RECORD_STATES(TD_EDGE_RECORD_NAME)
#undef TD_EDGE_RECORD_NAME
    };
    return names[state];
}

td_err td_edge_episode_writer_new(const td_edge_episode_writer_config *config,
                                  td_edge_episode_writer **ret_recording)
{
    td_edge_episode_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        config->sink.close(config->sink.user);
        return TD_ERR_NOMEM;
    }
    writer->config = *config;
    writer->now.state = TD_EDGE_RECORD_WAITING;
    writer->now.room_s = -1;
    writer->said_room_s = LOW_ROOM_S;
    for (uint32_t i = 0; i < config->camera_count; i++)
        td_edge_pictures_init(&writer->pictures[i], &config->cameras[i]);
    *ret_recording = writer;
    return TD_OK;
}

static void close_sink(td_edge_episode_writer *writer)
{
    td_edge_episode_sink *sink = &writer->config.sink;
    if (sink->close) sink->close(sink->user);
    sink->close = NULL;
}

void td_edge_episode_writer_free(td_edge_episode_writer *writer)
{
    bool open = writer->now.state == TD_EDGE_RECORD_RECORDING;
    if (!open || td_edge_episode_writer_end(writer, true, NULL) == TD_OK)
        close_sink(writer);
    for (uint32_t i = 0; i < writer->config.camera_count; i++)
        td_edge_pictures_done(&writer->pictures[i]);
    free(writer);
}

// What was finished stays; what was written of the rest is for `repair`.
static td_err stop(td_edge_episode_writer *writer, td_err err,
                   const td_errinfo *why)
{
    writer->now.state = TD_EDGE_RECORD_STOPPED;
    writer->why = err;
    writer->why_text = *why;
    td_log_text(TD_LOG_ERROR, "recording stopped, the robot goes on: %s",
                why->text[0] ? why->text : td_err_text(err));
    close_sink(writer);
    return err;
}

static td_err fail_stopped(const td_edge_episode_writer *writer,
                           td_errinfo *info)
{
    return td_fail(info, writer->why, "recording has stopped: %s",
                   writer->why_text.text);
}

td_err td_edge_episode_writer_begin(td_edge_episode_writer *writer,
                                    td_errinfo *info)
{
    td_edge_episode_sink *sink = &writer->config.sink;
    td_errinfo why = {.text = ""};
    if (writer->now.state == TD_EDGE_RECORD_STOPPED)
        return fail_stopped(writer, info);
    if (writer->now.state == TD_EDGE_RECORD_RECORDING)
        return td_fail(info, TD_ERR_EXISTS, "an episode is being recorded");
    td_err err = sink->begin(sink->user, &why);
    if (err != TD_OK) {
        (void)stop(writer, err, &why);
        return fail_stopped(writer, info);
    }
    writer->now.state = TD_EDGE_RECORD_RECORDING;
    writer->now.frames = 0;
    writer->from_ns = td_clock_now_ns(writer->config.clock);
    return TD_OK;
}

static void log_saved(const td_edge_episode_writer *writer, uint32_t episode)
{
    double length_s = (double)writer->now.frames *
                      (double)writer->config.period_ns / TD_NS_PER_S;
    td_log_text(TD_LOG_INFO, "recording: episode %u saved, %llu frames, %.1f s",
                episode, (unsigned long long)writer->now.frames, length_s);
}

static td_err save(td_edge_episode_writer *writer, td_errinfo *why)
{
    td_edge_episode_sink *sink = &writer->config.sink;
    uint32_t episode;
    if (writer->now.frames > 0)
        td_log_text(TD_LOG_INFO, "recording: saving an episode of %llu frames",
                    (unsigned long long)writer->now.frames);
    td_err err = sink->end(sink->user, &episode, why);
    if (err == TD_ERR_EMPTY) {
        td_log_text(TD_LOG_INFO, "recording: nothing was played, no episode");
        return TD_OK;
    }
    TD_TRY(err);
    writer->now.episodes++;
    log_saved(writer, episode);
    return TD_OK;
}

static td_err discard(td_edge_episode_writer *writer, td_errinfo *why)
{
    td_edge_episode_sink *sink = &writer->config.sink;
    TD_TRY(sink->discard(sink->user, why));
    td_log_text(TD_LOG_INFO, "recording: an episode of %llu frames discarded",
                (unsigned long long)writer->now.frames);
    return TD_OK;
}

td_err td_edge_episode_writer_end(td_edge_episode_writer *writer, bool keep,
                                  td_errinfo *info)
{
    td_errinfo why = {.text = ""};
    if (writer->now.state == TD_EDGE_RECORD_STOPPED)
        return fail_stopped(writer, info);
    if (writer->now.state != TD_EDGE_RECORD_RECORDING)
        return td_fail(info, TD_ERR_EMPTY, "no episode is being recorded");
    td_err err = keep ? save(writer, &why) : discard(writer, &why);
    if (err != TD_OK) {
        (void)stop(writer, err, &why);
        return fail_stopped(writer, info);
    }
    writer->now.state = TD_EDGE_RECORD_WAITING;
    writer->now.frames = 0;
    return TD_OK;
}

static void log_missing(td_edge_episode_writer *writer, uint32_t camera,
                        td_edge_picture_kind kind)
{
    const td_wire_text *name = &writer->config.camera_names[camera];
    uint64_t count = ++writer->now.missing[camera];
    if (td_log_is_due(count))
        td_log_text(TD_LOG_WARN,
                    "recording: a frame without a picture of camera %.*s: %s "
                    "(%llu so far)",
                    (int)name->size, name->data,
                    td_edge_picture_kind_text(kind), (unsigned long long)count);
}

static td_dataset_image image_at(td_edge_episode_writer *writer,
                                 uint32_t camera, size_t bytes, int64_t at_ns)
{
    const td_edge_frame *frame = NULL;
    int64_t most_ns =
        TD_EDGE_CAMERA_STALE_PERIODS * writer->config.camera_period_ns[camera];
    td_edge_picture_kind kind =
        td_edge_pictures_at(&writer->pictures[camera], at_ns, most_ns, &frame);
    if (kind != TD_EDGE_PICTURE_THERE) {
        log_missing(writer, camera, kind);
        return (td_dataset_image){.kind = TD_DATASET_IMAGE_MISSING};
    }
    if (frame->jpeg > 0)
        return (td_dataset_image){TD_DATASET_IMAGE_JPEG,
                                  {frame->bytes, frame->jpeg}};
    return (td_dataset_image){TD_DATASET_IMAGE_RGB, {frame->bytes, bytes}};
}

// A camera's JPEG may turn out to be damaged.
static void note_bad(td_edge_episode_writer *writer)
{
    const td_edge_episode_sink *sink = &writer->config.sink;
    td_dataset_writer_state at = sink->look(sink->user);
    for (uint32_t i = 0; i < writer->config.camera_count; i++)
        for (; writer->bad[i] < at.bad[i]; writer->bad[i]++)
            log_missing(writer, i, TD_EDGE_PICTURE_BAD);
}

// The disk is nearly full, and there is just room to end the episode.
static void end_for_room(td_edge_episode_writer *writer, const td_errinfo *why)
{
    if (td_edge_episode_writer_end(writer, true, NULL) == TD_OK)
        (void)stop(writer, TD_ERR_FULL, why);
}

static bool add(td_edge_episode_writer *writer, const td_dataset_frame *frame)
{
    td_edge_episode_sink *sink = &writer->config.sink;
    td_errinfo why = {.text = ""};
    td_err err = sink->add(sink->user, frame, &why);
    if (err == TD_OK)
        writer->now.frames++;
    else if (err == TD_ERR_FULL)
        end_for_room(writer, &why);
    else
        (void)stop(writer, err, &why);
    return err == TD_OK;
}

static void note_lost(td_edge_episode_writer *writer, uint64_t lost)
{
    if (lost == 0) return;
    writer->now.lost += lost;
    td_log_text(TD_LOG_WARN,
                "recording: %llu frames lost, the robot's period was missed or "
                "recording does not keep up",
                (unsigned long long)lost);
}

static void note_between(td_edge_episode_writer *writer)
{
    uint64_t count = ++writer->now.between;
    if (td_log_is_due(count))
        td_log_text(TD_LOG_INFO,
                    "recording: a frame of no episode, played while one was "
                    "saved or begun (%llu so far)",
                    (unsigned long long)count);
}

// Their pictures are missing with them.
static bool add_lost(td_edge_episode_writer *writer, const td_edge_row *row,
                     const char *task)
{
    const td_dataset_image none[TD_WIRE_MAX_IMAGES] = {0};
    const td_dataset_frame frame = {
        .task = task,
        .state = row->values,
        .action = row->values + writer->config.states,
        .lost = true,
        .images = none,
        .done = {.held = true, .age_s = -1, .chunk = -1, .step = -1},
    };
    note_lost(writer, row->lost);
    for (uint64_t i = 0; i < row->lost; i++)
        if (!add(writer, &frame)) return false;
    return true;
}

static td_dataset_done done_of(const td_edge_row *row)
{
    return (td_dataset_done){
        .held = row->held,
        .clamped = row->clamped,
        .failsafe = row->failsafe,
        .age_s = row->held ? -1 : (float)row->age_ns / (float)TD_NS_PER_S,
        .chunk = row->held ? -1 : (int64_t)row->chunk,
        .step = row->held ? -1 : (int64_t)row->step,
    };
}

static bool add_row(td_edge_episode_writer *writer, const td_edge_row *row,
                    const char *task)
{
    td_dataset_image images[TD_WIRE_MAX_IMAGES];
    const td_edge_episode_writer_config *config = &writer->config;
    const td_dataset_frame frame = {
        .task = task,
        .state = row->values,
        .action = row->values + config->states,
        .images = images,
        .done = done_of(row),
    };
    for (uint32_t i = 0; i < config->camera_count; i++)
        images[i] = image_at(writer, i, config->camera_bytes[i], row->seen_ns);
    bool added = add(writer, &frame);
    if (added) note_bad(writer);
    return added;
}

static void watch_room(td_edge_episode_writer *writer)
{
    td_edge_episode_sink *sink = &writer->config.sink;
    td_dataset_writer_state at = sink->look(sink->user);
    double length_s = (double)writer->now.frames *
                      (double)writer->config.period_ns / TD_NS_PER_S;
    if (at.bytes == 0 || length_s < 1) return;
    double room_s = (double)at.free_bytes * length_s / (double)at.bytes;
    writer->now.room_s = room_s;
    if (room_s >= writer->said_room_s) return;
    writer->said_room_s = room_s / 2;
    td_log_text(TD_LOG_WARN,
                "recording: the disk is full in %.0f s as it goes; then "
                "recording stops, the robot does not",
                room_s);
}

// A new episode of the robot, or a gap that no episode has.
static bool belongs_to_next(const td_edge_episode_writer *writer,
                            const td_edge_row *row)
{
    uint64_t most = (uint64_t)(MOST_LOST_NS / writer->config.period_ns);
    return writer->now.frames > 0 &&
           (row->episode != writer->episode || row->lost > most);
}

// What was lost before the row is of neither episode.
static bool turn_over(td_edge_episode_writer *writer, const td_edge_row *row)
{
    note_lost(writer, row->lost);
    return td_edge_episode_writer_end(writer, true, NULL) == TD_OK &&
           td_edge_episode_writer_begin(writer, NULL) == TD_OK;
}

// Whether it is a frame of the episode under way.
static bool is_wanted(td_edge_episode_writer *writer, const td_edge_row *row)
{
    if (writer->now.state != TD_EDGE_RECORD_RECORDING) return false;
    if (belongs_to_next(writer, row) && !turn_over(writer, row)) return false;
    if (row->seen_ns < writer->from_ns) {
        if (!row->held) note_between(writer);
        return false;
    }
    return writer->now.frames > 0 || !row->held;
}

void td_edge_episode_writer_row(td_edge_episode_writer *writer,
                                const td_edge_row *row, const char *task)
{
    if (!is_wanted(writer, row)) {
        td_edge_episode_writer_pass(writer, row->seen_ns);
        return;
    }
    bool first = writer->now.frames == 0;
    writer->episode = row->episode;
    if (!first && !add_lost(writer, row, task)) return;
    if (add_row(writer, row, task)) watch_room(writer);
}

void td_edge_episode_writer_pass(td_edge_episode_writer *writer, int64_t at_ns)
{
    const td_edge_frame *unused;
    for (uint32_t i = 0; i < writer->config.camera_count; i++)
        (void)td_edge_pictures_at(&writer->pictures[i], at_ns, 0, &unused);
}

td_edge_record_status
td_edge_episode_writer_status(const td_edge_episode_writer *writer)
{
    return writer->now;
}
