// SPDX-License-Identifier: Apache-2.0
// From the device to the answer: batches are formed under the device's lock,
// run without it, and answered on the engine's thread. What ends without an
// answer waits in its server's line for the loop, which tells the robots.
//
// A batch that fails as a whole does not say whose fault it is: each of its
// members runs once more, alone, before anything else does.
//
// Where prefixes are kept a batch runs in two halves, prefix and decode; a
// member whose prefix is lost in between runs once more, whole.
#include "base/log.h"
#include "engine/results.h"
#include "server/core/answer.h"
#include "server/shell.h"

#include <sched.h>

static int64_t now(void)
{
    return td_clock_now_ns(&td_clock_monotonic);
}

static uint64_t seed_of(const td_server_request *request)
{
    const td_wire_obs *obs = &request->obs;
    uint64_t seq = obs->anew ? request->asker : obs->ident.seq;
    return td_engine_seed(obs->client, obs->ident.episode, seq);
}

static void prepare(td_server_request *request, int64_t now_ns)
{
    request->started_ns = now_ns;
    request->why.text[0] = 0;
    td_engine_results_clear(&request->results);
    request->item = (td_engine_item){
        .obs = &request->obs,
        .seed = seed_of(request),
        .prefix = request->prefix,
        .actions = request->actions,
        .status = TD_ERR_INTERNAL,
        .info = &request->why,
        .results = &request->results,
    };
}

static td_server_request *request_of(td_engine_item *item)
{
    return (td_server_request *)((char *)item -
                                 offsetof(td_server_request, item));
}

static td_server_run *take_run(td_server_model *server, uint32_t number,
                               int64_t now_ns)
{
    td_server_run *run = server->free_runs;
    server->free_runs = run->next;
    *run = (td_server_run){
        .server = server, .number = number, .encoder = run->encoder};
    run->started_ns = now_ns;
    return run;
}

// All of a batch are of one kind.
static void add(td_server_run *run, td_server_request *request)
{
    td_server_model *server = run->server;
    prepare(request, run->started_ns);
    run->batch.items[run->batch.count++] = &request->item;
    bool halves = td_server_core_keeps_prefixes(server->core);
    run->part = halves && !request->whole ? TD_ENGINE_PREFIX : TD_ENGINE_WHOLE;
    if (request->prefix) run->part = TD_ENGINE_DECODE;
}

static td_server_run *form_alone(td_server_device *device, int64_t now_ns)
{
    td_server_request *request = device->alone.first;
    td_server_model *server = request->peer->server;
    uint32_t number;
    if (!td_server_dispatch_alone(device->dispatch, now_ns, server->model,
                                  &number))
        return NULL;
    device->alone.first = request->next;
    td_server_run *run = take_run(server, number, now_ns);
    run->alone = true;
    run->members = 1;
    add(run, request);
    run->depth = td_server_core_depth(server->core) + run->members;
    return run;
}

static td_server_run *form(td_server_device *device, int64_t now_ns)
{
    td_server_dispatch_batch batch;
    if (device->alone.first) return form_alone(device, now_ns);
    if (!td_server_dispatch_next(device->dispatch, now_ns, &batch)) return NULL;
    td_server_model *server = device->servers[batch.model];
    td_server_score_record(device->score, server->stats, now_ns);
    td_server_run *run = take_run(server, batch.run, now_ns);
    run->members = batch.count;
    for (uint32_t i = 0; i < batch.count; i++) {
        td_server_request *request = batch.picks[i].request.payload;
        td_server_core_started(server->core, request->peer->number,
                               batch.picks[i].ticket);
        add(run, request);
    }
    run->depth = td_server_core_depth(server->core) + run->members;
    server->busy += batch.count;
    return run;
}

td_server_run *td_server_run_form_locked(td_server_device *device)
{
    td_server_run *first = NULL, **last = &first;
    while ((*last = form(device, now())))
        last = &(*last)->next;
    int64_t wake_ns = td_server_dispatch_wake_ns(device->dispatch);
    if (wake_ns < device->planned_ns && device->keeper)
        td_event_signal(&device->keeper->wake);
    return first;
}

// What the first half has made goes, unless it was kept before.
static void discard_prefix(const td_server_model *server,
                           td_server_request *request)
{
    td_engine_prefix *made = request->item.prefix;
    if (made && !request->prefix)
        server->engine->ops->drop(server->engine, made);
    request->item.prefix = NULL;
}

static void keep_prefix(td_server_model *server, td_server_request *request)
{
    td_engine_item *item = &request->item;
    pthread_mutex_t *lock = &server->device->lock;
    uint32_t number = request->peer->number; // its own while it runs
    td_engine_prefix *ended;
    if (!item->prefix || request->prefix) return;
    do {
        pthread_mutex_lock(lock);
        ended = td_server_core_evict(server->core, now(), item->prefix_bytes);
        pthread_mutex_unlock(lock);
        if (ended) server->engine->ops->drop(server->engine, ended);
    } while (ended);
    pthread_mutex_lock(lock);
    ended = td_server_core_keep_prefix(server->core, number, now(),
                                       item->prefix, item->prefix_bytes);
    pthread_mutex_unlock(lock);
    if (ended) server->engine->ops->drop(server->engine, ended);
}

// Each member's part of the device's time, of one that failed too: a client
// whose observations fail pays for them.
static int64_t part_ns(const td_server_run *run)
{
    return (run->prefix_ns + run->batch.service_ns) / run->members;
}

// The peer stays while its request runs, so it is put before it is done. The
// kernel may let the thread that sends it wait for this CPU until all is
// entered, 10 us, unless this one steps aside. That can take milliseconds on a
// busy machine, so not while others wait for the device.
static void answer(td_server_run *run, td_server_request *request)
{
    td_server_model *server = run->server;
    td_server_peer *peer = request->peer;
    int64_t service_ns = run->prefix_ns + run->batch.service_ns;
    const td_server_timing timing = {
        .queue_ns = request->started_ns - request->arrived_ns,
        .service_ns = service_ns,
    };
    td_wire_action action;
    pthread_mutex_lock(&server->device->lock);
    request->chunk_id = ++server->chunk_id;
    td_server_answer(server->id, &request->item, server->spec->action_count,
                     &timing, request->chunk_id, &action);
    td_server_core_add_superseded(server->core, peer->number, &action);
    bool last = run->members == 1 && td_server_core_depth(server->core) == 0;
    pthread_mutex_unlock(&server->device->lock);
    td_server_request_put(peer, run->encoder, &action);
    if (last) (void)sched_yield();
    keep_prefix(server, request);

    int64_t now_ns = now(), device_ns = part_ns(run);
    pthread_mutex_lock(&server->device->lock);
    td_server_measure_answer_locked(request, now_ns, service_ns, device_ns);
    td_server_request_keep_locked(server, request);
    (void)td_server_core_done(server->core, peer->number, now_ns,
                              TD_SERVER_ANSWERED, device_ns);
    pthread_mutex_unlock(&server->device->lock);
}

static void count_retry(const td_server_request *request)
{
    td_server_stats_count(request->peer->server->stats,
                          TD_SERVER_COUNT_DISPATCH_RETRIES,
                          request->peer->number, 1);
}

// The engine has said no, of a batch of one or of this member alone.
static void fail_locked(const td_server_run *run, td_server_request *request)
{
    td_server_model *server = run->server;
    const td_server_peer *peer = request->peer;
    td_err status = request->item.status;
    int64_t now_ns = now();
    discard_prefix(server, request);
    td_server_measure_wait_locked(request, now_ns);
    td_server_stats_count(server->stats, TD_SERVER_COUNT_DEVICE_US,
                          peer->number,
                          (uint64_t)(part_ns(run) / TD_NS_PER_US));
    if (run->alone && status != TD_ERR_CLOSED) {
        td_server_core_offended(server->core);
        td_log_text(TD_LOG_WARN,
                    "server: %s: seq %llu made a batch fail, and fails alone: "
                    "%s: %s",
                    peer->id, (unsigned long long)request->obs.ident.seq,
                    td_err_name(status), request->why.text);
    }
    if (status == TD_ERR_DENIED)
        td_server_telemetry_event(
            server, TD_SERVER_EVENT_QUARANTINED, peer->id, "seq %llu: %s",
            (unsigned long long)request->obs.ident.seq, request->why.text);
    if (td_server_core_done(server->core, peer->number, now_ns,
                            TD_SERVER_FAILED,
                            part_ns(run)) == TD_SERVER_WAITING) {
        count_retry(request);
        return;
    }
    td_server_stats_error(server->stats, peer->number, status);
    td_server_request_told_locked(server, request, status, NULL);
}

static uint32_t count_good(const td_engine_batch *batch)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        good += batch->items[i]->status == TD_OK;
    return good;
}

// Ends those that have failed, and takes them out of the batch.
static void fail_some(td_server_run *run)
{
    td_engine_batch *batch = &run->batch;
    uint32_t good = 0;
    if (count_good(batch) == batch->count) return;
    pthread_mutex_lock(&run->server->device->lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->items[i]->status == TD_OK)
            batch->items[good++] = batch->items[i];
        else
            fail_locked(run, request_of(batch->items[i]));
    }
    batch->count = good;
    pthread_mutex_unlock(&run->server->device->lock);
}

// Not where it named the offenders itself, nor where it is not there.
static bool failed_together(const td_server_run *run)
{
    return run->batch.count > 1 && count_good(&run->batch) == 0 &&
           td_engine_health_of(run->server->engine) == TD_ENGINE_READY;
}

static void run_alone_locked(td_server_run *run, td_server_request *request)
{
    td_server_model *server = run->server;
    discard_prefix(server, request);
    count_retry(request);
    td_server_request_line_up(&server->device->alone, request);
    run->moved++;
}

// A prefix that the engine has lost: its observation runs again, whole. One
// that only asked for the answer once more has none, and fails.
static void rerun_lost(td_server_run *run)
{
    td_engine_batch *batch = &run->batch;
    uint32_t left = 0;
    if (run->part != TD_ENGINE_DECODE || count_good(batch) == batch->count)
        return;
    pthread_mutex_lock(&run->server->device->lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        td_server_request *request = request_of(batch->items[i]);
        bool lost = request->item.status == TD_ERR_NOTFOUND;
        request->whole = lost && !request->prefix;
        if (lost)
            td_server_core_lost_prefix(run->server->core, request->peer->number,
                                       request->prefix != NULL);
        if (request->whole)
            run_alone_locked(run, request);
        else
            batch->items[left++] = batch->items[i];
    }
    batch->count = left;
    pthread_mutex_unlock(&run->server->device->lock);
}

static void split(td_server_run *run)
{
    td_server_model *server = run->server;
    td_log_text(TD_LOG_WARN,
                "server: %s: a batch of %u failed: each runs once more alone",
                server->id, run->batch.count);
    pthread_mutex_lock(&server->device->lock);
    for (uint32_t i = 0; i < run->batch.count; i++) {
        td_server_core_rerun(server->core);
        run_alone_locked(run, request_of(run->batch.items[i]));
    }
    pthread_mutex_unlock(&server->device->lock);
}

// What the model took for the batch; 0: it failed, or had only half to do.
static int64_t whole_ns(const td_server_run *run, bool was_split)
{
    bool half = run->part == TD_ENGINE_DECODE && run->prefix_ns == 0;
    if (was_split || half || run->batch.count == 0) return 0;
    return run->prefix_ns + run->batch.service_ns;
}

// Gives the run back and forms what follows. When nothing of the server is left
// to run it may be freed as soon as the lock is let go, so nothing of it may be
// touched after that.
static td_server_run *end(td_server_run *run, bool was_split)
{
    td_server_model *server = run->server;
    td_server_device *device = server->device;
    pthread_mutex_lock(&device->lock);
    int64_t now_ns = now();
    td_server_telemetry_count(server, TD_SERVER_COUNT_BATCHES);
    td_server_measure_batch_locked(run, now_ns);
    td_server_dispatch_end(device->dispatch, now_ns, server->model, run->number,
                           run->members, whole_ns(run, was_split));
    server->busy -= run->members - run->moved;
    run->next = server->free_runs;
    server->free_runs = run;
    td_server_health_give_up_locked(server);
    if (server->awaited || server->stopping) td_event_signal(&server->wake);
    server->awaited = false;
    td_server_run *next = td_server_run_form_locked(device);
    pthread_mutex_unlock(&device->lock);
    return next;
}

static td_err submit(td_server_run *run);

// Engine's thread: the first half is done, the second follows.
static td_err go_on(td_server_run *run)
{
    run->prefix_ns = run->batch.service_ns;
    run->batch.service_ns = 0;
    run->part = TD_ENGINE_DECODE;
    return submit(run);
}

// The engine did not take the batch: nothing of it ran.
static td_server_run *refused(td_server_run *run, td_err err)
{
    td_log_text(TD_LOG_ERROR, "server: engine %s refused a batch of %u: %s",
                run->server->engine->ops->name, run->batch.count,
                td_err_text(err));
    for (uint32_t i = 0; i < run->batch.count; i++)
        run->batch.items[i]->status = err;
    fail_some(run);
    return end(run, false);
}

static void answer_all(td_server_run *run)
{
    for (uint32_t i = 0; i < run->batch.count; i++)
        answer(run, request_of(run->batch.items[i]));
}

static void count_halves(const td_server_run *run)
{
    static const td_server_counter_id counters[] = {
        [TD_ENGINE_PREFIX] = TD_SERVER_COUNT_PREFIXES_MADE,
        [TD_ENGINE_DECODE] = TD_SERVER_COUNT_CHUNKS_DECODED,
    };
    if (run->part == TD_ENGINE_WHOLE) return;
    td_server_stats_count(run->server->stats, counters[run->part],
                          TD_SERVER_NOBODY, run->batch.count);
}

// Engine's thread.
static void on_done(void *user, td_engine_batch *batch)
{
    td_server_run *run = user;
    rerun_lost(run);
    bool splits = failed_together(run);
    if (splits)
        split(run);
    else
        fail_some(run);
    if (!splits) count_halves(run);
    if (!splits && run->part == TD_ENGINE_PREFIX && batch->count > 0) {
        td_err err = go_on(run);
        if (err != TD_OK) td_server_run_start(refused(run, err));
        return;
    }
    if (!splits) answer_all(run);
    td_server_run_start(end(run, splits));
}

static td_err submit(td_server_run *run)
{
    td_engine *engine = run->server->engine;
    const td_engine_ops *ops = engine->ops;
    td_err (*const parts[])(td_engine *, td_engine_batch *, td_engine_done,
                            void *) = {
        [TD_ENGINE_WHOLE] = ops->submit,
        [TD_ENGINE_PREFIX] = ops->prefix,
        [TD_ENGINE_DECODE] = ops->decode,
    };
    return parts[run->part](engine, &run->batch, on_done, run);
}

void td_server_run_start(td_server_run *run)
{
    while (run) {
        td_server_run *next = run->next; // afterwards it is the engine's
        td_err err = submit(run);
        if (err != TD_OK) {
            td_server_run *more = refused(run, err), **last = &more;
            while (*last)
                last = &(*last)->next;
            *last = next;
            next = more;
        }
        run = next;
    }
}

void td_server_run_look(td_server_device *device)
{
    pthread_mutex_lock(&device->lock);
    td_server_run *run = td_server_run_form_locked(device);
    pthread_mutex_unlock(&device->lock);
    td_server_run_start(run);
}
