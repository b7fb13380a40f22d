// SPDX-License-Identifier: Apache-2.0
#include "bench/crowd.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/queue.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENT 64 // times of asking that a client remembers
#define ATTACH_NS (10 * TD_NS_PER_S)
#define REST_NS (300 * TD_NS_PER_MS)
#define LOOK_NS (200 * TD_NS_PER_MS)

static const td_wire_route route = {"bench", "bench", "still", "v1", "bench"};
static const td_net_qos obs_qos = {.priority = TD_NET_DATA};
static const char frame[480 * 640 * 3];

static uint64_t boots; // so far: each crowd is a newer start of its clients

typedef struct client {
    char id[16];
    td_net_decl *token;
    td_net_pub *obs;
    td_bench_crowd_plan plan;
    int64_t due_ns;   // its next ask, at the earliest
    int64_t asked_ns; // last
    // Guarded by the crowd's lock.
    uint64_t seq;          // asked last
    uint64_t ended;        // an answer to it says that of all before, too
    int64_t sent_ns[SENT]; // by seq
} client;

struct td_bench_crowd {
    td_bench_setup setup;
    uint64_t boot;
    td_net *net;
    td_net_decl *actions;
    td_wire_encoder *encoder;
    td_wire_obs obs;
    client *clients;
    uint32_t count;
    td_queue *heard; // numbers of clients
    td_event wake;
    td_event asked; // to attach, and answered

    pthread_mutex_t lock; // guards the rest
    td_wire_decoder *decoder;
    td_wire_action action;
    td_wire_status status;
    bool attached;
    char refusal[128];
    td_bench_crowd_seen seen;
};

// ".../c12/action" is of number 12.
static uint32_t number_of(const char *key)
{
    const char *slash = strrchr(key, '/');
    while (slash && slash > key && slash[-1] != '/')
        slash--;
    return slash && *slash == 'c' ? (uint32_t)strtoul(slash + 1, NULL, 10)
                                  : UINT32_MAX;
}

static void count_answer_locked(td_bench_crowd *crowd, uint32_t number,
                                int64_t now_ns)
{
    client *c = &crowd->clients[number];
    td_bench_crowd_seen *seen = &crowd->seen;
    uint64_t seq = crowd->action.ident.seq;
    if (seq <= c->ended || seq > c->seq) return;
    c->ended = seq;
    if (crowd->action.error_code.size > 0) {
        seen->errors++;
        return;
    }
    seen->answers[number]++;
    if (!c->plan.counted) return;
    seen->total++;
    td_hist_record(&seen->round_trip_ns, now_ns - c->sent_ns[seq % SENT]);
}

// Transport's thread.
static void on_action(void *user, const td_net_sample *sample)
{
    td_bench_crowd *crowd = user;
    int64_t now_ns = td_clock_monotonic_ns();
    uint32_t number = number_of(sample->key);
    if (number >= crowd->count || !sample->whole) return;
    pthread_mutex_lock(&crowd->lock);
    bool read = td_wire_action_decode(crowd->decoder, sample->head.data,
                                      sample->head.size, &crowd->action,
                                      NULL) == TD_OK &&
                crowd->action.ident.boot == crowd->boot;
    if (read) count_answer_locked(crowd, number, now_ns);
    pthread_mutex_unlock(&crowd->lock);
    if (read && td_queue_push(crowd->heard, &number) == TD_OK)
        td_event_signal(&crowd->wake);
}

// Transport's thread.
static void on_status(void *user, const td_net_sample *sample)
{
    td_bench_crowd *crowd = user;
    td_wire_status *status = &crowd->status;
    if (!sample->whole) return;
    pthread_mutex_lock(&crowd->lock);
    if (td_wire_status_decode(crowd->decoder, sample->head.data,
                              sample->head.size, status, NULL) == TD_OK) {
        crowd->attached = status->has_attach && status->attached;
        (void)snprintf(crowd->refusal, sizeof crowd->refusal, "%.*s",
                       (int)status->attach_reason.size,
                       status->attach_reason.data);
    }
    pthread_mutex_unlock(&crowd->lock);
}

static void on_status_done(void *user)
{
    td_bench_crowd *crowd = user;
    td_event_signal(&crowd->asked);
}

static td_err ask_to_attach(td_bench_crowd *crowd, const client *c,
                            bool *ret_attached, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    char bytes[512];
    const td_wire_attach attach = {.client = td_wire_text_of(c->id),
                                   .server = td_wire_text_of("bench"),
                                   .boot = crowd->boot};
    TD_TRY(td_wire_key(&route, NULL, "status", key, info));
    TD_TRY(td_wire_attach_encode(crowd->encoder, &attach, info));
    td_slice payload = {bytes, td_wire_encoder_size(crowd->encoder)};
    if (payload.size > sizeof bytes) return TD_ERR_INTERNAL;
    td_wire_encoder_join(crowd->encoder, bytes);
    pthread_mutex_lock(&crowd->lock);
    crowd->attached = false;
    pthread_mutex_unlock(&crowd->lock);
    TD_TRY(td_net_query(crowd->net, key, payload, TD_NS_PER_S, on_status,
                        on_status_done, crowd, info));
    (void)td_event_wait_until(&crowd->asked, INT64_MAX);
    pthread_mutex_lock(&crowd->lock);
    *ret_attached = crowd->attached;
    pthread_mutex_unlock(&crowd->lock);
    return td_bench_sleep(0);
}

// The server may still be starting, or letting go of who had this name before.
static td_err attach(td_bench_crowd *crowd, const client *c, td_errinfo *info)
{
    int64_t until_ns = td_clock_monotonic_ns() + ATTACH_NS;
    bool attached = false;
    while (td_clock_monotonic_ns() < until_ns) {
        TD_TRY(ask_to_attach(crowd, c, &attached, info));
        if (attached) return TD_OK;
        TD_TRY(td_bench_sleep(LOOK_NS / 10));
    }
    return td_fail(info, TD_ERR_TIMEOUT, "%s was not taken: %s", c->id,
                   crowd->refusal);
}

static td_err client_open(td_bench_crowd *crowd, uint32_t number,
                          td_errinfo *info)
{
    client *c = &crowd->clients[number];
    char key[TD_WIRE_MAX_KEY];
    char token[TD_WIRE_MAX_KEY + 24];
    (void)snprintf(c->id, sizeof c->id, "c%u", number);
    TD_TRY(td_wire_key(&route, c->id, "alive", key, info));
    (void)snprintf(token, sizeof token, "%s/%llu", key,
                   (unsigned long long)crowd->boot);
    TD_TRY(td_net_token(crowd->net, token, &c->token, info));
    TD_TRY(td_wire_key(&route, c->id, "obs", key, info));
    TD_TRY(td_net_publish(crowd->net, key, &obs_qos, &c->obs, info));
    return attach(crowd, c, info);
}

// The server subscribes to each before it answers, but the answer may be first.
static td_err wait_until_heard(const client *c)
{
    bool matched = false;
    for (;;) {
        TD_TRY(td_net_matched(c->obs, &matched));
        if (matched) return TD_OK;
        TD_TRY(td_bench_sleep(TD_NS_PER_MS));
    }
}

static void fill_obs(td_bench_crowd *crowd)
{
    static const float state[TD_BENCH_JOINTS];
    static const char *const names[] = {"cam0", "cam1"};
    const td_bench_setup *setup = &crowd->setup;
    crowd->obs = (td_wire_obs){
        .ident = {.boot = crowd->boot},
        .state = {.rank = 1,
                  .shape = {TD_BENCH_JOINTS},
                  .data = state,
                  .size = sizeof state},
        .priority = 1,
        .image_count = setup->cameras,
    };
    for (uint32_t i = 0; i < setup->cameras && i < TD_COUNT_OF(names); i++)
        crowd->obs.images[i] = (td_wire_image){
            .name = td_wire_text_of(names[i]),
            .codec = TD_WIRE_RAW,
            .shape = {setup->height, setup->width, 3},
            .data = frame,
            .size = (size_t)setup->height * setup->width * 3,
        };
}

static td_err crowd_make(td_bench_crowd *crowd)
{
    td_event_init(&crowd->wake);
    td_event_init(&crowd->asked);
    crowd->clients = calloc(crowd->count, sizeof *crowd->clients);
    if (!crowd->clients) return TD_ERR_NOMEM;
    TD_TRY(
        td_queue_new(4 * TD_BENCH_CROWD_MAX, sizeof(uint32_t), &crowd->heard));
    TD_TRY(td_wire_encoder_new(&crowd->encoder));
    TD_TRY(td_wire_decoder_new(&crowd->decoder));
    fill_obs(crowd);
    td_hist_init(&crowd->seen.round_trip_ns);
    return TD_OK;
}

td_err td_bench_crowd_open(const td_bench_setup *setup,
                           const td_bench_server *server, uint32_t count,
                           td_bench_crowd **ret_crowd, td_errinfo *info)
{
    char key[TD_WIRE_MAX_KEY];
    TD_AUTO(td_bench_crowd) *crowd = calloc(1, sizeof *crowd);
    if (!crowd || count > TD_BENCH_CROWD_MAX) return TD_ERR_NOMEM;
    pthread_mutex_init(&crowd->lock, NULL);
    crowd->setup = *setup;
    crowd->count = count;
    crowd->boot = ++boots;
    TD_TRY(crowd_make(crowd));
    TD_TRY(td_bench_net_open(setup, server, &crowd->net, info));
    TD_TRY(td_wire_key(&route, "*", "action", key, info));
    TD_TRY(td_net_subscribe(crowd->net, key, on_action, crowd, &crowd->actions,
                            info));
    for (uint32_t i = 0; i < count; i++)
        TD_TRY(client_open(crowd, i, info));
    for (uint32_t i = 0; i < count; i++)
        TD_TRY(wait_until_heard(&crowd->clients[i]));
    *ret_crowd = TD_TAKE(crowd);
    return TD_OK;
}

void td_bench_crowd_close(td_bench_crowd *crowd)
{
    for (uint32_t i = 0; crowd->clients && i < crowd->count; i++) {
        if (crowd->clients[i].obs) td_net_unpublish(crowd->clients[i].obs);
        if (crowd->clients[i].token)
            (void)td_net_undeclare(crowd->clients[i].token);
    }
    if (crowd->actions) (void)td_net_undeclare(crowd->actions);
    if (crowd->net) td_net_close(crowd->net);
    if (crowd->heard) td_queue_free(crowd->heard);
    if (crowd->encoder) td_wire_encoder_free(crowd->encoder);
    if (crowd->decoder) td_wire_decoder_free(crowd->decoder);
    pthread_mutex_destroy(&crowd->lock);
    free(crowd->clients);
    free(crowd);
}

void td_bench_crowd_set(td_bench_crowd *crowd, uint32_t number,
                        td_bench_crowd_plan plan)
{
    client *c = &crowd->clients[number];
    pthread_mutex_lock(&crowd->lock);
    c->plan = plan;
    pthread_mutex_unlock(&crowd->lock);
    // Not all at once.
    c->due_ns =
        td_clock_monotonic_ns() + plan.period_ns * number / crowd->count;
}

static void on_release(void *user)
{
    (void)user; // the frames never change
}

static td_err put(td_bench_crowd *crowd, client *c)
{
    size_t count;
    const td_slice *parts = td_wire_encoder_parts(crowd->encoder, &count);
    if (c->plan.corrupt) {
        const td_slice half = {parts[0].data, parts[0].size / 2};
        return td_net_put(c->obs, &half, 1, NULL, NULL);
    }
    td_net_loan *loan = NULL;
    size_t size = td_wire_encoder_size(crowd->encoder);
    if (td_net_lend(c->obs, size, &loan) != TD_OK)
        return td_net_put(c->obs, parts, count, on_release, NULL);
    td_wire_encoder_join(crowd->encoder, loan->bytes);
    return td_net_loan_put(loan);
}

static td_err ask(td_bench_crowd *crowd, client *c, td_errinfo *info)
{
    c->asked_ns = td_clock_monotonic_ns();
    pthread_mutex_lock(&crowd->lock);
    crowd->obs.ident.seq = ++c->seq;
    c->sent_ns[c->seq % SENT] = c->asked_ns;
    pthread_mutex_unlock(&crowd->lock);
    crowd->obs.client = td_wire_text_of(c->id);
    TD_TRY(td_wire_obs_encode(crowd->encoder, &crowd->obs, info));
    return put(crowd, c);
}

static uint64_t under_way(td_bench_crowd *crowd, const client *c)
{
    pthread_mutex_lock(&crowd->lock);
    uint64_t count = c->seq - c->ended;
    pthread_mutex_unlock(&crowd->lock);
    return count;
}

// As many as it is to have under way, or what its period says.
static td_err keep_up(td_bench_crowd *crowd, client *c, int64_t now_ns,
                      td_errinfo *info)
{
    if (c->due_ns > now_ns) return TD_OK;
    if (c->plan.in_flight > under_way(crowd, c)) {
        c->due_ns = now_ns + c->plan.apart_ns;
        TD_TRY(ask(crowd, c, info));
    }
    if (c->plan.period_ns == 0) return TD_OK;
    c->due_ns += c->plan.period_ns;
    if (c->due_ns < now_ns) c->due_ns = now_ns; // does not make up for it
    return ask(crowd, c, info);
}

// What the transport dropped would else be waited for without end.
static void give_up(td_bench_crowd *crowd, int64_t now_ns)
{
    pthread_mutex_lock(&crowd->lock);
    for (uint32_t i = 0; i < crowd->count; i++) {
        client *c = &crowd->clients[i];
        if (c->ended == c->seq || now_ns - c->asked_ns < c->plan.patience_ns)
            continue;
        crowd->seen.lost += c->plan.in_flight > 0;
        c->ended = c->seq;
    }
    pthread_mutex_unlock(&crowd->lock);
}

// All of them; returns when the next is due.
static td_err look_at_all(td_bench_crowd *crowd, int64_t *ret_next_ns,
                          td_errinfo *info)
{
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t next_ns = now_ns + LOOK_NS;
    give_up(crowd, now_ns);
    for (uint32_t i = 0; i < crowd->count; i++) {
        client *c = &crowd->clients[i];
        TD_TRY(keep_up(crowd, c, now_ns, info));
        if (c->due_ns > now_ns && c->due_ns < next_ns) next_ns = c->due_ns;
    }
    *ret_next_ns = next_ns;
    return td_bench_sleep(0);
}

// Whoever was answered asks again: at once, or after its pause while another of
// its asks is under way.
static td_err answer_heard(td_bench_crowd *crowd, int64_t *next_ns,
                           td_errinfo *info)
{
    uint32_t number;
    int64_t now_ns = td_clock_monotonic_ns();
    while (td_queue_pop(crowd->heard, &number) == TD_OK) {
        client *c = &crowd->clients[number];
        if (c->plan.in_flight == 0) continue;
        c->due_ns = now_ns;
        if (under_way(crowd, c) > 0) c->due_ns += c->plan.pause_ns;
        TD_TRY(keep_up(crowd, c, now_ns, info));
        if (c->due_ns < *next_ns) *next_ns = c->due_ns;
    }
    return TD_OK;
}

static void take_seen(td_bench_crowd *crowd, int64_t ns,
                      td_bench_crowd_seen *ret_seen)
{
    pthread_mutex_lock(&crowd->lock);
    *ret_seen = crowd->seen;
    ret_seen->seconds = (double)ns / (double)TD_NS_PER_S;
    crowd->seen = (td_bench_crowd_seen){0};
    td_hist_init(&crowd->seen.round_trip_ns);
    pthread_mutex_unlock(&crowd->lock);
}

td_err td_bench_crowd_run(td_bench_crowd *crowd, int64_t ns,
                          td_bench_crowd_seen *ret_seen, td_errinfo *info)
{
    int64_t start_ns = td_clock_monotonic_ns();
    int64_t next_ns = start_ns;
    take_seen(crowd, 0, ret_seen);
    while (td_clock_monotonic_ns() < start_ns + ns) {
        if (td_clock_monotonic_ns() >= next_ns)
            TD_TRY(look_at_all(crowd, &next_ns, info));
        int64_t until_ns = start_ns + ns < next_ns ? start_ns + ns : next_ns;
        (void)td_event_wait_until(&crowd->wake, until_ns);
        TD_TRY(answer_heard(crowd, &next_ns, info));
    }
    take_seen(crowd, td_clock_monotonic_ns() - start_ns, ret_seen);
    return TD_OK;
}

td_err td_bench_crowd_rest(td_bench_crowd *crowd)
{
    const td_bench_crowd_plan nothing = {0};
    for (uint32_t i = 0; i < crowd->count; i++)
        td_bench_crowd_set(crowd, i, nothing);
    TD_TRY(td_bench_sleep(REST_NS));
    uint32_t number;
    while (td_queue_pop(crowd->heard, &number) == TD_OK)
        continue;
    give_up(crowd, td_clock_monotonic_ns());
    return TD_OK;
}
