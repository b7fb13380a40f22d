// SPDX-License-Identifier: Apache-2.0
#include "base/http/http.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    FETCHERS = 8,
    FETCHES = 25,
    REPLY_BYTES = 4096,
    LARGE_BYTES = 16 << 20, // more than the sockets hold
};

static const char good[] = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
static const char body[] = "answer 42\n";

static void give_answer(td_http_reply *reply, const char *query, void *user)
{
    (void)query, (void)user;
    fputs("answer 42\n", reply->out);
}

static void give_large(td_http_reply *reply, const char *query, void *user)
{
    (void)query, (void)user;
    for (size_t i = 0; i < LARGE_BYTES / 8; i++)
        fputs("large 1\n", reply->out);
}

static void give_query(td_http_reply *reply, const char *query, void *user)
{
    fprintf(reply->out, "%s %s", (const char *)user, query);
    reply->type = "text/odd";
}

static void give_nothing(td_http_reply *reply, const char *query, void *user)
{
    (void)query, (void)user;
    td_http_refuse(reply, 503, "come back later");
}

static const td_http_route routes[] = {{"/metrics", give_answer},
                                       {"/query", give_query},
                                       {"/nothing", give_nothing}};
static const td_http_route large[] = {{"/metrics", give_large}};

static td_http *open_with(td_http_config config)
{
    static char user[] = "heard";
    config.what = "metrics";
    config.user = user;
    if (!config.routes) {
        config.routes = routes;
        config.route_count = TD_COUNT_OF(routes);
    }
    td_errinfo info = {""};
    td_http *http = NULL;
    if (td_http_open(&config, &http, &info) != TD_OK) fail_msg("%s", info.text);
    return http;
}

static td_http *open_here(void)
{
    return open_with((td_http_config){0});
}

// A socket, or -1.
static int dial(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static int must_dial(const td_http *http)
{
    int fd = dial(td_http_port(http));
    if (fd < 0) {
        fail_msg("nobody listens on %u", td_http_port(http));
        abort();
    }
    return fd;
}

// Reads until the other side closes or resets. Returns the bytes that came,
// and the first of them as text.
static size_t drain(int fd, char ret_reply[REPLY_BYTES])
{
    size_t kept = 0, all = 0;
    char bytes[REPLY_BYTES];
    for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
        size_t room = REPLY_BYTES - 1 - kept;
        size_t keep = (size_t)n < room ? (size_t)n : room;
        memcpy(ret_reply + kept, bytes, keep);
        kept += keep;
        all += (size_t)n;
    }
    ret_reply[kept] = '\0';
    close(fd);
    return all;
}

static void ask(uint16_t port, const char *request, size_t size,
                char ret_reply[REPLY_BYTES])
{
    ret_reply[0] = '\0';
    int fd = dial(port);
    if (fd < 0) return;
    (void)!send(fd, request, size, MSG_NOSIGNAL);
    drain(fd, ret_reply);
}

static bool is_good_reply(const char *reply)
{
    const char *end = strstr(reply, "\r\n\r\n");
    return strncmp(reply, "HTTP/1.1 200 OK\r\n", 17) == 0 && end &&
           strcmp(end + 4, body) == 0;
}

static bool fetch(uint16_t port)
{
    char reply[REPLY_BYTES];
    ask(port, good, strlen(good), reply);
    return is_good_reply(reply);
}

static void an_answer_is_served_as_text(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    char reply[REPLY_BYTES];
    ask(td_http_port(http), good, strlen(good), reply);
    assert_true(is_good_reply(reply));
    assert_non_null(strstr(reply, "\r\nContent-Type: text/plain; "
                                  "charset=utf-8\r\n"));
    char length[64];
    snprintf(length, sizeof length, "\r\nContent-Length: %zu\r\n",
             strlen(body));
    assert_non_null(strstr(reply, length));
}

static const struct {
    const char *name;
    const char *request;
    const char *status;
} requests[] = {
    {"head", "HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n", "200"},
    {"parameters", "GET /metrics?a=b HTTP/1.1\r\nHost: h\r\n\r\n", "200"},
    {"old protocol", "GET /metrics HTTP/1.0\r\n\r\n", "200"},
    {"root", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "404"},
    {"below", "GET /metrics/ HTTP/1.1\r\nHost: h\r\n\r\n", "404"},
    {"above", "GET /metrics/../x HTTP/1.1\r\nHost: h\r\n\r\n", "404"},
    {"post elsewhere", "POST / HTTP/1.1\r\nHost: h\r\n\r\n", "404"},
    {"post",
     "POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd",
     "405"},
    {"endless put",
     "PUT /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: "
     "99999999999\r\n\r\nab",
     "405"},
    {"delete", "DELETE /metrics HTTP/1.1\r\nHost: h\r\n\r\n", "405"},
    {"made up", "MAKEUP /metrics HTTP/1.1\r\nHost: h\r\n\r\n", "405"},
    {"get with a body",
     "GET /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd",
     "413"},
    {"get with chunks",
     "GET /metrics HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
     "chunked\r\n\r\n",
     "413"},
    {"unready", "GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n", "503"},
    {"from the future", "GET /metrics HTTP/9.0\r\nHost: h\r\n\r\n", "505"},
};

static void each_request_has_its_answer(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    for (size_t i = 0; i < TD_COUNT_OF(requests); i++) {
        char reply[REPLY_BYTES];
        const char *request = requests[i].request;
        ask(td_http_port(http), request, strlen(request), reply);
        if (strlen(reply) < 12 ||
            strncmp(reply + 9, requests[i].status, 3) != 0)
            fail_msg("%s: %s", requests[i].name, reply);
        bool is_405 = strcmp(requests[i].status, "405") == 0;
        if (is_405 != (strstr(reply, "\r\nAllow: GET, HEAD\r\n") != NULL))
            fail_msg("%s: %s", requests[i].name, reply);
    }
    assert_true(fetch(td_http_port(http)));
}

// "GET PATH", and what came after the header.
static void get(const td_http *http, const char *path,
                char ret_reply[REPLY_BYTES])
{
    char request[2 * REPLY_BYTES];
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    ask(td_http_port(http), request, (size_t)size, ret_reply);
}

static void a_handler_hears_what_stands_after_the_mark(void **state)
{
    static const struct {
        const char *path, *says;
    } cases[] = {
        {"/query", "\r\n\r\nheard "},
        {"/query?", "\r\n\r\nheard "},
        {"/query?a=b%20c&d=+?e", "\r\n\r\nheard a=b%20c&d=+?e"},
    };
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char reply[REPLY_BYTES];
        get(http, cases[i].path, reply);
        const char *end = strstr(reply, "\r\n\r\n");
        if (!end || strcmp(end, cases[i].says) != 0)
            fail_msg("%s: %s", cases[i].path, reply);
        assert_non_null(strstr(reply, "\r\nContent-Type: text/odd\r\n"));
    }
}

static void parameters_have_a_limit(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    char path[2 * TD_HTTP_MAX_QUERY] = "/query?";
    memset(path + 7, 'a', TD_HTTP_MAX_QUERY);
    char reply[REPLY_BYTES];
    get(http, path, reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 200", 12), 0);
    path[7 + TD_HTTP_MAX_QUERY] = 'a';
    get(http, path, reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 414", 12), 0);
}

static void who_is_lost_is_shown_the_way(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    char reply[REPLY_BYTES];
    get(http, "/", reply);
    assert_non_null(strstr(reply, "there are: /metrics /query /nothing\n"));
}

static void a_handler_may_refuse(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    char reply[REPLY_BYTES];
    get(http, "/nothing", reply);
    assert_int_equal(strncmp(reply, "HTTP/1.1 503", 12), 0);
    assert_non_null(strstr(reply, "\r\n\r\ncome back later\n"));
}

static void nonsense_is_not_answered_with_metrics(void **state)
{
    (void)state;
    static const char start[] = "GET /metrics HTTP/1.1\r\nHost: ";
    static char huge[1 << 20];
    memset(huge, 'x', sizeof huge);
    for (size_t i = 0; start[i] != '\0'; i++)
        huge[i] = start[i];
    static const char zeros[64];
    static const char tls[] =
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n";
    static const struct {
        const char *name, *bytes;
        size_t size;
    } cases[] = {
        {"a header without end", huge, sizeof huge},
        {"a path without end", huge + sizeof start, sizeof huge - sizeof start},
        {"zeros", zeros, sizeof zeros},
        {"TLS", tls, sizeof tls},
        {"words", "hello\r\n\r\n", 9},
    };
    TD_AUTO(td_http) *http =
        open_with((td_http_config){.patience_ns = 200 * TD_NS_PER_MS});
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char reply[REPLY_BYTES];
        ask(td_http_port(http), cases[i].bytes, cases[i].size, reply);
        if (strstr(reply, "answer")) fail_msg("%s: %s", cases[i].name, reply);
        while (!fetch(td_http_port(http)))
            ;
    }
}

struct fetcher {
    uint16_t port;
    int fetched;
};

static void fetch_many(void *user)
{
    struct fetcher *fetcher = user;
    for (int i = 0; i < FETCHES; i++)
        fetcher->fetched += fetch(fetcher->port);
}

static void many_may_fetch_at_once(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    const td_thread_config config = {.name = "fetcher", .cpu = -1};
    struct fetcher fetchers[FETCHERS];
    td_thread *threads[FETCHERS];
    for (size_t i = 0; i < FETCHERS; i++) {
        fetchers[i] = (struct fetcher){.port = td_http_port(http)};
        assert_int_equal(td_thread_start(&config, fetch_many, &fetchers[i],
                                         &threads[i], NULL),
                         TD_OK);
    }
    for (size_t i = 0; i < FETCHERS; i++)
        td_thread_join(threads[i]);
    for (size_t i = 0; i < FETCHERS; i++)
        assert_int_equal(fetchers[i].fetched, FETCHES);
}

static void a_taken_port_is_named(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_here();
    const td_http_config config = {
        .what = "metrics", .port = td_http_port(http), .routes = routes};
    td_http *second = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_http_open(&config, &second, &info), TD_ERR_EXISTS);
    assert_null(second);
    char where[32];
    snprintf(where, sizeof where, "127.0.0.1:%u: ", config.port);
    assert_non_null(strstr(info.text, where));
    assert_non_null(strstr(info.text, "choose another"));
    assert_true(fetch(td_http_port(http)));
}

static void an_address_that_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *address;
        const char *says;
    } cases[] = {
        {"", "0.0.0.0"},
        {"localhost", "in numbers"},
        {"1.2.3.4.5", "\"1.2.3.4.5\""},
        {"192.0.2.1", "192.0.2.1:0: not an address of this machine"},
        {"2001:db8::1", "[2001:db8::1]:0"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_http_config config = {
            .what = "metrics", .address = cases[i].address, .routes = routes};
        td_http *http = NULL;
        td_errinfo info = {""};
        assert_int_not_equal(td_http_open(&config, &http, &info), TD_OK);
        assert_null(http);
        if (!strstr(info.text, cases[i].says))
            fail_msg("%s: %s", cases[i].address, info.text);
    }
}

static void all_addresses_may_be_asked_for(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http = open_with((td_http_config){.address = "0.0.0.0"});
    assert_true(fetch(td_http_port(http)));
}

static void who_says_nothing_loses_his_place(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http =
        open_with((td_http_config){.patience_ns = 200 * TD_NS_PER_MS});
    int silent[2 * TD_HTTP_MAX_CLIENTS];
    for (size_t i = 0; i < TD_COUNT_OF(silent); i++) {
        silent[i] = must_dial(http);
        if (i % 2) (void)!send(silent[i], good, 7, MSG_NOSIGNAL);
    }
    while (!fetch(td_http_port(http)))
        ;
    for (size_t i = 0; i < TD_COUNT_OF(silent); i++) {
        char reply[REPLY_BYTES];
        drain(silent[i], reply);
        assert_null(strstr(reply, "answer"));
    }
}

// Asks for it and reads the first byte, so that the rest is on its way.
static int ask_for_large(const td_http *http)
{
    int fd = must_dial(http);
    assert_int_equal(send(fd, good, strlen(good), MSG_NOSIGNAL), strlen(good));
    char first;
    assert_int_equal(recv(fd, &first, 1, 0), 1);
    return fd;
}

static void who_does_not_read_delays_nobody(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http =
        open_with((td_http_config){.routes = large, .route_count = 1});
    int slow = ask_for_large(http);
    int quick = ask_for_large(http);
    char reply[REPLY_BYTES];
    assert_true(drain(quick, reply) > LARGE_BYTES);
    assert_true(drain(slow, reply) > LARGE_BYTES);
}

static void who_leaves_in_the_middle_harms_nobody(void **state)
{
    (void)state;
    TD_AUTO(td_http) *http =
        open_with((td_http_config){.routes = large, .route_count = 1});
    for (int i = 0; i < 3; i++)
        close(ask_for_large(http));
    char reply[REPLY_BYTES];
    assert_true(drain(ask_for_large(http), reply) > LARGE_BYTES);
}

static void closing_cuts_off_who_is_connected(void **state)
{
    (void)state;
    td_http *http =
        open_with((td_http_config){.routes = large, .route_count = 1});
    int reading = ask_for_large(http);
    int silent = must_dial(http);
    uint16_t port = td_http_port(http);
    td_http_close(http);

    char reply[REPLY_BYTES];
    assert_true(drain(reading, reply) < LARGE_BYTES);
    assert_int_equal(drain(silent, reply), 0);
    assert_int_equal(dial(port), -1);
}

static size_t open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder) closedir(folder);
    assert_true(count > 0);
    return count;
}

static void closing_leaves_nothing_open(void **state)
{
    (void)state;
    size_t before = open_files();
    for (int i = 0; i < 20; i++) {
        td_http *http = open_here();
        if (i % 2) assert_true(fetch(td_http_port(http)));
        td_http_close(http);
    }
    assert_int_equal(open_files(), before);
}

static void a_port_can_be_used_again_at_once(void **state)
{
    (void)state;
    td_http *http = open_here();
    uint16_t port = td_http_port(http);
    assert_true(fetch(port));
    td_http_close(http);

    TD_AUTO(td_http) *again = open_with((td_http_config){.port = port});
    assert_int_equal(td_http_port(again), port);
    assert_true(fetch(port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_served_as_text),
        cmocka_unit_test(each_request_has_its_answer),
        cmocka_unit_test(a_handler_hears_what_stands_after_the_mark),
        cmocka_unit_test(parameters_have_a_limit),
        cmocka_unit_test(who_is_lost_is_shown_the_way),
        cmocka_unit_test(a_handler_may_refuse),
        cmocka_unit_test(nonsense_is_not_answered_with_metrics),
        cmocka_unit_test(many_may_fetch_at_once),
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(an_address_that_cannot_be_is_refused),
        cmocka_unit_test(all_addresses_may_be_asked_for),
        cmocka_unit_test(who_says_nothing_loses_his_place),
        cmocka_unit_test(who_does_not_read_delays_nobody),
        cmocka_unit_test(who_leaves_in_the_middle_harms_nobody),
        cmocka_unit_test(closing_cuts_off_who_is_connected),
        cmocka_unit_test(closing_leaves_nothing_open),
        cmocka_unit_test(a_port_can_be_used_again_at_once),
    };
    return cmocka_run_group_tests_name("base/http", tests, NULL, NULL);
}
