// SPDX-License-Identifier: Apache-2.0
// The other process of net: a relay for TCP connections that delays what passes
// by a time with jitter. Each way keeps its order, as TCP does: what is quicker
// than the piece before it waits for that one.
#include "base/clock.h"
#include "base/rand.h"
#include "bench/bench.h"
#include "cli/cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINKS 16
#define PIECE_BYTES ((size_t)64 << 10)
#define MAX_QUEUED_BYTES ((size_t)16 << 20) // each way; then TCP holds it back
#define LOOK_NS (50 * TD_NS_PER_MS)

typedef struct piece {
    struct piece *next;
    int64_t due_ns;
    size_t size, sent;
    uint8_t bytes[];
} piece;

typedef struct way {
    int from, to;
    piece *first, **end;
    size_t queued_bytes;
    int64_t due_ns; // of the last piece
    bool ended;     // nothing more is to be read
} way;

typedef struct pair {
    way ways[2]; // there and back
} pair;

typedef struct relay {
    int listener;
    struct sockaddr_in target;
    int64_t delay_ns, jitter_ns;
    td_rand rand;
    pair *links[MAX_LINKS];
    size_t count;
} relay;

static _Atomic bool over;

static void end_relay(void *unused)
{
    (void)unused;
    over = true;
}

static void make_quick(int fd)
{
    const int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void way_init(way *w, int from, int to)
{
    *w = (way){.from = from, .to = to};
    w->end = &w->first;
}

static void take_link(relay *r)
{
    const struct sockaddr *target = (const struct sockaddr *)&r->target;
    int near = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pair *link = calloc(1, sizeof *link);
    if (!link || near < 0 || far < 0 || r->count == MAX_LINKS ||
        connect(far, target, sizeof r->target) < 0) {
        if (near >= 0) (void)close(near);
        if (far >= 0) (void)close(far);
        free(link);
        return;
    }
    make_quick(near);
    make_quick(far);
    way_init(&link->ways[0], near, far);
    way_init(&link->ways[1], far, near);
    r->links[r->count++] = link;
}

// In order, so never before the last one.
static int64_t due_of_next(relay *r, const way *w, int64_t now_ns)
{
    double part = 2 * td_rand_unit(&r->rand) - 1;
    int64_t due_ns =
        now_ns + r->delay_ns + (int64_t)(part * (double)r->jitter_ns);
    return due_ns > w->due_ns ? due_ns : w->due_ns;
}

static void read_piece(relay *r, way *w, int64_t now_ns)
{
    piece *p = malloc(sizeof *p + PIECE_BYTES);
    ssize_t size = p ? read(w->from, p->bytes, PIECE_BYTES) : -1;
    if (size <= 0) {
        w->ended = p && (size == 0 || (errno != EAGAIN && errno != EINTR));
        free(p);
        return;
    }
    w->due_ns = due_of_next(r, w, now_ns);
    *p = (piece){.due_ns = w->due_ns, .size = (size_t)size};
    *w->end = p;
    w->end = &p->next;
    w->queued_bytes += p->size;
}

static void drop_first(way *w)
{
    piece *p = w->first;
    w->queued_bytes -= p->size;
    w->first = p->next;
    if (!w->first) w->end = &w->first;
    free(p);
}

static void write_pieces(way *w, int64_t now_ns)
{
    while (w->first && w->first->due_ns <= now_ns) {
        piece *p = w->first;
        ssize_t size = send(w->to, p->bytes + p->sent, p->size - p->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (size < 0) w->ended = true;
        p->sent += size < 0 ? p->size - p->sent : (size_t)size;
        if (p->sent == p->size) drop_first(w);
    }
    if (w->ended && !w->first) (void)shutdown(w->to, SHUT_WR);
}

static bool is_over(const pair *link)
{
    const way *ways = link->ways;
    return ways[0].ended && ways[1].ended && !ways[0].first && !ways[1].first;
}

static void close_link(pair *link)
{
    for (size_t k = 0; k < 2; k++) {
        while (link->ways[k].first)
            drop_first(&link->ways[k]);
        (void)close(link->ways[k].from);
    }
    free(link);
}

// What this way waits for, and until when at most.
static short wants_to_write(const way *w, int64_t now_ns, int64_t *until_ns)
{
    if (!w->first) return 0;
    if (w->first->due_ns <= now_ns) return POLLOUT;
    if (w->first->due_ns < *until_ns) *until_ns = w->first->due_ns;
    return 0;
}

static short wants_to_read(const way *w)
{
    bool may = !w->ended && w->queued_bytes < MAX_QUEUED_BYTES;
    return may ? POLLIN : 0;
}

static void wait_for_work(const relay *r, struct pollfd *fds)
{
    int64_t now_ns = td_clock_monotonic_ns();
    int64_t until_ns = now_ns + LOOK_NS;
    size_t count = 0;
    fds[count++] = (struct pollfd){.fd = r->listener, .events = POLLIN};
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < 2; k++) {
            const way *ours = &r->links[i]->ways[k];
            const way *back = &r->links[i]->ways[1 - k];
            short events = (short)(wants_to_read(ours) |
                                   wants_to_write(back, now_ns, &until_ns));
            fds[count++] = (struct pollfd){.fd = events ? ours->from : -1,
                                           .events = events};
        }
    const struct timespec limit = {.tv_nsec = until_ns - now_ns};
    (void)ppoll(fds, count, &limit, NULL);
}

static void serve_links(relay *r, const struct pollfd *fds)
{
    int64_t now_ns = td_clock_monotonic_ns();
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < 2; k++) {
            way *w = &r->links[i]->ways[k];
            if (fds[1 + 2 * i + k].revents && wants_to_read(w))
                read_piece(r, w, now_ns);
            write_pieces(w, now_ns);
        }
    for (size_t i = r->count; i-- > 0;) {
        if (!is_over(r->links[i])) continue;
        close_link(r->links[i]);
        r->links[i] = r->links[--r->count];
    }
}

static td_err parse_address(const char *text, struct sockaddr_in *ret_address,
                            td_errinfo *info)
{
    char host[64];
    unsigned port;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (sscanf(text, "%63[^:]:%u", host, &port) != 2 || port > UINT16_MAX ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return td_fail(info, TD_ERR_INVALID, "\"%s\": must be ADDRESS:PORT",
                       text);
    address.sin_port = htons((uint16_t)port);
    *ret_address = address;
    return TD_OK;
}

static td_err listen_at(const char *text, int *ret_fd, td_errinfo *info)
{
    struct sockaddr_in address;
    const int yes = 1;
    TD_TRY(parse_address(text, &address, info));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return td_fail(info, TD_ERR_IO, "socket: %s", strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, MAX_LINKS) == 0) {
        *ret_fd = fd;
        return TD_OK;
    }
    td_err err = td_fail(info, TD_ERR_IO, "%s: %s", text, strerror(errno));
    (void)close(fd);
    return err;
}

static td_err run_relay(char **argv, td_errinfo *info)
{
    struct pollfd fds[1 + 2 * MAX_LINKS];
    relay r = {
        .delay_ns = strtoll(argv[3], NULL, 10) * TD_NS_PER_MS,
        .jitter_ns = strtoll(argv[4], NULL, 10) * TD_NS_PER_MS,
    };
    td_rand_init(&r.rand, strtoull(argv[5], NULL, 10));
    TD_TRY(parse_address(argv[2], &r.target, info));
    TD_TRY(listen_at(argv[1], &r.listener, info));
    (void)puts(TD_BENCH_READY);
    (void)fflush(stdout);
    while (!over) {
        wait_for_work(&r, fds);
        serve_links(&r, fds);
        if (fds[0].revents) take_link(&r);
    }
    for (size_t i = 0; i < r.count; i++)
        close_link(r.links[i]);
    (void)close(r.listener);
    return TD_OK;
}

// LISTEN CONNECT DELAY_MS JITTER_MS SEED
int td_bench_relay(int argc, char **argv)
{
    td_errinfo info = {.text = ""};
    if (argc != 6) return 2;
    td_cli_on_stop(end_relay, NULL);
    td_err err = run_relay(argv, &info);
    return err == TD_OK ? 0 : td_cli_fail("bench relay", err, &info);
}
