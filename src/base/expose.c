// SPDX-License-Identifier: Apache-2.0
#include "base/expose.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// libmicrohttpd speaks HTTP, without a thread of its own: ours runs it whenever
// a socket is ready, and hangs up on clients that take too long. (The library
// has a limit for idle clients only, which one byte now and then defeats.)
//
// Shutdown: close() writes wake_fd, which ends the thread; then the library
// closes what is still connected.

enum {
    PATIENCE_S = 10,
    REQUEST_BYTES = 16 * 1024, // of a request with its headers
    BACKLOG = 64,
    ADDRESS_BYTES = 64,
};

// A connected client.
struct client {
    int fd; // the library's
    int64_t until_ns;
    bool connected;
};

struct td_expose {
    td_expose_render render;
    void *user;
    int64_t patience_ns;
    uint16_t port;
    struct MHD_Daemon *daemon;
    int wake_fd; // -1: none
    td_thread *thread;

    // td-expose only
    struct client clients[TD_EXPOSE_MAX_CLIENTS];
    bool has_room_again; // the library has yet to listen again
};

static enum MHD_Result respond(struct MHD_Connection *connection,
                               unsigned status, struct MHD_Response *response)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection,
                              unsigned status, const char *why)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%s\n", why);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        (size_t)size, text, MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            "text/plain");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    return respond(connection, status, response);
}

// Owned by the caller; NULL for want of memory.
static char *render_text(const td_expose *expose, size_t *ret_size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_size);
    if (!out) return NULL;
    td_prom prom;
    td_prom_init(&prom, out);
    expose->render(&prom, expose->user);
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

static enum MHD_Result give_metrics(const td_expose *expose,
                                    struct MHD_Connection *connection)
{
    size_t size = 0;
    char *text = render_text(expose, &size);
    if (!text)
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                      "out of memory");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            TD_PROM_TEXT_TYPE);
    return respond(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    (void)version, (void)upload, (void)request;
    *upload_size = 0; // what a client uploads is thrown away
    if (strcmp(url, "/metrics") != 0)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "only /metrics is here");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                      "/metrics can be read, with GET");
    return give_metrics(user, connection);
}

static void enter_client(td_expose *expose, int fd, void **ret_client)
{
    for (size_t i = 0; i < TD_EXPOSE_MAX_CLIENTS; i++) {
        struct client *client = &expose->clients[i];
        if (client->connected) continue;
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        *client = (struct client){fd, now_ns + expose->patience_ns, true};
        *ret_client = client;
        return;
    }
}

static void on_connection(void *user, struct MHD_Connection *connection,
                          void **client,
                          enum MHD_ConnectionNotificationCode what)
{
    td_expose *expose = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(
            connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        enter_client(expose, info->connect_fd, client);
    } else if (*client) {
        ((struct client *)*client)->connected = false;
        expose->has_room_again = true;
    }
}

// The library sees the end of the connection at its next run, and closes it.
static void hang_up_on_the_slow(td_expose *expose, int64_t now_ns)
{
    for (size_t i = 0; i < TD_EXPOSE_MAX_CLIENTS; i++) {
        struct client *client = &expose->clients[i];
        if (!client->connected || now_ns < client->until_ns) continue;
        shutdown(client->fd, SHUT_RDWR);
        client->until_ns = INT64_MAX;
    }
}

static int64_t next_until_ns(const td_expose *expose)
{
    int64_t until_ns = INT64_MAX;
    for (size_t i = 0; i < TD_EXPOSE_MAX_CLIENTS; i++) {
        const struct client *client = &expose->clients[i];
        if (client->connected && client->until_ns < until_ns)
            until_ns = client->until_ns;
    }
    return until_ns;
}

// How long poll() may sleep.
static int sleep_ms(td_expose *expose, int64_t now_ns)
{
    unsigned long long library_ms;
    if (expose->has_room_again ||
        (MHD_get_timeout(expose->daemon, &library_ms) == MHD_YES &&
         library_ms == 0))
        return 0;
    int64_t until_ns = next_until_ns(expose);
    if (until_ns == INT64_MAX) return -1;
    if (until_ns <= now_ns) return 0;
    int64_t ms = (until_ns - now_ns) / TD_NS_PER_MS + 1;
    return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static void serve(void *user)
{
    td_expose *expose = user;
    int epoll_fd =
        MHD_get_daemon_info(expose->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct pollfd fds[] = {{.fd = epoll_fd, .events = POLLIN},
                           {.fd = expose->wake_fd, .events = POLLIN}};
    while (fds[1].revents == 0) {
        expose->has_room_again = false;
        MHD_run(expose->daemon);
        int64_t now_ns = td_clock_now_ns(&td_clock_monotonic);
        hang_up_on_the_slow(expose, now_ns);
        poll(fds, TD_COUNT_OF(fds), sleep_ms(expose, now_ns));
    }
}

static td_err cannot_listen(td_errinfo *info, const char *where)
{
    switch (errno) {
    case EADDRINUSE:
        return td_fail(info, TD_ERR_EXISTS,
                       "metrics on %s: the port is taken: choose another, or "
                       "end the program that has it (`ss -ltnp` shows it)",
                       where);
    case EACCES:
        return td_fail(info, TD_ERR_DENIED,
                       "metrics on %s: ports below 1024 are for root: choose a "
                       "higher one",
                       where);
    case EADDRNOTAVAIL:
        return td_fail(info, TD_ERR_INVALID,
                       "metrics on %s: not an address of this machine: choose "
                       "one that `ip address` shows, or 0.0.0.0 for all",
                       where);
    default:
        return td_fail(info, TD_ERR_IO, "metrics on %s: %s", where,
                       strerror(errno));
    }
}

// "127.0.0.1:9464", "[::1]:9464".
static void print_where(const char *address, uint16_t port,
                        char ret_where[ADDRESS_BYTES])
{
    bool colons = strchr(address, ':');
    snprintf(ret_where, ADDRESS_BYTES, "%s%s%s:%u", colons ? "[" : "", address,
             colons ? "]" : "", port);
}

static td_err find_address(const char *address, uint16_t port,
                           struct addrinfo **ret_found, td_errinfo *info)
{
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
        .ai_socktype = SOCK_STREAM,
    };
    if (getaddrinfo(address, service, &hints, ret_found) == 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "metrics on \"%s\": must be an address in numbers: "
                   "127.0.0.1 for this machine alone, 0.0.0.0 for all",
                   address);
}

static int listen_on(const struct addrinfo *found)
{
    int fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    const int on = 1; // a restart need not wait for old connections to fade
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static td_err open_socket(const td_expose_config *config, int *ret_fd,
                          td_errinfo *info)
{
    const char *address = config->address ? config->address : "127.0.0.1";
    struct addrinfo *found = NULL;
    TD_TRY(find_address(address, config->port, &found, info));
    int fd = listen_on(found);
    freeaddrinfo(found);
    if (fd < 0) {
        char where[ADDRESS_BYTES];
        print_where(address, config->port, where);
        return cannot_listen(info, where);
    }
    *ret_fd = fd;
    return TD_OK;
}

// The library owns `fd` from here on, also when it does not start.
static td_err start_library(td_expose *expose, int fd, td_errinfo *info)
{
    expose->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, expose,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)TD_EXPOSE_MAX_CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        expose, MHD_OPTION_END);
    if (!expose->daemon)
        return td_fail(info, TD_ERR_IO,
                       "metrics: libmicrohttpd does not start: %s",
                       strerror(errno));
    expose->port =
        MHD_get_daemon_info(expose->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return TD_OK;
}

td_err td_expose_open(const td_expose_config *config, td_expose **ret_expose,
                      td_errinfo *info)
{
    TD_AUTO(td_expose) *expose = calloc(1, sizeof *expose);
    if (!expose) return TD_ERR_NOMEM;
    expose->render = config->render;
    expose->user = config->user;
    expose->patience_ns =
        config->patience_ns ? config->patience_ns : PATIENCE_S * TD_NS_PER_S;
    expose->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (expose->wake_fd < 0)
        return td_fail(info, TD_ERR_LIMIT, "metrics: %s", strerror(errno));

    int fd = -1;
    TD_TRY(open_socket(config, &fd, info));
    TD_TRY(start_library(expose, fd, info));
    const td_thread_config thread = {.name = "td-expose", .cpu = -1};
    TD_TRY(td_thread_start(&thread, serve, expose, &expose->thread, info));

    *ret_expose = TD_TAKE(expose);
    return TD_OK;
}

uint16_t td_expose_port(const td_expose *expose)
{
    return expose->port;
}

void td_expose_close(td_expose *expose)
{
    if (expose->thread) {
        eventfd_write(expose->wake_fd, 1);
        td_thread_join(expose->thread);
    }
    if (expose->daemon) MHD_stop_daemon(expose->daemon);
    if (expose->wake_fd >= 0) close(expose->wake_fd);
    free(expose);
}
