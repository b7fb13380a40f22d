// SPDX-License-Identifier: Apache-2.0
#include "net/zenoh/testing.h"

#include "net/conformance/conformance.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const td_net_qos best_effort = {.priority = TD_NET_DATA};

bool td_ztest_until(bool (*predicate)(void *user), void *user)
{
    return td_net_conformance_poll(NULL, predicate, user);
}

void td_ztest_tcp(td_ztest_endpoint *ret_endpoint)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) abort();
    assert_int_equal(0, bind(fd, (struct sockaddr *)&at, size));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&at, &size));
    close(fd);
    snprintf(ret_endpoint->text, sizeof ret_endpoint->text, "tcp/127.0.0.1:%d",
             ntohs(at.sin_port));
    ret_endpoint->list[0] = ret_endpoint->text;
}

void td_ztest_unix_init(td_ztest_unix *dir)
{
    snprintf(dir->dir, sizeof dir->dir, "/tmp/td-zenoh-XXXXXX");
    assert_non_null(mkdtemp(dir->dir));
    snprintf(dir->socket, sizeof dir->socket, "%s/z.sock", dir->dir);
    snprintf(dir->lock, sizeof dir->lock, "%s.lock", dir->socket);
    snprintf(dir->at.text, sizeof dir->at.text, "unixsock-stream/%s",
             dir->socket);
    dir->at.list[0] = dir->at.text;
}

void td_ztest_unix_done(td_ztest_unix *dir)
{
    unlink(dir->socket);
    unlink(dir->lock);
    assert_int_equal(0, rmdir(dir->dir));
}

td_net_zenoh_config td_ztest_listening(td_net_zenoh_mode mode,
                                       td_ztest_endpoint *at)
{
    return (td_net_zenoh_config){
        .mode = mode, .listen = at->list, .listen_count = 1};
}

td_net_zenoh_config td_ztest_connecting(td_net_zenoh_mode mode,
                                        td_ztest_endpoint *at)
{
    return (td_net_zenoh_config){
        .mode = mode, .connect = at->list, .connect_count = 1};
}

td_net *td_ztest_open(td_net_zenoh_config config)
{
    td_net *net = NULL;
    td_errinfo info = {0};
    if (td_net_zenoh_open(&config, &net, &info) != TD_OK) {
        fail_msg("open: %s", info.text);
    }
    return net;
}

td_net_pub *td_ztest_publish(td_net *net)
{
    td_net_pub *pub = NULL;
    assert_int_equal(
        TD_OK, td_net_publish(net, TD_ZTEST_KEY, &best_effort, &pub, NULL));
    return pub;
}

static void inbox_put(void *user, const td_net_sample *sample)
{
    td_ztest_inbox *box = user;
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) return;
    atomic_store(&box->whole, sample->whole);
    msg = atomic_exchange(&box->msg, msg);
    if (msg) td_net_msg_free(msg);
    atomic_fetch_add(&box->count, 1);
}

void td_ztest_inbox_open(td_ztest_inbox *box, td_net *net)
{
    *box = (td_ztest_inbox){0};
    assert_int_equal(TD_OK, td_net_subscribe(net, TD_ZTEST_KEY, inbox_put, box,
                                             &box->decl, NULL));
}

void td_ztest_inbox_close(td_ztest_inbox *box)
{
    assert_int_equal(TD_OK, td_net_undeclare(box->decl));
    td_net_msg *msg = atomic_load(&box->msg);
    if (msg) td_net_msg_free(msg);
}

static bool inbox_filled(void *user)
{
    td_ztest_inbox *box = user;
    return atomic_load(&box->count) > 0;
}

bool td_ztest_is_matched(void *user)
{
    bool matched = false;
    assert_int_equal(TD_OK, td_net_matched(user, &matched));
    return matched;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8));
}

uint8_t *td_ztest_pattern(size_t size)
{
    uint8_t *bytes = malloc(size);
    if (!bytes) abort();
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(i);
    }
    return bytes;
}

static void count_release(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

void td_ztest_send(td_net_pub *pub, td_ztest_inbox *box, size_t size)
{
    assert_true(td_ztest_until(td_ztest_is_matched, pub));
    uint8_t *bytes = td_ztest_pattern(size);
    td_slice parts[] = {
        {bytes, 10}, {bytes + 10, size - 20}, {bytes + size - 10, 10}};
    atomic_int released = 0;
    atomic_store(&box->count, 0);
    assert_int_equal(TD_OK,
                     td_net_put(pub, parts, 3, count_release, &released));
    assert_true(td_ztest_until(inbox_filled, box));
    assert_int_equal(1, atomic_load(&released));

    td_slice got = {0};
    assert_int_equal(TD_OK, td_net_msg_bytes(atomic_load(&box->msg), &got));
    assert_int_equal(size, got.size);
    assert_memory_equal(bytes, got.data, size);
    free(bytes);
}

bool td_ztest_is_set(void *user)
{
    return atomic_load((atomic_int *)user) != 0;
}
