// SPDX-License-Identifier: Apache-2.0
#include "server/report/admin.h"

#include "base/rand.h"
#include "server/model_fixture.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_BYTES = 1 << 18, STEPS = 400 };

static const td_server_about about[] = {
    {"gpu-1", "act", "v1", "pick", "cpu"},
    {"gpu-2", "pi0", "v2", "fold", "cuda:0"},
};

// The fixture's server, seen.
struct seen {
    world *w;
    td_server_events *events;
    td_server_admin *admin;
    char reply[REPLY_BYTES];
};

static struct seen *seen_open(void **state, size_t models)
{
    struct seen *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->w = *state;
    assert_int_equal(td_server_events_new(&s->events), TD_OK);
    s->w->config.events = s->events;
    const td_server_admin_config config = {
        .models = about,
        .model_count = models,
        .events = s->events,
        .stall_ns = 3 * TD_NS_PER_S,
    };
    td_errinfo info = {""};
    if (td_server_admin_open(&config, &s->admin, &info) != TD_OK)
        fail_msg("%s", info.text);
    return s;
}

// The server goes before what it tells its events to.
static void seen_close(struct seen *s)
{
    if (s->admin) td_server_admin_close(s->admin);
    if (s->w->server) world_close(s->w);
    td_server_events_free(s->events);
    free(s);
}

// The status; what came after the header is in `reply`.
static int get(struct seen *s, const char *path)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(td_server_admin_port(s->admin))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    char request[256];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)size, MSG_NOSIGNAL), size);
    size_t came = 0;
    for (ssize_t n;
         (n = recv(fd, s->reply + came, REPLY_BYTES - 1 - came, 0)) > 0;)
        came += (size_t)n;
    close(fd);
    s->reply[came] = '\0';
    const char *body = strstr(s->reply, "\r\n\r\n");
    assert_non_null(body);
    int status = (int)strtol(s->reply + strlen("HTTP/1.1 "), NULL, 10);
    memmove(s->reply, body + 4, strlen(body + 4) + 1);
    return status;
}

static void assert_says(const struct seen *s, const char *what)
{
    if (!strstr(s->reply, what)) fail_msg("no %s in:\n%s", what, s->reply);
}

static void a_model_warms_until_it_is_shown(void **state)
{
    struct seen *s = seen_open(state, 2);
    assert_int_equal(get(s, "/readyz"), 503);
    assert_says(s, "{\"ready\":false,\"models\":[{\"server\":\"gpu-1\","
                   "\"model\":\"act\",\"state\":\"warming\"},");
    assert_int_equal(get(s, "/healthz"), 200);
    world_open(s->w);
    td_server_admin_show(s->admin, 0, s->w->server);
    assert_int_equal(get(s, "/readyz"), 503); // the other is not
    assert_says(s, "\"model\":\"act\",\"state\":\"ready\"}");
    assert_says(s, "\"model\":\"pi0\",\"state\":\"warming\"}");
    td_server_admin_show(s->admin, 0, NULL);
    assert_int_equal(get(s, "/readyz"), 503);
    assert_says(s, "\"model\":\"act\",\"state\":\"draining\"}");
    seen_close(s);
}

static struct seen *seen_with_server(void **state)
{
    struct seen *s = seen_open(state, 1);
    world_open(s->w);
    td_server_admin_show(s->admin, 0, s->w->server);
    return s;
}

static void all_that_are_ready_are_ready(void **state)
{
    struct seen *s = seen_with_server(state);
    assert_int_equal(get(s, "/readyz"), 200);
    assert_string_equal(s->reply,
                        "{\"ready\":true,\"models\":[{\"server\":\"gpu-1\","
                        "\"model\":\"act\",\"state\":\"ready\"}]}\n");
    seen_close(s);
}

static void what_ran_is_seen(void **state)
{
    struct seen *s = seen_with_server(state);
    client *c = client_open(s->w, 0, "arm-0", 1);
    assert_true(client_attach(c, "gpu-1"));
    for (uint64_t seq = 1; seq <= 5; seq++) {
        client_send_seq(c, seq);
        (void)client_hear(c);
    }
    world_until(s->w, is_idle);
    assert_int_equal(get(s, "/v1/stats?window=10&client=arm-0"), 200);
    assert_says(s, "{\"window_s\":10,");
    assert_says(s, "\"received\":5,");
    assert_says(s, "\"answered\":5,");
    assert_says(s, "\"batch_size\":{\"count\":5,\"mean\":1,");
    assert_says(s, "\"e2e_latency_ms\":{\"count\":5,");
    assert_says(s, "\"clients\":[{\"client\":\"arm-0\",");
    assert_int_equal(get(s, "/metrics"), 200);
    assert_says(s, "tendon_server_inference_latency_seconds_count{server="
                   "\"gpu-1\",model=\"act\",client=\"arm-0\"} 5\n");
    assert_says(s, "tendon_server_active_clients{server=\"gpu-1\","
                   "model=\"act\"} 1\n");
    seen_close(s);
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *path;
        int status;
        const char *says;
    } cases[] = {
        {"/v1/stats?window=0", 400, "window: must be a whole number from 1"},
        {"/v1/stats?wndow=5", 400,
         "wndow: no such parameter; there are: "
         "window model client"},
        {"/v1/stats?client=%", 400, "two hex digits"},
        {"/v1/events?after=9999", 400, "begin again with after=0"},
        {"/v1/events?limit=5000", 400, "limit: must be"},
        {"/v2/stats", 404, "no such path; there are: /metrics /healthz"},
    };
    struct seen *s = seen_with_server(state);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        int status = get(s, cases[i].path);
        if (status != cases[i].status || !strstr(s->reply, cases[i].says))
            fail_msg("%s: %d %s", cases[i].path, status, s->reply);
    }
    seen_close(s);
}

static void events_are_read_from_a_cursor(void **state)
{
    struct seen *s = seen_with_server(state);
    client *c = client_open(s->w, 0, "arm-0", 1);
    assert_true(client_attach(c, "gpu-1"));
    assert_true(client_leave(c, "gpu-1"));
    world_until(s->w, is_without_clients);
    do // the event comes with the client's last declaration
        assert_int_equal(get(s, "/v1/events"), 200);
    while (!strstr(s->reply, "\"left\""));
    assert_says(s, "\"event\":\"state\",\"server\":\"gpu-1\"");
    const char *attached = strstr(s->reply, "\"event\":\"attached\",\"server\":"
                                            "\"gpu-1\",\"client\":\"arm-0\"");
    assert_non_null(attached);
    assert_true(attached < strstr(s->reply, "\"left\""));
    char path[64];
    uint64_t newest = td_server_events_newest(s->events);
    (void)snprintf(path, sizeof path, "/v1/events?after=%llu",
                   (unsigned long long)newest - 1);
    assert_int_equal(get(s, path), 200);
    assert_int_equal(strncmp(s->reply, "{\"number\":", 10), 0);
    assert_null(strstr(s->reply, "attached"));
    assert_int_equal(get(s, "/v1/events?limit=1"), 200);
    assert_null(strstr(s->reply, "\"number\":2"));
    seen_close(s);
}

static void what_was_lost_of_events_is_said(void **state)
{
    struct seen *s = seen_open(state, 1);
    for (int i = 0; i < TD_SERVER_EVENTS_KEPT + 5; i++)
        td_server_events_add(s->events, 0, TD_SERVER_EVENT_REFUSED, NULL, "mad",
                             "again");
    assert_int_equal(get(s, "/v1/events?limit=2"), 200);
    assert_says(s, "{\"number\":6,");
    assert_says(s, "\"text\":\"again\",\"lost\":5}\n");
    seen_close(s);
}

// A number of the reply after a name, from `*at` on.
static uint64_t number_after(const char **at, const char *name)
{
    const char *found = strstr(*at, name);
    assert_non_null(found);
    char *end;
    uint64_t number = strtoull(found + strlen(name), &end, 10);
    *at = end;
    return number;
}

static uint64_t assert_adds_up(struct seen *s)
{
    assert_int_equal(get(s, "/v1/stats"), 200);
    const char *at = s->reply;
    uint64_t received = number_after(&at, "\"received\":"), sum = 0;
    for (int i = 0; i < TD_SERVER_OUTCOME_COUNT; i++) {
        char name[64];
        (void)snprintf(name, sizeof name,
                       "\"%s\":", td_server_outcome_name((td_server_outcome)i));
        sum += number_after(&at, name);
    }
    assert_int_equal(sum, received);
    return received;
}

// Good ones, old ones and nonsense, faster than the engine runs.
static void send_something(client *c, td_rand *rand, uint64_t *seq)
{
    switch (td_rand_u64(rand) % 8) {
    case 0:
        client_send_bytes(c->obs, "nonsense", 8);
        break;
    case 1:
        client_send_seq(c, *seq / 2 + 1);
        break;
    default:
        client_send_seq(c, ++*seq);
    }
}

static bool has_all(world *w)
{
    return is_idle(w) && w->report.counts.received == STEPS;
}

static void outcomes_add_up_whenever_they_are_read(void **state)
{
    struct seen *s = seen_open(state, 1);
    s->w->settings.latency.kind = TD_ENGINE_LATENCY_FIXED;
    s->w->settings.latency.ms = 1;
    world_open(s->w);
    td_server_admin_show(s->admin, 0, s->w->server);
    td_rand rand;
    td_rand_init(&rand, 5);
    client *clients[3];
    uint64_t seqs[3] = {0};
    static const char *const ids[] = {"arm-0", "arm-1", "arm-2"};
    for (size_t i = 0; i < TD_COUNT_OF(clients); i++) {
        clients[i] = client_open(s->w, i, ids[i], 1);
        assert_true(client_attach(clients[i], "gpu-1"));
    }
    for (int step = 0; step < STEPS; step++) {
        size_t who = td_rand_u64(&rand) % TD_COUNT_OF(clients);
        send_something(clients[who], &rand, &seqs[who]);
        if (step % 8 == 0) assert_adds_up(s);
    }
    world_until(s->w, has_all);
    assert_int_equal(assert_adds_up(s), STEPS);
    seen_close(s);
}

// Holds the loop until the test has seen it stand still.
struct hold {
    td_event go;
    _Atomic bool held;
};

static void hold_loop(void *user, const td_server_events_item *event)
{
    struct hold *hold = user;
    if (event->kind != TD_SERVER_EVENT_ATTACHED) return;
    atomic_store(&hold->held, true);
    (void)td_event_wait_until(&hold->go, INT64_MAX);
}

static void a_loop_that_stands_still_is_ill(void **state)
{
    struct seen *s = seen_open(state, 1);
    struct hold hold = {.held = false};
    td_event_init(&hold.go);
    assert_int_equal(td_server_events_subscribe(s->events, hold_loop, &hold),
                     TD_OK);
    world_open(s->w);
    td_server_admin_show(s->admin, 0, s->w->server);
    assert_int_equal(get(s, "/healthz"), 200);
    assert_string_equal(s->reply, "OK\n");
    assert_true(client_attach(client_open(s->w, 0, "arm-0", 1), "gpu-1"));
    while (get(s, "/healthz") != 503)
        ;
    assert_true(atomic_load(&hold.held));
    assert_says(s, "gpu-1: its loop has stood still for ");
    td_event_signal(&hold.go);
    while (get(s, "/healthz") != 200)
        ;
    seen_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_model_warms_until_it_is_shown),
        WORLD_TEST(all_that_are_ready_are_ready),
        WORLD_TEST(what_ran_is_seen),
        WORLD_TEST(what_is_wrong_is_said),
        WORLD_TEST(events_are_read_from_a_cursor),
        WORLD_TEST(what_was_lost_of_events_is_said),
        WORLD_TEST(outcomes_add_up_whenever_they_are_read),
        WORLD_TEST(a_loop_that_stands_still_is_ill),
    };
    return cmocka_run_group_tests_name("server/admin", tests, NULL, NULL);
}
