// SPDX-License-Identifier: Apache-2.0
// Passes metrics and events on to the program that listens, on one thread of
// its own (td-listen), so that no function of the user's runs inside the
// server.
//
// Samples come from any thread that records one (td_server_stream_tap), into a
// queue without a lock; a full one counts what it drops. They wake nobody,
// since that would be a system call: the thread looks every 20 ms. Events are
// taken from the ring of the process. Counters that the cores keep, and gauges,
// are read once a second, with the process's `shown_lock` held.
//
// Stop: td_server_stream_close() sets `stop` and signals; the thread passes on
// what is in the queue and in the events, then it is joined and everything
// freed.
#include "server/process/stream.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "base/sync/thread.h"
#include "server/process/process.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 8192
#define LOOK_NS                                                                \
    (20 * TD_NS_PER_MS) // samples wake nobody: that is a system call
#define GAUGES_NS TD_NS_PER_S

// A sample on its way.
typedef struct sample {
    const char *name;
    double value;
    td_err error;
    uint32_t entry;
    char client[TD_WIRE_MAX_NAME + 1]; // empty: nobody's
} sample;

// Of one entry.
typedef struct source {
    td_server_stream *stream;
    uint32_t index;
    uint64_t
        counters[TD_SERVER_COUNTER_COUNT]; // the core's, that were passed on
} source;

struct td_server_stream {
    td_server_process *process;
    pthread_mutex_t to_lock; // guards `to`; held while one of them is called
    td_server_listeners to;
    _Atomic bool hears; // somebody listens to numbers
    td_queue *samples;  // NULL: nobody ever will
    td_event wake;
    td_thread *thread;
    _Atomic bool stop;

    // The thread's own.
    uint64_t last_event; // that was passed on
    int64_t gauges_ns;   // when to look them up
    source sources[];    // one for each entry
};

// Whoever records; never blocks.
static void on_sample(void *user, const td_server_sample *given)
{
    const source *from = user;
    td_server_stream *stream = from->stream;
    if (!atomic_load_explicit(&stream->hears, memory_order_relaxed)) return;
    sample made = {.name = given->row->name,
                   .value = given->value,
                   .error = given->error,
                   .entry = from->index};
    if (given->client)
        memcpy(made.client, given->client,
               strnlen(given->client, TD_WIRE_MAX_NAME));
    if (td_queue_push(stream->samples, &made) != TD_OK)
        atomic_fetch_add(&stream->process->dropped, 1);
}

static td_server_labels labels_of(const td_server_stream *stream, size_t index)
{
    const td_server_about *about = &stream->process->about[index];
    return (td_server_labels){.size = sizeof(td_server_labels),
                              .server = about->server,
                              .model = about->model};
}

static void notify_sample(const td_server_stream *stream, const sample *given)
{
    td_server_labels labels = labels_of(stream, given->entry);
    if (given->client[0]) labels.client = given->client;
    if (given->error != TD_OK) labels.error = td_err_name(given->error);
    stream->to.on_metric(stream->to.metric_user, given->name, given->value,
                         &labels);
}

static void notify_samples(const td_server_stream *stream)
{
    sample next;
    while (stream->samples && td_queue_pop(stream->samples, &next) == TD_OK)
        if (stream->to.on_metric) notify_sample(stream, &next);
}

// What the core counts does not pass the tap.
static bool is_cores(int counter)
{
    return counter > TD_SERVER_COUNT_SCORE_NOT_FINITE ||
           counter == TD_SERVER_COUNT_OBSERVATION_ERRORS;
}

static void notify_counters(const td_server_stream *stream, source *from,
                            const td_server_view *view)
{
    const td_server_labels labels = labels_of(stream, from->index);
    for (int i = 0; i < TD_SERVER_COUNTER_COUNT; i++) {
        uint64_t now = view->numbers.counters[i], was = from->counters[i];
        if (!is_cores(i) || now == was) continue;
        from->counters[i] = now;
        stream->to.on_metric(stream->to.metric_user,
                             td_server_counter_rows[i].name,
                             (double)(now - was), &labels);
    }
}

static void notify_gauges(const td_server_stream *stream, const source *from,
                          const td_server_view *view)
{
    const td_server_labels labels = labels_of(stream, from->index);
    for (int i = 0; i < TD_SERVER_GAUGE_COUNT; i++)
        stream->to.on_metric(stream->to.metric_user,
                             td_server_gauge_rows[i].name, view->gauges[i],
                             &labels);
}

static bool read_view(td_server_stream *stream, size_t index, int64_t now_ns,
                      td_server_view *view)
{
    td_server_process *process = stream->process;
    pthread_mutex_lock(&process->shown_lock);
    td_server_model *model = process->shown[index];
    bool read =
        model && td_server_model_view(model, now_ns, 0, "", view) == TD_OK;
    pthread_mutex_unlock(&process->shown_lock);
    return read;
}

static void look_up(td_server_stream *stream, int64_t now_ns)
{
    if (!stream->to.on_metric || now_ns < stream->gauges_ns) return;
    for (size_t i = 0; i < stream->process->manifest->model_count; i++) {
        td_server_view view = {.about = {0}};
        if (!read_view(stream, i, now_ns, &view)) continue;
        stream->gauges_ns = now_ns + GAUGES_NS;
        notify_counters(stream, &stream->sources[i], &view);
        notify_gauges(stream, &stream->sources[i], &view);
        td_server_view_done(&view);
    }
}

static void notify_events(td_server_stream *stream)
{
    td_server_events_item event;
    uint64_t lost;
    while (stream->to.on_event &&
           td_server_events_next(stream->process->events, stream->last_event,
                                 &event, &lost)) {
        atomic_fetch_add(&stream->process->dropped, lost);
        stream->last_event = event.number;
        const td_server_event shown = {.size = sizeof shown,
                                       .number = event.number,
                                       .kind = td_server_event_name(event.kind),
                                       .server = event.server,
                                       .client = event.client,
                                       .text = event.text};
        stream->to.on_event(stream->to.event_user, &shown);
    }
}

static void run(void *user)
{
    td_server_stream *stream = user;
    for (;;) {
        bool last = atomic_load(&stream->stop);
        int64_t now_ns = td_clock_monotonic_ns();
        pthread_mutex_lock(&stream->to_lock);
        notify_events(stream);
        notify_samples(stream);
        if (!last) look_up(stream, now_ns);
        bool listens = stream->to.on_metric || stream->to.on_event;
        pthread_mutex_unlock(&stream->to_lock);
        if (last) return;
        (void)td_event_wait_until(&stream->wake,
                                  listens ? now_ns + LOOK_NS : INT64_MAX);
    }
}

static td_err start(td_server_stream *stream, td_errinfo *info)
{
    const td_thread_config config = {.name = "td-listen", .cpu = -1};
    if (stream->to.on_metric || stream->process->extras->listens_later)
        TD_TRY(td_queue_new(SAMPLES, sizeof(sample), &stream->samples));
    return td_thread_start(&config, run, stream, &stream->thread, info);
}

td_err td_server_stream_open(td_server_process *process,
                             const td_server_listeners *listeners,
                             td_server_stream **ret_stream, td_errinfo *info)
{
    size_t count = process->manifest->model_count;
    TD_AUTO(td_server_stream) *stream =
        calloc(1, sizeof *stream + count * sizeof *stream->sources);
    if (!stream) return TD_ERR_NOMEM;
    stream->process = process;
    stream->to = *listeners;
    atomic_store(&stream->hears, listeners->on_metric != NULL);
    pthread_mutex_init(&stream->to_lock, NULL);
    td_event_init(&stream->wake);
    for (size_t i = 0; i < count; i++) {
        stream->sources[i].stream = stream;
        stream->sources[i].index = (uint32_t)i;
    }
    TD_TRY(start(stream, info));
    *ret_stream = TD_TAKE(stream);
    return TD_OK;
}

void td_server_stream_listen(td_server_stream *stream,
                             const td_server_listeners *listeners)
{
    pthread_mutex_lock(&stream->to_lock);
    stream->to = *listeners;
    atomic_store(&stream->hears, listeners->on_metric != NULL);
    pthread_mutex_unlock(&stream->to_lock);
    td_event_signal(&stream->wake);
}

void td_server_stream_close(td_server_stream *stream)
{
    atomic_store(&stream->stop, true);
    td_event_signal(&stream->wake);
    if (stream->thread) td_thread_join(stream->thread);
    if (stream->samples) td_queue_free(stream->samples);
    pthread_mutex_destroy(&stream->to_lock);
    free(stream);
}

td_server_tap td_server_stream_tap(td_server_stream *stream, size_t index)
{
    if (!stream->samples) return (td_server_tap){0};
    return (td_server_tap){on_sample, &stream->sources[index]};
}
