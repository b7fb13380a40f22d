// SPDX-License-Identifier: Apache-2.0
// From the device to the answer: batches are formed under the device's lock,
// run without it, and answered on the engine's thread.
//
// A batch is formed on the thread of whoever brings the request that completes
// it (intake.c), or ends the batch before it (end() here), or keeps the
// device's time (td_server_run_look, the loop of one of its models). That
// thread hands it to the engine once the lock is released. The engine calls
// on_done() on a thread of its own, which answers each member, gives the run
// back and starts what follows, of whichever model of the device: from one
// batch to the next nobody else is woken.
//
// The device's lock guards the cores of all its models, their clients, requests
// and runs. Nobody holds it while encoding, putting or inside an engine. It is
// held once to form a batch, for a moment for each answer, which is put after
// it, and once when all are put: then the members end, the run is given back
// and what follows is formed. It is the first of the locks: whoever holds it
// takes no other of the server's.
//
// Members that failed leave the batch before it is answered (retry.c): they
// wait in their model's list for the loop, which notifies the robots
// (notify.c), or run once more. Where prefixes are kept a batch runs in two
// halves, prefix and decode.
//
// End: td_server_device_stop() lets no further batch of the model be formed;
// its loop waits until none of its requests runs, and end() wakes it. As soon
// as the last run is given back under the lock the model may be freed.
#include "server/dispatch/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/results.h"
#include "server/client/topics.h"
#include "server/core/answer.h"
#include "server/dispatch/internal.h"

#include <sched.h>
#include <stdlib.h>

static td_err make_run(td_server_runs *runs)
{
    td_server_run *run = calloc(1, sizeof *run);
    if (!run) return TD_ERR_NOMEM;
    run->runs = runs;
    run->next = runs->free;
    runs->free = run;
    return td_wire_encoder_new(&run->encoder);
}

// One for each batch that the engine may have at a time.
static td_err make_all(td_server_runs *runs)
{
    const td_engine_spec *spec = runs->ctx->spec;
    uint32_t most = spec->continuous ? spec->max_batch : spec->most_inflight;
    for (uint32_t i = 0; i < (most > 0 ? most : 1); i++)
        TD_TRY(make_run(runs));
    return TD_OK;
}

td_err td_server_run_new(td_server_context *ctx, td_server_device *device,
                         td_server_pool *pool, td_server_notify *notify,
                         td_server_health *health, td_server_runs **ret_runs)
{
    td_server_runs *runs = calloc(1, sizeof *runs);
    if (!runs) return TD_ERR_NOMEM;
    runs->ctx = ctx;
    runs->device = device;
    runs->pool = pool;
    runs->notify = notify;
    runs->health = health;
    td_err err = make_all(runs);
    if (err != TD_OK) {
        td_server_run_free(runs);
        return err;
    }
    *ret_runs = runs;
    return TD_OK;
}

void td_server_run_free(td_server_runs *runs)
{
    while (runs->free) {
        td_server_run *run = runs->free;
        runs->free = run->next;
        if (run->encoder) td_wire_encoder_free(run->encoder);
        free(run);
    }
    free(runs);
}

bool td_server_run_is_busy_locked(const td_server_runs *runs)
{
    return runs->busy > 0;
}

void td_server_run_await_locked(td_server_runs *runs)
{
    runs->awaited = true;
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

static td_server_run *take_run(td_server_runs *runs, uint32_t number,
                               int64_t now_ns)
{
    td_server_run *run = runs->free;
    runs->free = run->next;
    *run = (td_server_run){
        .runs = runs, .number = number, .encoder = run->encoder};
    run->started_ns = now_ns;
    return run;
}

// All of a batch are of one kind.
static void add(td_server_run *run, td_server_request *request)
{
    prepare(request, run->started_ns);
    run->batch.items[run->batch.count++] = &request->item;
    bool halves = td_server_core_keeps_prefixes(run->runs->ctx->core);
    run->part = halves && !request->whole ? TD_ENGINE_PREFIX : TD_ENGINE_WHOLE;
    if (request->prefix) run->part = TD_ENGINE_DECODE;
}

static void note_depth(td_server_run *run)
{
    run->depth = td_server_core_depth(run->runs->ctx->core) + run->members;
}

static td_server_run *form_alone(td_server_device *device, int64_t now_ns)
{
    td_server_request *request = device->alone.first;
    td_server_runs *runs = request->runs;
    uint32_t number;
    if (!td_server_dispatch_alone(device->dispatch, now_ns, runs->number,
                                  &number))
        return NULL;
    device->alone.first = request->next;
    td_server_run *run = take_run(runs, number, now_ns);
    run->alone = true;
    run->members = 1;
    add(run, request);
    note_depth(run);
    return run;
}

static td_server_run *form(td_server_device *device, int64_t now_ns)
{
    td_server_dispatch_batch batch;
    if (device->alone.first) return form_alone(device, now_ns);
    if (!td_server_dispatch_next(device->dispatch, now_ns, &batch)) return NULL;
    td_server_runs *runs = device->models[batch.model];
    const td_server_context *ctx = runs->ctx;
    if (device->score->ask)
        td_server_score_record(device->score, ctx->stats, now_ns);
    td_server_run *run = take_run(runs, batch.run, now_ns);
    run->members = batch.count;
    for (uint32_t i = 0; i < batch.count; i++) {
        td_server_request *request = batch.picks[i].request.payload;
        td_server_core_started(ctx->core, request, batch.picks[i].ticket);
        add(run, request);
    }
    note_depth(run);
    runs->busy += batch.count;
    return run;
}

static td_server_runs *runs_of(const td_server_device *device,
                               const td_server_request *request)
{
    return device->models[td_server_core_number(request->client->core)];
}

void td_server_run_overflowed_locked(td_server_device *device,
                                     td_server_request *request)
{
    static const char full[] = "the queue was full (scheduling.queue), and a "
                               "newer one came";
    td_server_runs *runs = runs_of(device, request);
    td_server_stats_count(runs->ctx->stats, TD_SERVER_COUNT_QUEUE_FULL_DROPS,
                          request->client->number, 1);
    td_server_notify_add_locked(runs->notify, request, TD_ERR_FULL, full);
}

static void drop_expired(td_server_device *device, int64_t now_ns)
{
    static const char why[] = "it waited for longer than scheduling.queue "
                              "lets it (ttl_ms)";
    td_sched *sched = td_server_dispatch_sched(device->dispatch);
    td_sched_ended ended;
    while (td_sched_drop(sched, now_ns, &ended)) {
        td_server_request *request = ended.request.payload;
        td_server_runs *runs = runs_of(device, request);
        td_server_core_expired(request);
        td_server_stats_count(runs->ctx->stats,
                              TD_SERVER_COUNT_REQUESTS_EXPIRED,
                              TD_SERVER_NOBODY, 1);
        td_server_notify_add_locked(runs->notify, request, TD_ERR_TIMEOUT, why);
    }
}

// What waits for an engine that is on its way back is not given to it.
static void look_at_engines(td_server_device *device)
{
    for (uint32_t i = 0; i < TD_SCHED_MAX_MODELS; i++) {
        const td_server_runs *runs = device->models[i];
        if (!runs || runs->stopping) continue;
        bool ready = td_engine_health_of(runs->ctx->engine) == TD_ENGINE_READY;
        td_server_dispatch_open(device->dispatch, i, ready);
    }
}

td_server_run *td_server_run_form_locked(td_server_device *device)
{
    td_server_run *first = NULL, **last = &first;
    look_at_engines(device);
    drop_expired(device, td_clock_monotonic_ns());
    while ((*last = form(device, td_clock_monotonic_ns())))
        last = &(*last)->next;
    int64_t wake_ns = td_server_dispatch_wake_ns(device->dispatch);
    if (wake_ns < device->planned_ns && device->keeper)
        td_event_signal(device->keeper->ctx->wake);
    return first;
}

static void on_done(void *user, td_engine_batch *batch);

static td_err submit(td_server_run *run)
{
    td_engine *engine = run->runs->ctx->engine;
    const td_engine_ops *ops = engine->ops;
    td_err (*const parts[])(td_engine *, td_engine_batch *, td_engine_done,
                            void *) = {
        [TD_ENGINE_WHOLE] = ops->submit,
        [TD_ENGINE_PREFIX] = ops->prefix,
        [TD_ENGINE_DECODE] = ops->decode,
    };
    return parts[run->part](engine, &run->batch, on_done, run);
}

static td_server_run *refused(td_server_run *run, td_err err);

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

static void keep_prefix(const td_server_context *ctx,
                        const td_server_request *request)
{
    const td_engine_item *item = &request->item;
    td_engine *engine = ctx->engine;
    td_engine_prefix *ended;
    if (!item->prefix || request->prefix) return;
    do {
        pthread_mutex_lock(ctx->lock);
        ended = td_server_core_evict(ctx->core, td_clock_monotonic_ns(),
                                     item->prefix_bytes);
        pthread_mutex_unlock(ctx->lock);
        if (ended) engine->ops->drop(engine, ended);
    } while (ended);
    pthread_mutex_lock(ctx->lock);
    ended =
        td_server_core_keep_prefix(ctx->core, td_clock_monotonic_ns(), request,
                                   item->prefix, item->prefix_bytes);
    pthread_mutex_unlock(ctx->lock);
    if (ended) engine->ops->drop(engine, ended);
}

// The client stays while its request runs, so it is put before it ends. The
// kernel may let the thread that sends it wait for this CPU until all is
// entered, 10 us, unless this one steps aside. That can take milliseconds on a
// busy machine, so not while others wait for the device.
static void answer(td_server_run *run, td_server_request *request)
{
    td_server_runs *runs = run->runs;
    const td_server_context *ctx = runs->ctx;
    const td_server_timing timing = {
        .queue_ns = request->started_ns - request->arrived_ns,
        .service_ns = run->prefix_ns + run->batch.service_ns,
    };
    td_wire_action action;
    pthread_mutex_lock(ctx->lock);
    request->chunk_id = ++runs->chunk_id;
    td_server_answer(ctx->id, &request->item, ctx->spec->action_count, &timing,
                     request->chunk_id, &action);
    td_server_core_add_superseded(request->client, &action);
    bool last = run->members == 1 && td_server_core_depth(ctx->core) == 0;
    pthread_mutex_unlock(ctx->lock);
    td_server_topics_put(request->client, run->encoder, &action);
    if (last) (void)sched_yield();
    keep_prefix(ctx, request);
    request->answered_ns = td_clock_monotonic_ns();
}

// What became of it, now that nobody waits for it any more: measuring takes
// longer than an answer should.
static void measure_locked(const td_server_run *run,
                           const td_server_request *request, int64_t device_ns)
{
    td_server_stats *stats = run->runs->ctx->stats;
    uint32_t number = request->client->number;
    int64_t now_ns = request->answered_ns;
    int64_t service_ns = run->prefix_ns + run->batch.service_ns;
    td_server_run_measure_wait_locked(run, request, now_ns);
    td_server_stats_record(stats, TD_SERVER_SPREAD_INFERENCE, number, now_ns,
                           service_ns / TD_NS_PER_US);
    td_server_stats_record(stats, TD_SERVER_SPREAD_E2E, number, now_ns,
                           (now_ns - request->arrived_ns) / TD_NS_PER_US);
    td_server_stats_count(stats, TD_SERVER_COUNT_DEVICE_US, number,
                          (uint64_t)(device_ns / TD_NS_PER_US));
}

// The members that were answered have ended.
static void end_members_locked(const td_server_run *run, int64_t now_ns)
{
    td_server_runs *runs = run->runs;
    int64_t device_ns = td_server_run_part_ns(run);
    for (uint32_t i = 0; i < run->batch.count; i++) {
        td_server_request *request = td_server_run_request(run->batch.items[i]);
        measure_locked(run, request, device_ns);
        (void)td_server_core_done(runs->ctx->core, now_ns, request,
                                  TD_SERVER_ANSWERED);
        td_server_pool_keep_locked(runs->pool, request);
    }
}

// What the model took for the batch; 0: it failed, or had only half to do.
static int64_t whole_ns(const td_server_run *run)
{
    bool half = run->part == TD_ENGINE_DECODE && run->prefix_ns == 0;
    if (half || run->batch.count == 0) return 0;
    return run->prefix_ns + run->batch.service_ns;
}

static void measure_batch_locked(const td_server_run *run, int64_t now_ns)
{
    td_server_stats *stats = run->runs->ctx->stats;
    td_server_stats_count(stats, TD_SERVER_COUNT_BATCHES, TD_SERVER_NOBODY, 1);
    td_server_stats_record(stats, TD_SERVER_SPREAD_BATCH, TD_SERVER_NOBODY,
                           now_ns, run->members);
    td_server_stats_record(stats, TD_SERVER_SPREAD_DEPTH, TD_SERVER_NOBODY,
                           now_ns, (int64_t)run->depth);
}

// Ends what is left of the batch, gives the run back and forms what follows.
// When nothing of the model is left to run it may be freed as soon as the lock
// is released, so nothing of it may be touched after that.
static td_server_run *end(td_server_run *run)
{
    td_server_runs *runs = run->runs;
    const td_server_context *ctx = runs->ctx;
    td_server_device *device = runs->device;
    pthread_mutex_lock(&device->lock);
    int64_t now_ns = td_clock_monotonic_ns();
    end_members_locked(run, now_ns);
    measure_batch_locked(run, now_ns);
    td_server_dispatch_end(device->dispatch, now_ns, runs->number, run->number,
                           run->members, whole_ns(run));
    runs->busy -= run->members - run->moved;
    run->next = runs->free;
    runs->free = run;
    td_server_health_give_up_locked(runs->health);
    if (runs->awaited || runs->stopping) td_event_signal(ctx->wake);
    runs->awaited = false;
    td_server_run *next = td_server_run_form_locked(device);
    pthread_mutex_unlock(&device->lock);
    return next;
}

// The engine did not take the batch: nothing of it ran.
static td_server_run *refused(td_server_run *run, td_err err)
{
    td_log_text(TD_LOG_ERROR, "server: engine %s refused a batch of %u: %s",
                run->runs->ctx->engine->ops->name, run->batch.count,
                td_err_text(err));
    for (uint32_t i = 0; i < run->batch.count; i++)
        run->batch.items[i]->status = err;
    td_server_retry_fail(run);
    return end(run);
}

// Engine's thread: the first half is done, the second follows.
static void start_decode(td_server_run *run)
{
    run->prefix_ns = run->batch.service_ns;
    run->batch.service_ns = 0;
    run->part = TD_ENGINE_DECODE;
    td_err err = submit(run);
    if (err != TD_OK) td_server_run_start(refused(run, err));
}

static void count_halves(const td_server_run *run)
{
    static const td_server_counter_id counters[] = {
        [TD_ENGINE_PREFIX] = TD_SERVER_COUNT_PREFIXES_MADE,
        [TD_ENGINE_DECODE] = TD_SERVER_COUNT_CHUNKS_DECODED,
    };
    if (run->part == TD_ENGINE_WHOLE || run->batch.count == 0) return;
    td_server_stats_count(run->runs->ctx->stats, counters[run->part],
                          TD_SERVER_NOBODY, run->batch.count);
}

// Engine's thread.
static void on_done(void *user, td_engine_batch *batch)
{
    td_server_run *run = user;
    if (td_server_run_count_good(run) < batch->count) td_server_retry(run);
    count_halves(run);
    if (run->part == TD_ENGINE_PREFIX && batch->count > 0) {
        start_decode(run);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++)
        answer(run, td_server_run_request(batch->items[i]));
    td_server_run_start(end(run));
}
