// SPDX-License-Identifier: Apache-2.0
// What happens between two sessions of a hub: delay, loss, doubling, order,
// partitions.
//
// A direction is one way between two sessions, made when it is first used. It
// draws its own random numbers, seeded by the hub's seed and both names, so
// that one session more changes nothing for the others and a run can be
// repeated.
//
// Rules say which faults hold between which names; the last that fits wins.
// They may change while messages are on the way: that holds for what is sent
// from then on. What is reliable is never lost and never overtakes what was
// sent before it in the same direction. A cut link drops what is on its way
// over it, and tells both ends that the link is down; tokens of the far end are
// then gone.
//
// Every function runs with the hub's lock held, unless it is one of
// td_net_hub's own, which take it.
#include "net/inproc/hub.h"

#include <stdlib.h>
#include <string.h>

#define REORDER_NS TD_NS_PER_MS // where there is no jitter to take one more of

td_inproc_session *td_inproc_link_session(const td_net_hub *hub,
                                          const char *name)
{
    for (size_t i = 0; i < hub->session_count; i++)
        if (hub->sessions[i] && strcmp(hub->sessions[i]->name, name) == 0)
            return hub->sessions[i];
    return NULL;
}

td_inproc_session *td_inproc_link_session_by_id(const td_net_hub *hub,
                                                uint64_t id)
{
    for (size_t i = 0; i < hub->session_count; i++)
        if (hub->sessions[i] && hub->sessions[i]->id == id)
            return hub->sessions[i];
    return NULL;
}

static bool rule_fits(const td_inproc_rule *rule, const td_inproc_session *from,
                      const td_inproc_session *to)
{
    return (!rule->from || strcmp(rule->from, from->name) == 0) &&
           (!rule->to || strcmp(rule->to, to->name) == 0);
}

static td_net_faults faults_between(const td_inproc_session *from,
                                    const td_inproc_session *to)
{
    const td_net_hub *hub = from->hub;
    if (from != to)
        for (size_t i = hub->rule_count; i > 0; i--)
            if (rule_fits(&hub->rules[i - 1], from, to))
                return hub->rules[i - 1].faults;
    return (td_net_faults){0};
}

// FNV-1a over both names, so that a direction draws the same numbers whoever
// else is there.
static uint64_t names_hash(const char *from, const char *to)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    const char *names[] = {from, to};
    for (size_t i = 0; i < TD_COUNT_OF(names); i++)
        for (const char *at = names[i];; at++) {
            hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
            if (!*at) break;
        }
    return hash;
}

static td_err make_room(td_inproc_session *from, size_t count)
{
    if (from->out_count >= count) return TD_OK;
    td_inproc_direction **out =
        reallocarray(from->out, count, sizeof(td_inproc_direction *));
    if (!out) return TD_ERR_NOMEM;
    for (size_t i = from->out_count; i < count; i++)
        out[i] = NULL;
    from->out = out;
    from->out_count = count;
    return TD_OK;
}

td_err td_inproc_link_get(td_inproc_session *from, const td_inproc_session *to,
                          td_inproc_direction **ret_direction)
{
    TD_TRY(make_room(from, to->slot + 1));
    td_inproc_direction *direction = from->out[to->slot];
    if (!direction) {
        direction = calloc(1, sizeof *direction);
        if (!direction) return TD_ERR_NOMEM;
        direction->faults = faults_between(from, to);
        td_rand_fork(&from->hub->rand, names_hash(from->name, to->name),
                     &direction->rand);
        from->out[to->slot] = direction;
    }
    *ret_direction = direction;
    return TD_OK;
}

void td_inproc_link_forget(td_net_hub *hub, const td_inproc_session *session)
{
    for (size_t i = 0; i < hub->session_count; i++) {
        td_inproc_session *other = hub->sessions[i];
        if (!other || other->out_count <= session->slot) continue;
        free(other->out[session->slot]);
        other->out[session->slot] = NULL;
    }
}

bool td_inproc_link_chance(td_inproc_direction *direction, double probability)
{
    return probability > 0 && td_rand_unit(&direction->rand) < probability;
}

static int64_t trip_ns(td_inproc_direction *direction)
{
    const td_net_faults *faults = &direction->faults;
    if (faults->jitter_ns == 0) return faults->delay_ns;
    return faults->delay_ns + (int64_t)(td_rand_unit(&direction->rand) *
                                        (double)faults->jitter_ns);
}

int64_t td_inproc_link_due_ns(td_inproc_direction *direction, int64_t now_ns,
                              bool reliable)
{
    const td_net_faults *faults = &direction->faults;
    int64_t due_ns = now_ns + trip_ns(direction);
    if (!reliable) {
        if (td_inproc_link_chance(direction, faults->reorder))
            due_ns += faults->jitter_ns ? faults->jitter_ns : REORDER_NS;
        return due_ns;
    }
    // A loss costs the time of sending it again.
    if (td_inproc_link_chance(direction, faults->loss))
        due_ns += trip_ns(direction);
    if (due_ns < direction->reliable_due_ns)
        due_ns = direction->reliable_due_ns;
    direction->reliable_due_ns = due_ns;
    return due_ns;
}

td_err td_inproc_link_send(td_inproc_session *from, td_inproc_session *to,
                           td_inproc_delivery delivery)
{
    td_inproc_direction *direction = NULL;
    td_err err = td_inproc_link_get(from, to, &direction);
    if (err != TD_OK || direction->cut) {
        td_inproc_msg_unref(delivery.msg);
        return err;
    }
    delivery.from = from->id;
    delivery.to = to->id;
    delivery.due_ns =
        td_inproc_link_due_ns(direction, td_inproc_hub_now_ns(from->hub), true);
    return td_inproc_hub_push(from->hub, &delivery);
}

static bool faults_valid(const td_net_faults *faults)
{
    const double chances[] = {faults->loss, faults->duplicate, faults->reorder};
    for (size_t i = 0; i < TD_COUNT_OF(chances); i++)
        if (!(chances[i] >= 0 && chances[i] <= 1)) return false;
    return faults->delay_ns >= 0 && faults->jitter_ns >= 0;
}

static bool same_name(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void rule_done(td_inproc_rule *rule)
{
    free(rule->from);
    free(rule->to);
}

static void remove_rule(td_net_hub *hub, const char *from, const char *to)
{
    for (size_t i = 0; i < hub->rule_count; i++) {
        td_inproc_rule *rule = &hub->rules[i];
        if (!same_name(rule->from, from) || !same_name(rule->to, to)) continue;
        rule_done(rule);
        memmove(rule, rule + 1, (hub->rule_count - i - 1) * sizeof *rule);
        hub->rule_count--;
        return;
    }
}

static td_err add_rule(td_net_hub *hub, const char *from, const char *to,
                       const td_net_faults *faults)
{
    td_inproc_rule rule = {.faults = *faults};
    if (from) rule.from = strdup(from);
    if (to) rule.to = strdup(to);
    td_inproc_rule *rules =
        reallocarray(hub->rules, hub->rule_count + 1, sizeof *rules);
    if (rules) hub->rules = rules;
    if (!rules || !rule.from != !from || !rule.to != !to) {
        rule_done(&rule);
        return TD_ERR_NOMEM;
    }
    hub->rules[hub->rule_count++] = rule;
    return TD_OK;
}

static void apply_rules(td_net_hub *hub)
{
    for (size_t i = 0; i < hub->session_count; i++) {
        td_inproc_session *from = hub->sessions[i];
        for (size_t j = 0; from && j < from->out_count; j++)
            if (from->out[j])
                from->out[j]->faults = faults_between(from, hub->sessions[j]);
    }
}

void td_inproc_link_rules_done(td_net_hub *hub)
{
    for (size_t i = 0; i < hub->rule_count; i++)
        rule_done(&hub->rules[i]);
    free(hub->rules);
}

td_err td_net_hub_faults(td_net_hub *hub, const char *from, const char *to,
                         const td_net_faults *faults)
{
    if (!faults_valid(faults)) return TD_ERR_INVALID;
    td_inproc_hub_lock(hub);
    remove_rule(hub, from, to);
    td_err err = add_rule(hub, from, to, faults);
    apply_rules(hub);
    td_inproc_hub_unlock(hub);
    return err;
}

typedef struct pair {
    const td_inproc_session *a, *b;
} pair;

// What tells of a token's life is the link's own knowledge, not on the link.
static bool crosses(const td_inproc_delivery *delivery, const void *user)
{
    const pair *cut = user;
    if (delivery->what == TD_INPROC_ALIVE) return false;
    return (delivery->from == cut->a->id && delivery->to == cut->b->id) ||
           (delivery->from == cut->b->id && delivery->to == cut->a->id);
}

static td_err notify_both(td_inproc_session *a, td_inproc_session *b, bool up)
{
    TD_TRY(td_inproc_decl_notify_tokens(a, b, up));
    TD_TRY(td_inproc_decl_notify_tokens(b, a, up));
    TD_TRY(td_inproc_decl_notify_link(a, b, up));
    return td_inproc_decl_notify_link(b, a, up);
}

static td_err set_cut(td_inproc_session *a, td_inproc_session *b, bool cut)
{
    td_inproc_direction *there = NULL;
    td_inproc_direction *back = NULL;
    TD_TRY(td_inproc_link_get(a, b, &there));
    TD_TRY(td_inproc_link_get(b, a, &back));
    if (there->cut == cut) return TD_OK;

    td_err err = cut ? notify_both(a, b, false) : TD_OK;
    there->cut = back->cut = cut;
    if (!cut) return notify_both(a, b, true);
    td_inproc_hub_discard(a->hub, crosses, &(pair){a, b});
    td_inproc_query_lose_server(a->hub, a->id, b->id);
    td_inproc_query_lose_server(a->hub, b->id, a->id);
    return err;
}

td_err td_net_hub_partition(td_net_hub *hub, const char *a, const char *b,
                            bool cut)
{
    td_inproc_hub_lock(hub);
    td_inproc_session *one = td_inproc_link_session(hub, a);
    td_inproc_session *other = td_inproc_link_session(hub, b);
    td_err err = TD_ERR_NOTFOUND;
    if (one && other)
        err = one == other ? TD_ERR_INVALID : set_cut(one, other, cut);
    td_inproc_hub_unlock(hub);
    return err;
}
