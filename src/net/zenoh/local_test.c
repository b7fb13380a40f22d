// SPDX-License-Identifier: Apache-2.0
// What needs one machine: shared memory and Unix sockets.
#include "net/zenoh/testing.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void remember_link(void *user, const td_net_link *link)
{
    atomic_store((atomic_int *)user, link->up ? 1 + link->shared_memory : 0);
}

static const struct {
    const char *name;
    bool sender_shares;
    bool receiver_shares;
    size_t pool_bytes;
    bool link_shares;
    bool arrives_whole;
    td_err lent;
    uint64_t misses;
} shm_cases[] = {
    {"both can", true, true, 0, true, true, TD_OK, 0},
    {"receiver cannot", true, false, 0, false, false, TD_ERR_UNSUPPORTED, 0},
    {"sender cannot", false, true, 0, false, false, TD_ERR_UNSUPPORTED, 0},
    {"pool too small", true, true, 65536, true, false, TD_ERR_FULL, 1},
};

static void assert_lent(td_net_pub *pub, size_t size, td_err expected)
{
    td_net_loan *loan = NULL;
    assert_int_equal(expected, td_net_lend(pub, size, &loan));
    if (loan) td_net_loan_free(loan);
}

static void shared_memory_is_used_when_both_can(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(shm_cases); i++) {
        print_message("  %s\n", shm_cases[i].name);
        td_ztest_endpoint at;
        td_ztest_tcp(&at);
        td_net_zenoh_config config = td_ztest_listening(TD_NET_ZENOH_PEER, &at);
        config.shared_memory = shm_cases[i].receiver_shares;
        TD_AUTO(td_net) *receiver = td_ztest_open(config);
        config = td_ztest_connecting(TD_NET_ZENOH_PEER, &at);
        config.shared_memory = shm_cases[i].sender_shares;
        config.shm_pool_bytes = shm_cases[i].pool_bytes;
        TD_AUTO(td_net) *sender = td_ztest_open(config);
        if (td_net_zenoh_shm_refusal(sender)) {
            print_message("%s\n", td_net_zenoh_shm_refusal(sender));
            skip();
        }

        atomic_int link = 0;
        TD_AUTO(td_net_decl) *links = NULL;
        assert_int_equal(
            TD_OK, td_net_links(sender, remember_link, &link, &links, NULL));
        assert_true(td_ztest_until(td_ztest_is_set, &link));
        assert_int_equal(1 + shm_cases[i].link_shares, atomic_load(&link));

        TD_AUTO(td_net_pub) *pub = td_ztest_publish(sender);
        assert_lent(pub, 300000, shm_cases[i].lent);
        td_ztest_inbox box;
        td_ztest_inbox_open(&box, receiver);
        td_ztest_send(pub, &box, 300000);
        assert_int_equal(shm_cases[i].arrives_whole, atomic_load(&box.whole));
        assert_int_equal(shm_cases[i].misses,
                         td_net_counts_get(sender).pool_misses);
        td_ztest_inbox_close(&box);
    }
}

#define POOL_BYTES ((size_t)8 << 20) // more than Zenoh's own segments

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
        count += end - start >= POOL_BYTES;
    }
    fclose(maps);
    return count;
}

static bool are_mapped(void *user)
{
    return pools_mapped() == *(const size_t *)user;
}

static td_net *open_sharing(td_net_zenoh_config config)
{
    config.shared_memory = true;
    config.shm_pool_bytes = POOL_BYTES;
    return td_ztest_open(config);
}

static bool is_down(void *user)
{
    return atomic_load((atomic_int *)user) == 0;
}

static void a_peers_pool_goes_when_the_peer_leaves(void **state)
{
    (void)state;
    size_t own = 1;
    for (int kept = 0; kept < 2; kept++) {
        print_message(kept ? "  a message is kept\n" : "  none is kept\n");
        td_ztest_endpoint at;
        td_ztest_tcp(&at);
        TD_AUTO(td_net) *receiver =
            open_sharing(td_ztest_listening(TD_NET_ZENOH_PEER, &at));
        if (td_net_zenoh_shm_refusal(receiver)) skip();
        assert_int_equal(own, pools_mapped());
        td_ztest_inbox box;
        td_ztest_inbox_open(&box, receiver);
        td_net *sender =
            open_sharing(td_ztest_connecting(TD_NET_ZENOH_PEER, &at));
        td_net_pub *pub = td_ztest_publish(sender);
        td_ztest_send(pub, &box, 300000);
        assert_int_equal(own + 2, pools_mapped());
        atomic_int link = 0;
        TD_AUTO(td_net_decl) *links = NULL;
        assert_int_equal(
            TD_OK, td_net_links(receiver, remember_link, &link, &links, NULL));
        assert_true(td_ztest_until(td_ztest_is_set, &link));

        if (!kept) td_ztest_inbox_close(&box);
        td_net_unpublish(pub);
        td_net_close(sender);
        assert_true(td_ztest_until(is_down, &link));
        if (kept) {
            assert_int_equal(own + 1, pools_mapped());
            td_ztest_inbox_close(&box);
        }
        assert_true(td_ztest_until(are_mapped, &own));
    }
}

static void a_unix_socket_works_and_is_removed(void **state)
{
    (void)state;
    td_ztest_unix dir;
    td_ztest_unix_init(&dir);
    td_net *receiver =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &dir.at));
    TD_AUTO(td_net) *sender =
        td_ztest_open(td_ztest_connecting(TD_NET_ZENOH_PEER, &dir.at));
    {
        TD_AUTO(td_net_pub) *pub = td_ztest_publish(sender);
        td_ztest_inbox box;
        td_ztest_inbox_open(&box, receiver);
        td_ztest_send(pub, &box, 200000);
        td_ztest_inbox_close(&box);
    }
    td_net_close(receiver);
    assert_int_not_equal(0, access(dir.socket, F_OK));
    assert_int_not_equal(0, access(dir.lock, F_OK));
    td_ztest_unix_done(&dir);
}

// As kill -9 leaves them: a bound socket that nobody serves, and its lock file.
static void leave_stale_files(const td_ztest_unix *dir)
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
    td_ztest_unix dir;
    td_ztest_unix_init(&dir);
    leave_stale_files(&dir);
    td_net_close(td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &dir.at)));
    td_ztest_unix_done(&dir);
}

static void a_unix_socket_in_use_is_refused(void **state)
{
    (void)state;
    td_ztest_unix dir;
    td_ztest_unix_init(&dir);
    td_net *first =
        td_ztest_open(td_ztest_listening(TD_NET_ZENOH_PEER, &dir.at));
    td_net_zenoh_config config = td_ztest_listening(TD_NET_ZENOH_PEER, &dir.at);
    td_net *second = NULL;
    td_errinfo info = {0};
    assert_int_equal(TD_ERR_EXISTS, td_net_zenoh_open(&config, &second, &info));
    assert_non_null(strstr(info.text, dir.socket));
    td_net_close(first);
    td_ztest_unix_done(&dir);
}

static void a_file_is_not_taken_for_a_stale_socket(void **state)
{
    (void)state;
    td_ztest_unix dir;
    td_ztest_unix_init(&dir);
    FILE *file = fopen(dir.socket, "w");
    assert_non_null(file);
    fclose(file);
    td_net_zenoh_config config = td_ztest_listening(TD_NET_ZENOH_PEER, &dir.at);
    td_net *net = NULL;
    assert_int_equal(TD_ERR_EXISTS, td_net_zenoh_open(&config, &net, NULL));
    assert_int_equal(0, access(dir.socket, F_OK));
    td_ztest_unix_done(&dir);
}

static void no_panic_was_caught(void **state)
{
    (void)state;
    assert_int_equal(0, td_net_zenoh_panics());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_memory_is_used_when_both_can),
        cmocka_unit_test(a_peers_pool_goes_when_the_peer_leaves),
        cmocka_unit_test(a_unix_socket_works_and_is_removed),
        cmocka_unit_test(a_stale_unix_socket_is_taken_over),
        cmocka_unit_test(a_unix_socket_in_use_is_refused),
        cmocka_unit_test(a_file_is_not_taken_for_a_stale_socket),
        cmocka_unit_test(no_panic_was_caught),
    };
    return cmocka_run_group_tests_name("zenoh on one machine", tests, NULL,
                                       NULL);
}
