// SPDX-License-Identifier: Apache-2.0
#include "net/conformance/tests.h"

#include "base/clock.h"

#include <string.h>

static td_net_decl *watch(td_net *net, td_conf_recorder *rec)
{
    td_net_decl *decl = NULL;
    assert_int_equal(
        td_net_watch(net, "suite/token/*", td_conf_on_alive, rec, &decl, NULL),
        TD_OK);
    return decl;
}

static td_net_decl *show(td_net *net, const char *key)
{
    td_net_decl *decl = NULL;
    assert_int_equal(td_net_token(net, key, &decl, NULL), TD_OK);
    return decl;
}

void td_conf_token_is_seen_until_undeclared(void **state)
{
    td_conf_world *world = *state;
    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    td_net_decl *watcher = watch(world->a, &rec);
    td_net_decl *token = show(world->b, "suite/token/one");
    td_conf_until_notified(world, &rec, "suite/token/one", true);
    assert_int_equal(td_net_undeclare(token), TD_OK);
    td_conf_until_notified(world, &rec, "suite/token/one", false);
    assert_int_equal(td_conf_count(&rec), 2);
    assert_int_equal(td_net_undeclare(watcher), TD_OK);
    td_conf_recorder_done(&rec);
}

void td_conf_watcher_sees_tokens_already_there(void **state)
{
    td_conf_world *world = *state;
    td_net_decl *one = show(world->b, "suite/token/one");
    td_net_decl *two = show(world->b, "suite/token/two");
    td_net_decl *other = show(world->b, "suite/other/one");
    td_conf_flush(world);
    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    td_net_decl *watcher = watch(world->a, &rec);
    td_conf_until_notified(world, &rec, "suite/token/one", true);
    td_conf_until_notified(world, &rec, "suite/token/two", true);
    td_conf_flush(world);
    assert_int_equal(td_conf_count(&rec), 2);
    assert_int_equal(td_net_undeclare(watcher), TD_OK);
    assert_int_equal(td_net_undeclare(other), TD_OK);
    assert_int_equal(td_net_undeclare(two), TD_OK);
    assert_int_equal(td_net_undeclare(one), TD_OK);
    td_conf_recorder_done(&rec);
}

void td_conf_links_are_reported_up_and_down(void **state)
{
    td_conf_world *world = *state;
    char peer[64];
    strncpy(peer, td_net_id(world->b), sizeof peer);
    peer[sizeof peer - 1] = '\0';

    td_conf_recorder rec;
    td_conf_recorder_init(&rec);
    td_net_decl *links = NULL;
    assert_int_equal(
        td_net_links(world->a, td_conf_on_link, &rec, &links, NULL), TD_OK);
    td_conf_until_notified(world, &rec, peer, true);
    assert_true(strlen(td_conf_at(&rec, 0).text) > 0);
    td_net_close(TD_TAKE(world->b));
    td_conf_until_notified(world, &rec, peer, false);
    assert_int_equal(td_net_undeclare(links), TD_OK);
    td_conf_recorder_done(&rec);
}

void td_conf_each_session_has_its_own_id(void **state)
{
    const td_conf_world *world = *state;
    assert_true(strlen(td_net_id(world->a)) > 0);
    assert_string_not_equal(td_net_id(world->a), td_net_id(world->b));
}

static td_err try_publish(td_net *net, const char *key, td_errinfo *info)
{
    TD_AUTO(td_net_pub) *pub = NULL;
    return td_net_publish(net, key, &(td_net_qos){TD_NET_DATA, true, false},
                          &pub, info);
}

static td_err try_subscribe(td_net *net, const char *key, td_errinfo *info)
{
    TD_AUTO(td_net_decl) *decl = NULL;
    return td_net_subscribe(net, key, td_conf_on_sample, NULL, &decl, info);
}

static td_err try_serve(td_net *net, const char *key, td_errinfo *info)
{
    TD_AUTO(td_net_decl) *decl = NULL;
    return td_net_serve(net, key, td_conf_on_request, NULL, &decl, info);
}

static td_err try_query(td_net *net, const char *key, td_errinfo *info)
{
    return td_net_query(net, key, (td_slice){0}, TD_NS_PER_S, td_conf_on_sample,
                        td_conf_on_done, NULL, info);
}

static td_err try_token(td_net *net, const char *key, td_errinfo *info)
{
    TD_AUTO(td_net_decl) *decl = NULL;
    return td_net_token(net, key, &decl, info);
}

static td_err try_watch(td_net *net, const char *key, td_errinfo *info)
{
    TD_AUTO(td_net_decl) *decl = NULL;
    return td_net_watch(net, key, td_conf_on_alive, NULL, &decl, info);
}

static const struct {
    const char *name;
    td_err (*attempt)(td_net *net, const char *key, td_errinfo *info);
    const char *key;
} refused[] = {
    {"publish on nothing", try_publish, ""},
    {"publish with a leading slash", try_publish, "/a"},
    {"publish with a trailing slash", try_publish, "a/"},
    {"publish with an empty chunk", try_publish, "a//b"},
    {"publish on a wildcard", try_publish, "a/*"},
    {"publish with a question mark", try_publish, "a?b"},
    {"publish with a hash", try_publish, "a#b"},
    {"subscribe to nothing", try_subscribe, ""},
    {"subscribe with an empty chunk", try_subscribe, "a//*"},
    {"subscribe to part of a chunk", try_subscribe, "a/b*"},
    {"serve nothing", try_serve, ""},
    {"ask with an empty chunk", try_query, "a//b"},
    {"token on a wildcard", try_token, "a/**"},
    {"token with a trailing slash", try_token, "a/"},
    {"watch with an empty chunk", try_watch, "a//b"},
};

void td_conf_bad_keys_are_refused_with_a_text(void **state)
{
    td_conf_world *world = *state;
    for (size_t i = 0; i < TD_COUNT_OF(refused); i++) {
        td_errinfo info = {""};
        td_err err = refused[i].attempt(world->a, refused[i].key, &info);
        if (err != TD_ERR_INVALID || !*info.text)
            fail_msg("%s: %s, '%s'", refused[i].name, td_err_name(err),
                     info.text);
    }
}
