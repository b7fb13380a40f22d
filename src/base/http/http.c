// SPDX-License-Identifier: Apache-2.0
// A small HTTP server for numbers: GET and HEAD on a few paths.
//
// libmicrohttpd speaks HTTP, without a thread of its own: our thread td-http
// runs it whenever a socket is ready (epoll, under one poll() with wake_fd),
// and calls the route's handler there. So a handler that blocks makes all
// clients wait, and nobody else.
//
// Nothing that a client sends is kept but the text after the '?', of limited
// length. A request with a body, with another method or with a path that is not
// there is refused with a line that says why; every answer closes its
// connection.
//
// Slow clients are hung up on after `patience` (hang_up_on_the_slow): the
// library has a limit for idle clients only, which one byte now and then
// defeats. When TD_HTTP_MAX_CLIENTS are connected the library stops listening;
// has_room_again makes it run once more after one of them has gone.
//
// State: `clients` and has_room_again belong to td-http; everything else is set
// before it starts. No lock.
//
// Shutdown: td_http_close() writes wake_fd, which ends the thread, and joins
// it; then the library closes what is still connected.
#include "base/http/http.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PATIENCE_S = 10,
    REQUEST_BYTES = 16 * 1024, // of a request with its headers
    BACKLOG = 64,
    ADDRESS_BYTES = 64,
    LINE_BYTES = 256,
    CONTENT_TOO_LARGE = 413, // the library's versions differ in their names
    URI_TOO_LONG = 414,
};

#define PLAIN "text/plain; charset=utf-8"

// A connected client.
struct client {
    int fd; // the library's
    int64_t until_ns;
    bool connected;
    bool has_long_query;
    char query[TD_HTTP_MAX_QUERY + 1];
};

struct td_http {
    td_http_config config;
    int64_t patience_ns;
    uint16_t port;
    struct MHD_Daemon *daemon;
    int wake_fd; // -1: none
    td_thread *thread;

    // td-http only
    struct client clients[TD_HTTP_MAX_CLIENTS];
    bool has_room_again; // the library has yet to listen again
};

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static enum MHD_Result respond(struct MHD_Connection *connection,
                               unsigned status, const char *type,
                               struct MHD_Response *response)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                            "no-store");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection,
                              unsigned status, const char *why)
{
    char text[LINE_BYTES];
    int size = snprintf(text, sizeof text, "%s\n", why);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        (size_t)size, text, MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    return respond(connection, status, PLAIN, response);
}

void td_http_refuse(td_http_reply *reply, unsigned status, const char *why)
{
    reply->status = status;
    reply->type = PLAIN;
    (void)fprintf(reply->out, "%s\n", why);
}

// The text is owned by the caller; NULL for want of memory.
static char *make_text(const td_http *http, const td_http_route *route,
                       const char *query, td_http_reply *ret_reply,
                       size_t *ret_size)
{
    char *text = NULL;
    td_http_reply reply = {open_memstream(&text, ret_size), MHD_HTTP_OK, PLAIN};
    if (!reply.out) return NULL;
    __fsetlocking(reply.out, FSETLOCKING_BYCALLER); // nobody else has it
    route->handle(&reply, query, http->config.user);
    bool failed = ferror(reply.out);
    if (fclose(reply.out) != 0 || failed) {
        free(text);
        return NULL;
    }
    *ret_reply = reply;
    return text;
}

static enum MHD_Result answer(const td_http *http, const td_http_route *route,
                              struct MHD_Connection *connection,
                              const char *query)
{
    size_t size = 0;
    td_http_reply reply;
    char *text = make_text(http, route, query, &reply, &size);
    if (!text)
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                      "out of memory");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    return respond(connection, reply.status, reply.type, response);
}

static const td_http_route *find_route(const td_http *http, const char *path)
{
    for (size_t i = 0; i < http->config.route_count; i++)
        if (strcmp(http->config.routes[i].path, path) == 0)
            return &http->config.routes[i];
    return NULL;
}

static enum MHD_Result refuse_path(const td_http *http,
                                   struct MHD_Connection *connection)
{
    char why[LINE_BYTES] = "no such path; there are:";
    for (size_t i = 0; i < http->config.route_count; i++) {
        size_t size = strlen(why);
        (void)snprintf(why + size, sizeof why - size, " %s",
                       http->config.routes[i].path);
    }
    return refuse(connection, MHD_HTTP_NOT_FOUND, why);
}

static bool has_body(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(
        connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                       MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    (void)version, (void)upload, (void)request;
    *upload_size = 0; // what a client uploads is thrown away
    const td_http *http = user;
    const td_http_route *route = find_route(http, url);
    if (!route) return refuse_path(http, connection);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                      "this can be read, with GET, and nothing else");
    if (has_body(connection))
        return refuse(connection, CONTENT_TOO_LARGE,
                      "a request to read has no body");
    const struct client *client = client_of(connection);
    if (!client) return MHD_NO;
    if (client->has_long_query)
        return refuse(connection, URI_TOO_LONG, "the parameters are too long");
    return answer(http, route, connection, client->query);
}

// Keeps what stands after the '?' before the library takes it apart.
static void *on_uri(void *user, const char *uri,
                    struct MHD_Connection *connection)
{
    (void)user;
    struct client *client = client_of(connection);
    const char *mark = strchr(uri, '?');
    if (!client) return NULL;
    const char *query = mark ? mark + 1 : "";
    client->has_long_query = strlen(query) > TD_HTTP_MAX_QUERY;
    if (!client->has_long_query)
        memcpy(client->query, query, strlen(query) + 1);
    return NULL;
}

static void enter_client(td_http *http, int fd, void **ret_client)
{
    for (size_t i = 0; i < TD_HTTP_MAX_CLIENTS; i++) {
        struct client *client = &http->clients[i];
        if (client->connected) continue;
        int64_t now_ns = td_clock_monotonic_ns();
        *client = (struct client){.fd = fd,
                                  .until_ns = now_ns + http->patience_ns,
                                  .connected = true};
        *ret_client = client;
        return;
    }
}

static void on_connection(void *user, struct MHD_Connection *connection,
                          void **client,
                          enum MHD_ConnectionNotificationCode what)
{
    td_http *http = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(
            connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        enter_client(http, info->connect_fd, client);
    } else if (*client) {
        ((struct client *)*client)->connected = false;
        http->has_room_again = true;
    }
}

// The library sees the end of the connection at its next run, and closes it.
static void hang_up_on_the_slow(td_http *http, int64_t now_ns)
{
    for (size_t i = 0; i < TD_HTTP_MAX_CLIENTS; i++) {
        struct client *client = &http->clients[i];
        if (!client->connected || now_ns < client->until_ns) continue;
        shutdown(client->fd, SHUT_RDWR);
        client->until_ns = INT64_MAX;
    }
}

static int64_t next_until_ns(const td_http *http)
{
    int64_t until_ns = INT64_MAX;
    for (size_t i = 0; i < TD_HTTP_MAX_CLIENTS; i++) {
        const struct client *client = &http->clients[i];
        if (client->connected && client->until_ns < until_ns)
            until_ns = client->until_ns;
    }
    return until_ns;
}

// How long poll() may sleep.
static int sleep_ms(td_http *http, int64_t now_ns)
{
    unsigned long long library_ms;
    if (http->has_room_again ||
        (MHD_get_timeout(http->daemon, &library_ms) == MHD_YES &&
         library_ms == 0))
        return 0;
    int64_t until_ns = next_until_ns(http);
    if (until_ns == INT64_MAX) return -1;
    if (until_ns <= now_ns) return 0;
    int64_t ms = (until_ns - now_ns) / TD_NS_PER_MS + 1;
    return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static void serve(void *user)
{
    td_http *http = user;
    int epoll_fd =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct pollfd fds[] = {{.fd = epoll_fd, .events = POLLIN},
                           {.fd = http->wake_fd, .events = POLLIN}};
    while (fds[1].revents == 0) {
        http->has_room_again = false;
        MHD_run(http->daemon);
        int64_t now_ns = td_clock_monotonic_ns();
        hang_up_on_the_slow(http, now_ns);
        poll(fds, TD_COUNT_OF(fds), sleep_ms(http, now_ns));
    }
}

static td_err cannot_listen(td_errinfo *info, const char *what,
                            const char *where)
{
    switch (errno) {
    case EADDRINUSE:
        return td_fail(info, TD_ERR_EXISTS,
                       "%s on %s: the port is taken: choose another, or end "
                       "the program that has it (`ss -ltnp` shows it)",
                       what, where);
    case EACCES:
        return td_fail(info, TD_ERR_DENIED,
                       "%s on %s: ports below 1024 are for root: choose a "
                       "higher one",
                       what, where);
    case EADDRNOTAVAIL:
        return td_fail(info, TD_ERR_INVALID,
                       "%s on %s: not an address of this machine: choose one "
                       "that `ip address` shows, or 0.0.0.0 for all",
                       what, where);
    default:
        return td_fail(info, TD_ERR_IO, "%s on %s: %s", what, where,
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

static td_err find_address(const td_http_config *config, const char *address,
                           struct addrinfo **ret_found, td_errinfo *info)
{
    char service[8];
    snprintf(service, sizeof service, "%u", config->port);
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
        .ai_socktype = SOCK_STREAM,
    };
    if (getaddrinfo(address, service, &hints, ret_found) == 0) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "%s on \"%s\": must be an address in numbers: 127.0.0.1 "
                   "for this machine alone, 0.0.0.0 for all",
                   config->what, address);
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

static td_err open_socket(const td_http_config *config, int *ret_fd,
                          td_errinfo *info)
{
    const char *address = config->address ? config->address : "127.0.0.1";
    struct addrinfo *found = NULL;
    TD_TRY(find_address(config, address, &found, info));
    int fd = listen_on(found);
    freeaddrinfo(found);
    if (fd < 0) {
        char where[ADDRESS_BYTES];
        print_where(address, config->port, where);
        return cannot_listen(info, config->what, where);
    }
    *ret_fd = fd;
    return TD_OK;
}

// The library owns `fd` from here on, also when it does not start.
static td_err start_library(td_http *http, int fd, td_errinfo *info)
{
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)TD_HTTP_MAX_CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        http, MHD_OPTION_URI_LOG_CALLBACK, on_uri, http, MHD_OPTION_END);
    if (!http->daemon)
        return td_fail(info, TD_ERR_IO, "%s: libmicrohttpd does not start: %s",
                       http->config.what, strerror(errno));
    http->port =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    return TD_OK;
}

td_err td_http_open(const td_http_config *config, td_http **ret_http,
                    td_errinfo *info)
{
    TD_AUTO(td_http) *http = calloc(1, sizeof *http);
    if (!http) return TD_ERR_NOMEM;
    http->config = *config;
    http->patience_ns =
        config->patience_ns ? config->patience_ns : PATIENCE_S * TD_NS_PER_S;
    http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->wake_fd < 0)
        return td_fail(info, TD_ERR_LIMIT, "%s: %s", config->what,
                       strerror(errno));

    int fd = -1;
    TD_TRY(open_socket(config, &fd, info));
    TD_TRY(start_library(http, fd, info));
    const td_thread_config thread = {.name = "td-http", .cpu = -1};
    TD_TRY(td_thread_start(&thread, serve, http, &http->thread, info));

    *ret_http = TD_TAKE(http);
    return TD_OK;
}

uint16_t td_http_port(const td_http *http)
{
    return http->port;
}

void td_http_close(td_http *http)
{
    if (http->thread) {
        eventfd_write(http->wake_fd, 1);
        td_thread_join(http->thread);
    }
    if (http->daemon) MHD_stop_daemon(http->daemon);
    if (http->wake_fd >= 0) close(http->wake_fd);
    free(http);
}
