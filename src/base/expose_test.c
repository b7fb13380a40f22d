// SPDX-License-Identifier: Apache-2.0
#include "base/expose.h"

#include "base/clock.h"
#include "base/thread.h"

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
static const char body[] = "# HELP answer To everything.\n"
                           "# TYPE answer gauge\n"
                           "answer 42\n";

static void render(td_prom *prom, void *user)
{
    (void)user;
    td_prom_gauge(prom, "answer", "To everything.", NULL, 42);
}

static void render_large(td_prom *prom, void *user)
{
    (void)user;
    for (size_t i = 0; i < LARGE_BYTES / 8; i++)
        fputs("large 1\n", prom->out);
}

static td_expose *open_with(td_expose_config config)
{
    td_errinfo info = {""};
    td_expose *expose = NULL;
    if (td_expose_open(&config, &expose, &info) != TD_OK)
        fail_msg("%s", info.text);
    return expose;
}

static td_expose *open_here(void)
{
    return open_with((td_expose_config){.render = render});
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

static int must_dial(const td_expose *expose)
{
    int fd = dial(td_expose_port(expose));
    if (fd < 0) {
        fail_msg("nobody listens on %u", td_expose_port(expose));
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

static void metrics_are_served_as_text(void **state)
{
    (void)state;
    TD_AUTO(td_expose) *expose = open_here();
    char reply[REPLY_BYTES];
    ask(td_expose_port(expose), good, strlen(good), reply);
    assert_true(is_good_reply(reply));
    assert_non_null(strstr(reply, "\r\nContent-Type: text/plain; "
                                  "version=0.0.4; charset=utf-8\r\n"));
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
    {"from the future", "GET /metrics HTTP/9.0\r\nHost: h\r\n\r\n", "505"},
};

static void each_request_has_its_answer(void **state)
{
    (void)state;
    TD_AUTO(td_expose) *expose = open_here();
    for (size_t i = 0; i < TD_COUNT_OF(requests); i++) {
        char reply[REPLY_BYTES];
        const char *request = requests[i].request;
        ask(td_expose_port(expose), request, strlen(request), reply);
        if (strlen(reply) < 12 ||
            strncmp(reply + 9, requests[i].status, 3) != 0)
            fail_msg("%s: %s", requests[i].name, reply);
        bool is_405 = strcmp(requests[i].status, "405") == 0;
        if (is_405 != (strstr(reply, "\r\nAllow: GET, HEAD\r\n") != NULL))
            fail_msg("%s: %s", requests[i].name, reply);
    }
    assert_true(fetch(td_expose_port(expose)));
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
    TD_AUTO(td_expose) *expose = open_with((td_expose_config){
        .render = render, .patience_ns = 200 * TD_NS_PER_MS});
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char reply[REPLY_BYTES];
        ask(td_expose_port(expose), cases[i].bytes, cases[i].size, reply);
        if (strstr(reply, "answer")) fail_msg("%s: %s", cases[i].name, reply);
        while (!fetch(td_expose_port(expose)))
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
    TD_AUTO(td_expose) *expose = open_here();
    const td_thread_config config = {.name = "fetcher", .cpu = -1};
    struct fetcher fetchers[FETCHERS];
    td_thread *threads[FETCHERS];
    for (size_t i = 0; i < FETCHERS; i++) {
        fetchers[i] = (struct fetcher){.port = td_expose_port(expose)};
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
    TD_AUTO(td_expose) *expose = open_here();
    const td_expose_config config = {.port = td_expose_port(expose),
                                     .render = render};
    td_expose *second = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_expose_open(&config, &second, &info), TD_ERR_EXISTS);
    assert_null(second);
    char where[32];
    snprintf(where, sizeof where, "127.0.0.1:%u: ", config.port);
    assert_non_null(strstr(info.text, where));
    assert_non_null(strstr(info.text, "choose another"));
    assert_true(fetch(td_expose_port(expose)));
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
        const td_expose_config config = {.address = cases[i].address,
                                         .render = render};
        td_expose *expose = NULL;
        td_errinfo info = {""};
        assert_int_not_equal(td_expose_open(&config, &expose, &info), TD_OK);
        assert_null(expose);
        if (!strstr(info.text, cases[i].says))
            fail_msg("%s: %s", cases[i].address, info.text);
    }
}

static void all_addresses_may_be_asked_for(void **state)
{
    (void)state;
    TD_AUTO(td_expose) *expose =
        open_with((td_expose_config){.address = "0.0.0.0", .render = render});
    assert_true(fetch(td_expose_port(expose)));
}

static void who_says_nothing_loses_his_place(void **state)
{
    (void)state;
    TD_AUTO(td_expose) *expose = open_with((td_expose_config){
        .render = render, .patience_ns = 200 * TD_NS_PER_MS});
    int silent[2 * TD_EXPOSE_MAX_CLIENTS];
    for (size_t i = 0; i < TD_COUNT_OF(silent); i++) {
        silent[i] = must_dial(expose);
        if (i % 2) (void)!send(silent[i], good, 7, MSG_NOSIGNAL);
    }
    while (!fetch(td_expose_port(expose)))
        ;
    for (size_t i = 0; i < TD_COUNT_OF(silent); i++) {
        char reply[REPLY_BYTES];
        drain(silent[i], reply);
        assert_null(strstr(reply, "answer"));
    }
}

// Asks for it and reads the first byte, so that the rest is on its way.
static int ask_for_large(const td_expose *expose)
{
    int fd = must_dial(expose);
    assert_int_equal(send(fd, good, strlen(good), MSG_NOSIGNAL), strlen(good));
    char first;
    assert_int_equal(recv(fd, &first, 1, 0), 1);
    return fd;
}

static void who_does_not_read_delays_nobody(void **state)
{
    (void)state;
    TD_AUTO(td_expose) *expose =
        open_with((td_expose_config){.render = render_large});
    int slow = ask_for_large(expose);
    int quick = ask_for_large(expose);
    char reply[REPLY_BYTES];
    assert_true(drain(quick, reply) > LARGE_BYTES);
    assert_true(drain(slow, reply) > LARGE_BYTES);
}

static void who_leaves_in_the_middle_harms_nobody(void **state)
{
    (void)state;
    TD_AUTO(td_expose) *expose =
        open_with((td_expose_config){.render = render_large});
    for (int i = 0; i < 3; i++)
        close(ask_for_large(expose));
    char reply[REPLY_BYTES];
    assert_true(drain(ask_for_large(expose), reply) > LARGE_BYTES);
}

static void closing_cuts_off_who_is_connected(void **state)
{
    (void)state;
    td_expose *expose = open_with((td_expose_config){.render = render_large});
    int reading = ask_for_large(expose);
    int silent = must_dial(expose);
    uint16_t port = td_expose_port(expose);
    td_expose_close(expose);

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
        td_expose *expose = open_here();
        if (i % 2) assert_true(fetch(td_expose_port(expose)));
        td_expose_close(expose);
    }
    assert_int_equal(open_files(), before);
}

static void a_port_can_be_used_again_at_once(void **state)
{
    (void)state;
    td_expose *expose = open_here();
    uint16_t port = td_expose_port(expose);
    assert_true(fetch(port));
    td_expose_close(expose);

    TD_AUTO(td_expose) *again =
        open_with((td_expose_config){.port = port, .render = render});
    assert_int_equal(td_expose_port(again), port);
    assert_true(fetch(port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_served_as_text),
        cmocka_unit_test(each_request_has_its_answer),
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
    return cmocka_run_group_tests_name("base/expose", tests, NULL, NULL);
}
