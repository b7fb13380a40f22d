// SPDX-License-Identifier: Apache-2.0
#include "server/load/duplicate.h"

#include "net/inproc/inproc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const td_wire_route route = {"lab", "trial", "act", "v1", "demo"};

typedef struct world {
    td_net_hub *hub;
    td_net *own, *other;
} world;

static world made;

static int setup(void **state)
{
    (void)state;
    made = (world){0};
    if (td_net_hub_new_threaded(1, &made.hub) != TD_OK) return -1;
    if (td_net_inproc_open(made.hub, "own", &made.own, NULL) != TD_OK ||
        td_net_inproc_open(made.hub, "other", &made.other, NULL) != TD_OK)
        return -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    td_net_close(made.own);
    td_net_close(made.other);
    td_net_hub_free(made.hub);
    return 0;
}

static td_net_decl *token(const char *key)
{
    td_net_decl *decl = NULL;
    assert_int_equal(td_net_token(made.other, key, &decl, NULL), TD_OK);
    return decl;
}

static void the_first_start_is_let_in(void **state)
{
    (void)state;
    TD_AUTO(td_net_decl) *neighbour =
        token("lab/trial/act/v1/demo/status/alive/gpu-2/7");
    TD_AUTO(td_net_decl) *elsewhere =
        token("lab/trial/act/v2/demo/status/alive/gpu-1/7");
    assert_non_null(neighbour);
    assert_non_null(elsewhere);
    assert_int_equal(
        td_server_duplicate_refuse(made.own, &route, "gpu-1", 0, NULL), TD_OK);
}

static void a_second_start_is_refused_by_name(void **state)
{
    (void)state;
    td_errinfo info = {""};
    TD_AUTO(td_net_decl) *first =
        token("lab/trial/act/v1/demo/status/alive/gpu-1/7");
    assert_non_null(first);
    assert_int_equal(
        td_server_duplicate_refuse(made.own, &route, "gpu-1", 0, &info),
        TD_ERR_EXISTS);
    assert_string_equal(info.text,
                        "server gpu-1 of act/v1/demo is already running (boot "
                        "7): stop it, or give this one another server_id");
}

static void *die(void *token)
{
    (void)td_net_undeclare(token);
    return NULL;
}

static void one_that_dies_meanwhile_is_in_nobodys_way(void **state)
{
    (void)state;
    td_net_decl *first = token("lab/trial/act/v1/demo/status/alive/gpu-1/7");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, die, first), 0);
    assert_int_equal(td_server_duplicate_refuse(made.own, &route, "gpu-1",
                                                60 * TD_NS_PER_S, NULL),
                     TD_OK);
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_start_is_let_in),
        TEST(a_second_start_is_refused_by_name),
        TEST(one_that_dies_meanwhile_is_in_nobodys_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
