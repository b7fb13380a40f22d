// SPDX-License-Identifier: Apache-2.0
// The recorder, on the thread td-record: between the tick, which must not wait,
// and a disk that may be away for seconds.
//
// The tick makes rows (rows.c) and leaves them in a ring with room for half a
// minute; when that is full a row counts as lost and the next one says so. The
// thread takes each row when it is a period old, so that every picture that had
// arrived with it has been handed over, and gives it to the episode writer,
// which finds its pictures and writes.
//
// Commands (begin, end, discard, next, again) wait in a queue with the time at
// which they were given. Before the thread carries one out it takes the rows
// that were seen until then: what was played before the command is before it in
// the dataset, however late the disk is. Then it calls back whoever gave it.
//
// Lock: it guards `seen`, a copy of the writer's status for whoever asks, and
// is held while that is copied.
//
// Stop: the tick has ended before; a flag is set. Drain: it carries out
// the commands that are left, takes the rows behind them, and saves the
// episode, as long as that takes. Free: when it is joined.
#include "edge/record/recorder.h"

#include "base/log.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/ring.h"
#include "base/sync/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// So long may the disk be away before rows are lost.
#define RING_NS (30 * TD_NS_PER_S)

#define COMMANDS_MAX 16
#define LEAST_NAP_NS (10 * TD_NS_PER_MS)

typedef struct submitted {
    td_edge_episode_command what;
    int64_t at_ns;
    td_edge_episode_done done;
    void *user;
} submitted;

struct td_edge_recorder {
    td_edge_recorder_config config;
    td_edge_rows *rows; // tick's own
    uint64_t lost;      // likewise, so far
    td_ring *ring;      // tick to recorder, td_edge_row

    td_edge_episode_writer
        *writer; // recorder's thread's own, with what follows
    td_edge_row *row;
    bool has_row; // that is not yet recorded
    char task[TD_DATASET_MAX_TASK];

    td_queue *commands; // submitted
    td_event wake;
    _Atomic bool stopping;
    td_thread *thread;

    pthread_mutex_t lock; // guards `seen`
    td_edge_record_status seen;
};

td_edge_episode_command td_edge_episode_command_find(const char *word,
                                                     size_t size)
{
    static const char *const words[] = {
#define TD_EDGE_EPISODE_TEXT(name, text) text,
        TD_EDGE_EPISODE_COMMANDS(TD_EDGE_EPISODE_TEXT)
#undef TD_EDGE_EPISODE_TEXT
    };
    int command = 0;
    while (command < TD_EDGE_EPISODE_COUNT &&
           (strlen(words[command]) != size ||
            memcmp(words[command], word, size) != 0))
        command++;
    return (td_edge_episode_command)command;
}

// Rows that were seen until `until_ns`.
static void take_rows(td_edge_recorder *recorder, int64_t until_ns)
{
    for (;;) {
        if (!recorder->has_row &&
            td_ring_pop(recorder->ring, recorder->row) != TD_OK)
            return;
        recorder->has_row = recorder->row->seen_ns > until_ns;
        if (recorder->has_row) return;
        recorder->config.task(recorder->config.user, recorder->task);
        td_edge_episode_writer_row(recorder->writer, recorder->row,
                                   recorder->task);
    }
}

static void show(td_edge_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    recorder->seen = td_edge_episode_writer_status(recorder->writer);
    pthread_mutex_unlock(&recorder->lock);
}

static bool is_under_way(const td_edge_recorder *recorder)
{
    return td_edge_episode_writer_status(recorder->writer).state ==
           TD_EDGE_RECORD_RECORDING;
}

static td_err carry_out(td_edge_recorder *recorder,
                        td_edge_episode_command what, td_errinfo *info)
{
    td_edge_episode_writer *writer = recorder->writer;
    bool keep = what == TD_EDGE_EPISODE_END || what == TD_EDGE_EPISODE_NEXT;
    bool begins = what == TD_EDGE_EPISODE_NEXT || what == TD_EDGE_EPISODE_AGAIN;
    if (what == TD_EDGE_EPISODE_COUNT)
        return td_fail(info, TD_ERR_INVALID,
                       "must be begin, end, discard, next or again");
    if (what == TD_EDGE_EPISODE_BEGIN)
        return td_edge_episode_writer_begin(writer, info);
    if (!begins || is_under_way(recorder))
        TD_TRY(td_edge_episode_writer_end(writer, keep, info));
    return begins ? td_edge_episode_writer_begin(writer, info) : TD_OK;
}

static void take_commands(td_edge_recorder *recorder)
{
    submitted command;
    while (td_queue_pop(recorder->commands, &command) == TD_OK) {
        td_errinfo why = {.text = ""};
        take_rows(recorder, command.at_ns);
        td_err err = carry_out(recorder, command.what, &why);
        show(recorder);
        command.done(command.user, err, &why);
    }
}

// A row waits for a period, so that every picture that had arrived with it has
// been handed over.
static void run(void *user)
{
    td_edge_recorder *recorder = user;
    int64_t period_ns = recorder->config.writer.period_ns;
    int64_t nap_ns = period_ns > LEAST_NAP_NS ? period_ns : LEAST_NAP_NS;
    while (!atomic_load(&recorder->stopping)) {
        take_commands(recorder);
        int64_t due_ns = td_clock_monotonic_ns() - period_ns;
        take_rows(recorder, due_ns);
        if (!recorder->has_row)
            td_edge_episode_writer_pass(recorder->writer, due_ns);
        show(recorder);
        (void)td_event_wait_until(&recorder->wake,
                                  td_clock_monotonic_ns() + nap_ns);
    }
    take_commands(recorder);
    take_rows(recorder, INT64_MAX);
    td_edge_episode_writer_free(TD_TAKE(recorder->writer));
}

static td_err make(td_edge_recorder *recorder, td_errinfo *info)
{
    const td_edge_episode_writer_config *config = &recorder->config.writer;
    const td_thread_config thread = {.name = "td-record", .cpu = -1};
    TD_TRY(td_edge_rows_new(config->states, config->channels,
                            recorder->config.substeps, &recorder->rows));
    size_t row_bytes = td_edge_rows_bytes(recorder->rows);
    TD_TRY(td_ring_new((size_t)(RING_NS / config->period_ns) + 1, row_bytes,
                       &recorder->ring));
    TD_TRY(td_queue_new(COMMANDS_MAX, sizeof(submitted), &recorder->commands));
    recorder->row = calloc(1, row_bytes);
    if (!recorder->row) return TD_ERR_NOMEM;
    recorder->seen = td_edge_episode_writer_status(recorder->writer);
    TD_TRY(td_thread_start(&thread, run, recorder, &recorder->thread, info));
    return recorder->config.begin
               ? td_edge_recorder_execute(recorder, TD_EDGE_EPISODE_BEGIN, info)
               : TD_OK;
}

td_err td_edge_recorder_open(const td_edge_recorder_config *config,
                             td_edge_recorder **ret_recorder, td_errinfo *info)
{
    td_edge_episode_writer *writer = NULL;
    TD_TRY(td_edge_episode_writer_new(&config->writer, &writer));
    td_edge_recorder *made = calloc(1, sizeof *made);
    if (!made) {
        td_edge_episode_writer_free(writer);
        return TD_ERR_NOMEM;
    }
    TD_AUTO(td_edge_recorder) *recorder = made;
    recorder->config = *config;
    recorder->writer = writer;
    td_event_init(&recorder->wake);
    pthread_mutex_init(&recorder->lock, NULL);
    TD_TRY(make(recorder, info));
    *ret_recorder = TD_TAKE(recorder);
    return TD_OK;
}

void td_edge_recorder_close(td_edge_recorder *recorder)
{
    atomic_store(&recorder->stopping, true);
    td_event_signal(&recorder->wake);
    if (recorder->thread) td_thread_join(recorder->thread);
    if (recorder->writer) td_edge_episode_writer_free(recorder->writer);
    if (recorder->rows) td_edge_rows_free(recorder->rows);
    if (recorder->ring) td_ring_free(recorder->ring);
    if (recorder->commands) td_queue_free(recorder->commands);
    free(recorder->row);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

void td_edge_recorder_tick(td_edge_recorder *recorder,
                           const td_edge_rows_tick *tick)
{
    const td_edge_row *row = td_edge_rows_add(recorder->rows, tick);
    if (!row || td_ring_push(recorder->ring, row) == TD_OK) return;
    td_edge_rows_lose(recorder->rows, row);
    uint64_t lost = ++recorder->lost;
    if ((lost & (lost - 1)) == 0)
        td_log(TD_LOG_WARN,
               "recording: does not keep up at all, {} frames lost so far",
               lost);
}

td_err td_edge_recorder_submit(td_edge_recorder *recorder,
                               td_edge_episode_command command,
                               td_edge_episode_done done, void *user)
{
    const submitted entry = {command, td_clock_monotonic_ns(), done, user};
    TD_TRY(td_queue_push(recorder->commands, &entry));
    td_event_signal(&recorder->wake);
    return TD_OK;
}

typedef struct waiting {
    td_event ended;
    td_err err;
    td_errinfo *info;
} waiting;

static void end_waiting(void *user, td_err err, const td_errinfo *why)
{
    waiting *wait = user;
    wait->err = err;
    if (err != TD_OK) (void)td_fail(wait->info, err, "%s", why->text);
    td_event_signal(&wait->ended);
}

td_err td_edge_recorder_execute(td_edge_recorder *recorder,
                                td_edge_episode_command command,
                                td_errinfo *info)
{
    waiting wait = {.info = info};
    td_event_init(&wait.ended);
    if (td_edge_recorder_submit(recorder, command, end_waiting, &wait) != TD_OK)
        return td_fail(info, TD_ERR_BUSY, "too many commands at a time");
    (void)td_event_wait_until(&wait.ended, INT64_MAX);
    return wait.err;
}

td_edge_record_status td_edge_recorder_status(td_edge_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    td_edge_record_status seen = recorder->seen;
    pthread_mutex_unlock(&recorder->lock);
    return seen;
}
