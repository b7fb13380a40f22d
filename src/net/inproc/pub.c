// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/hub.h"
#include "net/inproc/keyexpr.h"

#include <stdlib.h>
#include <string.h>

// Smaller messages are not lent, so that who asks meets both answers.
#define LEND_BYTES ((size_t)16 * 1024)

typedef struct publisher {
    td_net_pub base;
    td_inproc_session *session;
    bool reliable;
    td_inproc_decl **matches; // subscribers, as of `version`
    size_t match_count;
    uint64_t version;
    char key[];
} publisher;

typedef struct loan {
    td_net_loan base;
    publisher *pub;
    td_inproc_msg *msg;
} loan;

static bool subscribes(const td_inproc_decl *decl, const char *key)
{
    return decl->kind == TD_INPROC_SUBSCRIBER &&
           td_inproc_keyexpr_intersects(decl->keyexpr, key);
}

td_err td_inproc_pub_new(td_net *net, const char *key, const td_net_qos *qos,
                         td_net_pub **ret_pub, td_errinfo *info)
{
    td_inproc_session *session = (td_inproc_session *)net;
    TD_TRY(td_inproc_keyexpr_check_key(key, info));
    size_t key_bytes = strlen(key) + 1;
    publisher *pub = calloc(1, sizeof *pub + key_bytes);
    if (!pub) return TD_ERR_NOMEM;
    pub->base.ops = net->ops;
    pub->session = session;
    pub->reliable = qos->reliable;
    memcpy(pub->key, key, key_bytes);

    td_inproc_hub_lock(session->hub);
    session->declared++;
    td_inproc_hub_unlock(session->hub);
    *ret_pub = &pub->base;
    return TD_OK;
}

void td_inproc_pub_free(td_net_pub *base)
{
    publisher *pub = (publisher *)base;
    td_inproc_hub_lock(pub->session->hub);
    pub->session->declared--;
    td_inproc_hub_unlock(pub->session->hub);
    free(pub->matches);
    free(pub);
}

static td_err find_matches(publisher *pub)
{
    const td_net_hub *hub = pub->session->hub;
    if (pub->version == hub->version) return TD_OK;
    size_t count = 0;
    for (td_inproc_decl *decl = hub->decls; decl; decl = decl->next)
        count += subscribes(decl, pub->key);
    td_inproc_decl **matches =
        reallocarray(pub->matches, count + 1, sizeof(td_inproc_decl *));
    if (!matches) return TD_ERR_NOMEM;
    pub->matches = matches;
    pub->match_count = 0;
    for (td_inproc_decl *decl = hub->decls; decl; decl = decl->next)
        if (subscribes(decl, pub->key)) matches[pub->match_count++] = decl;
    pub->version = hub->version;
    return TD_OK;
}

static void lose(td_inproc_session *session)
{
    session->lost++;
    session->hub->stats.lost++;
}

static void push_copy(publisher *pub, td_inproc_decl *decl,
                      td_inproc_direction *direction, td_inproc_msg *msg)
{
    td_net_hub *hub = pub->session->hub;
    td_inproc_delivery copy = {
        .due_ns = td_inproc_link_due_ns(direction, td_inproc_hub_now_ns(hub),
                                        pub->reliable),
        .what = TD_INPROC_SAMPLE,
        .from = pub->session->id,
        .to = decl->session->id,
        .decl = decl,
        .msg = td_inproc_msg_ref(msg)};
    if (td_inproc_hub_push(hub, &copy) != TD_OK) lose(pub->session);
}

static td_err send_to(publisher *pub, td_inproc_decl *decl, td_inproc_msg *msg)
{
    td_net_hub_stats *stats = &pub->session->hub->stats;
    td_inproc_direction *direction = NULL;
    TD_TRY(td_inproc_link_get(pub->session, decl->session, &direction));

    stats->put++;
    if (direction->cut) {
        stats->cut++;
        return TD_OK;
    }
    const td_net_faults *faults = &direction->faults;
    if (!pub->reliable && td_inproc_link_chance(direction, faults->loss)) {
        lose(pub->session);
        return TD_OK;
    }
    push_copy(pub, decl, direction, msg);
    if (!pub->reliable && td_inproc_link_chance(direction, faults->duplicate)) {
        stats->duplicated++;
        push_copy(pub, decl, direction, msg);
    }
    return TD_OK;
}

static td_err send_to_all(publisher *pub, td_inproc_msg *msg)
{
    TD_TRY(find_matches(pub));
    for (size_t i = 0; i < pub->match_count; i++)
        TD_TRY(send_to(pub, pub->matches[i], msg));
    return TD_OK;
}

static td_err send(publisher *pub, td_inproc_msg *msg)
{
    td_inproc_hub_lock(pub->session->hub);
    td_err err = send_to_all(pub, msg);
    td_inproc_hub_unlock(pub->session->hub);
    return err;
}

td_err td_inproc_pub_put(td_net_pub *base, const td_slice *parts, size_t count,
                         td_net_release release, void *user)
{
    publisher *pub = (publisher *)base;
    TD_AUTO(td_inproc_msg) *msg = NULL;
    td_err err = td_inproc_msg_new(base->ops, pub->key, parts, count, &msg);
    if (release) release(user);
    return err == TD_OK ? send(pub, msg) : err;
}

td_err td_inproc_pub_lend(td_net_pub *base, size_t size, td_net_loan **ret_loan)
{
    publisher *pub = (publisher *)base;
    if (size < LEND_BYTES) return TD_ERR_UNSUPPORTED;
    loan *lent = calloc(1, sizeof *lent);
    if (!lent) return TD_ERR_NOMEM;
    td_err err = td_inproc_msg_new_blank(base->ops, pub->key, size, &lent->msg);
    if (err != TD_OK) {
        free(lent);
        return err;
    }
    lent->base = (td_net_loan){base->ops, lent->msg->bytes};
    lent->pub = pub;
    *ret_loan = &lent->base;
    return TD_OK;
}

td_err td_inproc_pub_loan_put(td_net_loan *base)
{
    const loan *lent = (const loan *)base;
    td_err err = send(lent->pub, lent->msg);
    td_inproc_pub_loan_free(base);
    return err;
}

// Here everything is joined, lent or not.
td_err td_inproc_pub_put_loans(td_net_pub *base, const td_slice *parts,
                               size_t count, td_net_loan *const *loans,
                               size_t loan_count)
{
    (void)loans, (void)loan_count;
    return td_inproc_pub_put(base, parts, count, NULL, NULL);
}

void td_inproc_pub_loan_free(td_net_loan *base)
{
    td_inproc_msg_unref(((loan *)base)->msg);
    free(base);
}

static td_err find_listener(const publisher *pub, bool *ret_matched)
{
    bool found = false;
    for (td_inproc_decl *decl = pub->session->hub->decls; decl && !found;
         decl = decl->next) {
        if (!subscribes(decl, pub->key)) continue;
        td_inproc_direction *direction = NULL;
        TD_TRY(td_inproc_link_get(pub->session, decl->session, &direction));
        found = !direction->cut;
    }
    *ret_matched = found;
    return TD_OK;
}

td_err td_inproc_pub_matched(const td_net_pub *base, bool *ret_matched)
{
    const publisher *pub = (const publisher *)base;
    td_inproc_hub_lock(pub->session->hub);
    td_err err = find_listener(pub, ret_matched);
    td_inproc_hub_unlock(pub->session->hub);
    return err;
}
