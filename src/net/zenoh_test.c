// SPDX-License-Identifier: Apache-2.0
#include "net/conformance.h"
#include "net/zenoh/zenoh.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY "test/zenoh/obs"

static const td_net_qos best_effort = {.priority = TD_NET_DATA};

static bool until(bool (*predicate)(void *user), void *user)
{
    return td_net_conformance_poll(NULL, predicate, user);
}

typedef struct endpoint {
    char text[128];
    const char *list[1];
} endpoint;

// A port that was free a moment ago.
static void endpoint_tcp(endpoint *ret_endpoint)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&at, size));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&at, &size));
    close(fd);
    snprintf(ret_endpoint->text, sizeof ret_endpoint->text, "tcp/127.0.0.1:%d",
             ntohs(at.sin_port));
    ret_endpoint->list[0] = ret_endpoint->text;
}

typedef struct unix_dir {
    endpoint at;
    char dir[32];
    char socket[64];
    char lock[80];
} unix_dir;

static void unix_dir_init(unix_dir *dir)
{
    strcpy(dir->dir, "/tmp/td-zenoh-XXXXXX");
    assert_non_null(mkdtemp(dir->dir));
    snprintf(dir->socket, sizeof dir->socket, "%s/z.sock", dir->dir);
    snprintf(dir->lock, sizeof dir->lock, "%s.lock", dir->socket);
    snprintf(dir->at.text, sizeof dir->at.text, "unixsock-stream/%s",
             dir->socket);
    dir->at.list[0] = dir->at.text;
}

static void unix_dir_done(unix_dir *dir)
{
    unlink(dir->socket);
    unlink(dir->lock);
    assert_int_equal(0, rmdir(dir->dir));
}

static td_net_zenoh_config listening(td_net_zenoh_mode mode, endpoint *at)
{
    return (td_net_zenoh_config){
        .mode = mode, .listen = at->list, .listen_count = 1};
}

static td_net_zenoh_config connecting(td_net_zenoh_mode mode, endpoint *at)
{
    return (td_net_zenoh_config){
        .mode = mode, .connect = at->list, .connect_count = 1};
}

static td_net *open_with(td_net_zenoh_config config)
{
    td_net *net = NULL;
    td_errinfo info = {0};
    if (td_net_zenoh_open(&config, &net, &info) != TD_OK) {
        fail_msg("open: %s", info.text);
    }
    return net;
}

static td_net_pub *publish(td_net *net)
{
    td_net_pub *pub = NULL;
    assert_int_equal(TD_OK, td_net_publish(net, KEY, &best_effort, &pub, NULL));
    return pub;
}

// What a subscriber has got: how many, and the newest.
typedef struct inbox {
    td_net_decl *decl;
    _Atomic(td_net_msg *) msg;
    atomic_int count;
    atomic_bool whole;
} inbox;

static void inbox_put(void *user, const td_net_sample *sample)
{
    inbox *box = user;
    td_net_msg *msg = NULL;
    if (td_net_keep(sample, &msg) != TD_OK) return;
    atomic_store(&box->whole, sample->whole);
    msg = atomic_exchange(&box->msg, msg);
    if (msg) td_net_msg_free(msg);
    atomic_fetch_add(&box->count, 1);
}

static void inbox_open(inbox *box, td_net *net)
{
    *box = (inbox){0};
    assert_int_equal(
        TD_OK, td_net_subscribe(net, KEY, inbox_put, box, &box->decl, NULL));
}

static void inbox_close(inbox *box)
{
    assert_int_equal(TD_OK, td_net_undeclare(box->decl));
    td_net_msg *msg = atomic_load(&box->msg);
    if (msg) td_net_msg_free(msg);
}

static bool inbox_filled(void *user)
{
    inbox *box = user;
    return atomic_load(&box->count) > 0;
}

static bool is_matched(void *user)
{
    bool matched = false;
    assert_int_equal(TD_OK, td_net_matched(user, &matched));
    return matched;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8));
}

static uint8_t *pattern(size_t size)
{
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = byte_at(i);
    }
    return bytes;
}

static void count_release(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

// Sends `size` bytes in three parts and checks what comes out.
static void send_and_check(td_net_pub *pub, inbox *box, size_t size)
{
    assert_true(until(is_matched, pub));
    uint8_t *bytes = pattern(size);
    td_slice parts[] = {
        {bytes, 10}, {bytes + 10, size - 20}, {bytes + size - 10, 10}};
    atomic_int released = 0;
    atomic_store(&box->count, 0);
    assert_int_equal(TD_OK,
                     td_net_put(pub, parts, 3, count_release, &released));
    assert_true(until(inbox_filled, box));
    assert_int_equal(1, atomic_load(&released));

    td_slice got = {0};
    assert_int_equal(TD_OK, td_net_msg_bytes(atomic_load(&box->msg), &got));
    assert_int_equal(size, got.size);
    assert_memory_equal(bytes, got.data, size);
    free(bytes);
}

static void a_port_in_use_is_refused_and_named(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    TD_AUTO(td_net) *first = open_with(listening(TD_NET_ZENOH_PEER, &at));

    td_net_zenoh_config config = listening(TD_NET_ZENOH_ROUTER, &at);
    td_net *second = NULL;
    td_errinfo info = {0};
    assert_int_equal(TD_ERR_EXISTS, td_net_zenoh_open(&config, &second, &info));
    assert_null(second);
    assert_non_null(strstr(info.text, strrchr(at.text, ':')));
}

static const struct {
    const char *name;
    const char *endpoint;
} bad_endpoints[] = {
    {"empty", ""},
    {"no address", "tcp/"},
    {"no protocol", "127.0.0.1:7447"},
    {"no port", "tcp/127.0.0.1"},
    {"port that is no number", "tcp/127.0.0.1:http"},
    {"port too large", "tcp/127.0.0.1:70000"},
    {"protocol that is not built in", "carrier-pigeon/roof:1"},
    {"unix socket without a path", "unixsock-stream/"},
    {"quote", "tcp/\"127.0.0.1:7447"},
    {"control character", "tcp/127.0.0.1:74\n47"},
};

static void what_is_no_endpoint_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(bad_endpoints); i++) {
        td_net_zenoh_config config = {
            .mode = TD_NET_ZENOH_CLIENT,
            .connect = &bad_endpoints[i].endpoint,
            .connect_count = 1,
        };
        td_net *net = NULL;
        td_errinfo info = {0};
        if (td_net_zenoh_open(&config, &net, &info) != TD_ERR_INVALID ||
            info.text[0] == '\0') {
            fail_msg("%s: was not refused", bad_endpoints[i].name);
        }
    }
}

static void a_client_must_know_whom_to_connect_to(void **state)
{
    (void)state;
    td_net_zenoh_config config = {.mode = TD_NET_ZENOH_CLIENT};
    td_net *net = NULL;
    assert_int_equal(TD_ERR_INVALID, td_net_zenoh_open(&config, &net, NULL));
}

static void a_client_may_open_before_its_router(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    TD_AUTO(td_net) *client = open_with(connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net_pub) *pub = publish(client);
    assert_false(is_matched(pub));

    TD_AUTO(td_net) *router = open_with(listening(TD_NET_ZENOH_ROUTER, &at));
    inbox box;
    inbox_open(&box, router);
    send_and_check(pub, &box, 100);
    inbox_close(&box);
}

static void a_client_returns_to_a_restarted_router(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    td_net *router = open_with(listening(TD_NET_ZENOH_ROUTER, &at));
    TD_AUTO(td_net) *client = open_with(connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net_pub) *pub = publish(client);
    for (int start = 0; start < 2; start++) {
        inbox box;
        inbox_open(&box, router);
        send_and_check(pub, &box, 100);
        inbox_close(&box);
        td_net_close(router);
        if (start == 0) {
            router = open_with(listening(TD_NET_ZENOH_ROUTER, &at));
        }
    }
}

static void a_client_that_never_connects_closes(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    td_net *client = open_with(connecting(TD_NET_ZENOH_CLIENT, &at));
    td_net_close(client);
}

static void a_router_joins_two_clients(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    TD_AUTO(td_net) *router = open_with(listening(TD_NET_ZENOH_ROUTER, &at));
    TD_AUTO(td_net) *sender = open_with(connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net) *receiver = open_with(connecting(TD_NET_ZENOH_CLIENT, &at));
    TD_AUTO(td_net_pub) *pub = publish(sender);
    inbox box;
    inbox_open(&box, receiver);
    send_and_check(pub, &box, 200000);
    inbox_close(&box);
}

static void remember_link(void *user, const td_net_link *link)
{
    atomic_store((atomic_int *)user, link->up ? 1 + link->shared_memory : 0);
}

static bool is_set(void *user)
{
    return atomic_load((atomic_int *)user) != 0;
}

static const struct {
    const char *name;
    bool sender_shares;
    bool receiver_shares;
    size_t pool_bytes;
    bool link_shares;
    bool arrives_whole;
    uint64_t misses;
} shm_cases[] = {
    {"both can", true, true, 0, true, true, 0},
    {"receiver cannot", true, false, 0, false, false, 0},
    {"sender cannot", false, true, 0, false, false, 0},
    {"pool too small", true, true, 65536, true, false, 1},
};

static void shared_memory_is_used_when_both_can(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(shm_cases); i++) {
        print_message("  %s\n", shm_cases[i].name);
        endpoint at;
        endpoint_tcp(&at);
        td_net_zenoh_config config = listening(TD_NET_ZENOH_PEER, &at);
        config.shared_memory = shm_cases[i].receiver_shares;
        TD_AUTO(td_net) *receiver = open_with(config);
        config = connecting(TD_NET_ZENOH_PEER, &at);
        config.shared_memory = shm_cases[i].sender_shares;
        config.shm_pool_bytes = shm_cases[i].pool_bytes;
        TD_AUTO(td_net) *sender = open_with(config);
        if (td_net_zenoh_shm_refusal(sender)) {
            print_message("%s\n", td_net_zenoh_shm_refusal(sender));
            skip();
        }

        atomic_int link = 0;
        TD_AUTO(td_net_decl) *links = NULL;
        assert_int_equal(
            TD_OK, td_net_links(sender, remember_link, &link, &links, NULL));
        assert_true(until(is_set, &link));
        assert_int_equal(1 + shm_cases[i].link_shares, atomic_load(&link));

        TD_AUTO(td_net_pub) *pub = publish(sender);
        inbox box;
        inbox_open(&box, receiver);
        send_and_check(pub, &box, 300000);
        assert_int_equal(shm_cases[i].arrives_whole, atomic_load(&box.whole));
        assert_int_equal(shm_cases[i].misses, td_net_zenoh_shm_misses(sender));
        inbox_close(&box);
    }
}

// Mappings of shared-memory pools in this process, its own and its peers'.
static size_t pools_mapped(void)
{
    char line[512];
    size_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start = 0, end = 0;
        if (!strstr(line, ".zenoh")) continue;
        assert_int_equal(2, sscanf(line, "%lx-%lx", &start, &end));
        count += end - start >= 64UL << 20;
    }
    fclose(maps);
    return count;
}

static bool are_mapped(void *user)
{
    return pools_mapped() == *(const size_t *)user;
}

static void a_peers_pool_goes_when_the_peer_leaves(void **state)
{
    (void)state;
    size_t own = 1;
    endpoint at;
    endpoint_tcp(&at);
    td_net_zenoh_config config = listening(TD_NET_ZENOH_PEER, &at);
    config.shared_memory = true;
    TD_AUTO(td_net) *receiver = open_with(config);
    if (td_net_zenoh_shm_refusal(receiver)) skip();
    assert_int_equal(own, pools_mapped());
    inbox box;
    inbox_open(&box, receiver);
    config = connecting(TD_NET_ZENOH_PEER, &at);
    config.shared_memory = true;
    td_net *sender = open_with(config);
    td_net_pub *pub = publish(sender);
    send_and_check(pub, &box, 300000);
    assert_int_equal(own + 2, pools_mapped());

    inbox_close(&box);
    td_net_unpublish(pub);
    td_net_close(sender);
    assert_true(until(are_mapped, &own));
}

static void a_unix_socket_works_and_is_removed(void **state)
{
    (void)state;
    unix_dir dir;
    unix_dir_init(&dir);
    td_net *receiver = open_with(listening(TD_NET_ZENOH_PEER, &dir.at));
    TD_AUTO(td_net) *sender = open_with(connecting(TD_NET_ZENOH_PEER, &dir.at));
    {
        TD_AUTO(td_net_pub) *pub = publish(sender);
        inbox box;
        inbox_open(&box, receiver);
        send_and_check(pub, &box, 200000);
        inbox_close(&box);
    }
    td_net_close(receiver);
    assert_int_not_equal(0, access(dir.socket, F_OK));
    assert_int_not_equal(0, access(dir.lock, F_OK));
    unix_dir_done(&dir);
}

// As kill -9 leaves them: a bound socket that nobody serves, and its lock file.
static void leave_stale_files(const unix_dir *dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strcpy(at.sun_path, dir->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&at, sizeof at));
    close(fd);
    FILE *lock = fopen(dir->lock, "w");
    assert_non_null(lock);
    fclose(lock);
}

static void a_stale_unix_socket_is_taken_over(void **state)
{
    (void)state;
    unix_dir dir;
    unix_dir_init(&dir);
    leave_stale_files(&dir);
    td_net_close(open_with(listening(TD_NET_ZENOH_PEER, &dir.at)));
    unix_dir_done(&dir);
}

static void a_unix_socket_in_use_is_refused(void **state)
{
    (void)state;
    unix_dir dir;
    unix_dir_init(&dir);
    td_net *first = open_with(listening(TD_NET_ZENOH_PEER, &dir.at));
    td_net_zenoh_config config = listening(TD_NET_ZENOH_PEER, &dir.at);
    td_net *second = NULL;
    td_errinfo info = {0};
    assert_int_equal(TD_ERR_EXISTS, td_net_zenoh_open(&config, &second, &info));
    assert_non_null(strstr(info.text, dir.socket));
    td_net_close(first);
    unix_dir_done(&dir);
}

static void a_file_is_not_taken_for_a_stale_socket(void **state)
{
    (void)state;
    unix_dir dir;
    unix_dir_init(&dir);
    FILE *file = fopen(dir.socket, "w");
    assert_non_null(file);
    fclose(file);
    td_net_zenoh_config config = listening(TD_NET_ZENOH_PEER, &dir.at);
    td_net *net = NULL;
    assert_int_equal(TD_ERR_EXISTS, td_net_zenoh_open(&config, &net, NULL));
    assert_int_equal(0, access(dir.socket, F_OK));
    unix_dir_done(&dir);
}

typedef struct self_ender {
    td_net_decl *decl;
    atomic_int outcome; // 1 + the td_err of undeclaring inside the callback
} self_ender;

static void end_itself(void *user, const td_net_sample *sample)
{
    (void)sample;
    self_ender *ender = user;
    atomic_store(&ender->outcome, 1 + (int)td_net_undeclare(ender->decl));
}

static void undeclaring_inside_a_callback_is_refused(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    TD_AUTO(td_net) *a = open_with(listening(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net) *b = open_with(connecting(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net_pub) *pub = publish(b);
    self_ender ender = {0};
    assert_int_equal(
        TD_OK, td_net_subscribe(a, KEY, end_itself, &ender, &ender.decl, NULL));
    assert_true(until(is_matched, pub));
    td_slice part = {"x", 1};
    assert_int_equal(TD_OK, td_net_put(pub, &part, 1, NULL, NULL));
    assert_true(until(is_set, &ender.outcome));
    assert_int_equal(1 + TD_ERR_BUSY, atomic_load(&ender.outcome));
    assert_int_equal(TD_OK, td_net_undeclare(ender.decl));
}

typedef struct gate {
    atomic_int open;
} gate;

static void wait_at_gate(void *user, const td_net_sample *sample)
{
    (void)sample;
    gate *shut = user;
    while (!atomic_load(&shut->open)) {
        usleep(1000);
    }
}

static void drops_on_a_congested_link_are_counted(void **state)
{
    (void)state;
    endpoint at;
    endpoint_tcp(&at);
    TD_AUTO(td_net) *receiver = open_with(listening(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net) *sender = open_with(connecting(TD_NET_ZENOH_PEER, &at));
    TD_AUTO(td_net_pub) *pub = publish(sender);
    gate shut = {0};
    td_net_decl *decl = NULL;
    assert_int_equal(TD_OK, td_net_subscribe(receiver, KEY, wait_at_gate, &shut,
                                             &decl, NULL));
    assert_true(until(is_matched, pub));
    assert_int_equal(0, td_net_zenoh_drops(sender));

    uint8_t *bytes = pattern(1 << 20);
    td_slice part = {bytes, 1 << 20};
    for (int i = 0; i < 500 && td_net_zenoh_drops(sender) == 0; i++) {
        assert_int_equal(TD_OK, td_net_put(pub, &part, 1, NULL, NULL));
    }
    free(bytes);
    atomic_store(&shut.open, 1);
    assert_true(td_net_zenoh_drops(sender) > 0);
    assert_int_equal(TD_OK, td_net_undeclare(decl));
}

static void the_version_reads_as_one(void **state)
{
    (void)state;
    unsigned major = 0, minor = 0, patch = 0;
    char rest = 0;
    assert_int_equal(3, sscanf(td_net_zenoh_version(), "%u.%u.%u%c", &major,
                               &minor, &patch, &rest));
}

// Runs last: whatever went before must not have panicked.
static void no_panic_was_caught(void **state)
{
    (void)state;
    assert_int_equal(0, td_net_zenoh_panics());
}

static td_err open_tcp_pair(void *state, td_net **ret_a, td_net **ret_b)
{
    endpoint at;
    endpoint_tcp(&at);
    td_net_zenoh_config config = listening(TD_NET_ZENOH_PEER, &at);
    config.shared_memory = state != NULL;
    *ret_a = open_with(config);
    config = connecting(TD_NET_ZENOH_PEER, &at);
    config.shared_memory = state != NULL;
    *ret_b = open_with(config);
    return TD_OK;
}

static td_err open_unix_pair(void *state, td_net **ret_a, td_net **ret_b)
{
    unix_dir *dir = state;
    unix_dir_init(dir);
    *ret_a = open_with(listening(TD_NET_ZENOH_PEER, &dir->at));
    *ret_b = open_with(connecting(TD_NET_ZENOH_PEER, &dir->at));
    return TD_OK;
}

static void close_unix_pair(void *state)
{
    unix_dir_done(state);
}

static int run_own(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_in_use_is_refused_and_named),
        cmocka_unit_test(what_is_no_endpoint_is_refused),
        cmocka_unit_test(a_client_must_know_whom_to_connect_to),
        cmocka_unit_test(a_client_may_open_before_its_router),
        cmocka_unit_test(a_client_returns_to_a_restarted_router),
        cmocka_unit_test(a_client_that_never_connects_closes),
        cmocka_unit_test(a_router_joins_two_clients),
        cmocka_unit_test(shared_memory_is_used_when_both_can),
        cmocka_unit_test(a_peers_pool_goes_when_the_peer_leaves),
        cmocka_unit_test(a_unix_socket_works_and_is_removed),
        cmocka_unit_test(a_stale_unix_socket_is_taken_over),
        cmocka_unit_test(a_unix_socket_in_use_is_refused),
        cmocka_unit_test(a_file_is_not_taken_for_a_stale_socket),
        cmocka_unit_test(undeclaring_inside_a_callback_is_refused),
        cmocka_unit_test(drops_on_a_congested_link_are_counted),
        cmocka_unit_test(the_version_reads_as_one),
        cmocka_unit_test(no_panic_was_caught),
    };
    return cmocka_run_group_tests_name("zenoh", tests, NULL, NULL);
}

int main(void)
{
    static unix_dir dir;
    static const char shared[] = "shared memory";
    const td_net_fixture fixtures[] = {
        {"zenoh over tcp", NULL, open_tcp_pair, NULL, td_net_conformance_poll},
        {"zenoh over a unix socket", &dir, open_unix_pair, close_unix_pair,
         td_net_conformance_poll},
        {"zenoh with shared memory", (void *)(uintptr_t)shared, open_tcp_pair,
         NULL, td_net_conformance_poll},
    };
    int failed = 0;
    for (size_t i = 0; i < TD_COUNT_OF(fixtures); i++) {
        failed += td_net_conformance(&fixtures[i]);
    }
    return failed + run_own();
}
