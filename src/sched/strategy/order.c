// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/order.h"

#include <assert.h>
#include <stdlib.h>

static const td_sched_order_match empty = {
    .rank = {.until_ns = TD_SCHED_NEVER_NS, .nobody = true},
    .turn_ns = TD_SCHED_NEVER_NS,
    .winner = TD_SCHED_NOBODY};

static bool is_fixed(const td_sched_order *order)
{
    return !td_sched_strategy_scores(order->policy->strategy);
}

// Smaller first: a turn, or the arrival.
static int64_t fixed_key(const td_sched_order *order, uint32_t number)
{
    const td_sched_facts *facts = &order->facts[number];
    bool turns = order->policy->strategy == TD_SCHED_ROUND_ROBIN;
    return (int64_t)(turns ? facts->round : facts->order);
}

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t power = 1;
    while (power < at_least)
        power *= 2;
    return power;
}

td_err td_sched_order_init(td_sched_order *order, uint32_t capacity,
                           const td_sched_policy *policy,
                           const td_sched_facts *facts)
{
    uint32_t room = power_of_two(capacity);
    *order = (td_sched_order){
        .policy = policy,
        .facts = facts,
        .capacity = capacity,
        .width = 1,
        .matches = aligned_alloc(_Alignof(td_sched_order_match),
                                 (size_t)2 * room * sizeof *order->matches),
        .free_leaves = calloc(capacity, sizeof *order->free_leaves),
    };
    if (!order->matches || !order->free_leaves ||
        td_sched_heap_init(&order->fixed, capacity) != TD_OK) {
        td_sched_order_done(order);
        return TD_ERR_NOMEM;
    }
    order->matches[1] = empty;
    order->first = (td_sched_rank){.until_ns = TD_SCHED_NEVER_NS};
    return TD_OK;
}

void td_sched_order_done(td_sched_order *order)
{
    free(order->matches);
    free(order->free_leaves);
    td_sched_heap_done(&order->fixed);
    *order = (td_sched_order){0};
}

static void look(td_sched_order *order, uint32_t at, int64_t now_ns)
{
    td_sched_order_match *m = &order->matches[at];
    if (m->winner == TD_SCHED_NOBODY) return;
    td_sched_strategy_rank(order->policy, &order->facts[m->winner],
                           order->run_ns, now_ns, &m->rank);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

// Until when a match and the two below it hold.
static int64_t certain_ns(const td_sched_order_match *below, int64_t turn_ns)
{
    return earlier(turn_ns,
                   earlier(below[0].rank.until_ns, below[1].rank.until_ns));
}

// Of the two below a match, who goes first, and until when all of it holds.
static void play(td_sched_order *order, uint32_t at, int64_t now_ns)
{
    const td_sched_order_match *below = &order->matches[(size_t)2 * at];
    td_sched_order_match *m = &order->matches[at];
    int64_t turn_ns;
    bool first = td_sched_strategy_before(&below[0].rank, &below[1].rank,
                                          now_ns, &turn_ns);
    *m = below[first ? 0 : 1];
    m->rank.until_ns = certain_ns(below, turn_ns);
    m->turn_ns = turn_ns;
}

static void lower(td_sched_order *order, uint32_t at, int64_t until_ns)
{
    for (; at >= 1 && order->matches[at].rank.until_ns > until_ns; at /= 2)
        order->matches[at].rank.until_ns = until_ns;
}

// After the leaf of `number` has changed. Above a match that somebody else won
// and still wins, only the certainty can be less.
static void play_above(td_sched_order *order, uint32_t leaf, uint32_t number,
                       int64_t now_ns)
{
    for (uint32_t at = (order->width + leaf) / 2; at >= 1; at /= 2) {
        uint32_t was = order->matches[at].winner;
        play(order, at, now_ns);
        const td_sched_order_match *is = &order->matches[at];
        if (is->winner != was || was == number) continue;
        lower(order, at / 2, is->rank.until_ns);
        return;
    }
}

static bool is_certain(const td_sched_order_match *m, int64_t now_ns)
{
    return m->rank.until_ns > now_ns;
}

// Plays again what is no longer certain; this one is not. True: the winner is
// another, or has another rank.
static bool refresh(td_sched_order *order, uint32_t at, int64_t now_ns)
{
    td_sched_order_match *m = &order->matches[at];
    if (at >= order->width) {
        look(order, at, now_ns);
        return true;
    }
    const td_sched_order_match *below = &order->matches[(size_t)2 * at];
    bool first_moved =
        !is_certain(&below[0], now_ns) && refresh(order, 2 * at, now_ns);
    bool second_moved =
        !is_certain(&below[1], now_ns) && refresh(order, 2 * at + 1, now_ns);
    if (!first_moved && !second_moved && m->turn_ns > now_ns) {
        m->rank.until_ns = certain_ns(below, m->turn_ns);
        return false;
    }
    uint32_t was = m->winner;
    play(order, at, now_ns);
    return m->winner != was ||
           (m->winner == below->winner ? first_moved : second_moved);
}

static void play_all(td_sched_order *order, int64_t now_ns)
{
    for (uint32_t at = order->width - 1; at >= 1; at--)
        play(order, at, now_ns);
}

void td_sched_order_again(td_sched_order *order, int64_t now_ns)
{
    if (is_fixed(order)) return;
    for (uint32_t leaf = 0; leaf < order->width; leaf++)
        look(order, order->width + leaf, now_ns);
    play_all(order, now_ns);
}

// The leaves move, and everything is played again: once for each doubling.
static void widen(td_sched_order *order, int64_t now_ns)
{
    uint32_t width = order->width;
    for (uint32_t leaf = 0; leaf < width; leaf++)
        order->matches[2 * width + leaf] = order->matches[width + leaf];
    for (uint32_t leaf = width; leaf < 2 * width; leaf++)
        order->matches[2 * width + leaf] = empty;
    order->width = 2 * width;
    play_all(order, now_ns);
}

uint32_t td_sched_order_put(td_sched_order *order, uint32_t number,
                            int64_t now_ns)
{
    assert(order->count < order->capacity);
    order->count++;
    if (is_fixed(order)) {
        td_sched_heap_put(&order->fixed, number, fixed_key(order, number));
        return number;
    }
    uint32_t leaf = order->free_count > 0
                        ? order->free_leaves[--order->free_count]
                        : order->leaves_used++;
    if (leaf >= order->width) widen(order, now_ns);
    td_sched_order_match *match = &order->matches[order->width + leaf];
    match->winner = number;
    match->leaf = leaf;
    td_sched_order_changed(order, leaf, now_ns);
    return leaf;
}

void td_sched_order_changed(td_sched_order *order, uint32_t leaf,
                            int64_t now_ns)
{
    if (is_fixed(order)) return;
    look(order, order->width + leaf, now_ns);
    play_above(order, leaf, order->matches[order->width + leaf].winner, now_ns);
}

void td_sched_order_changes(td_sched_order *order, uint32_t leaf, int64_t at_ns)
{
    if (!is_fixed(order)) lower(order, order->width + leaf, at_ns);
}

void td_sched_order_take(td_sched_order *order, uint32_t leaf, int64_t now_ns)
{
    order->count--;
    if (is_fixed(order)) {
        td_sched_heap_take(&order->fixed, leaf);
        return;
    }
    uint32_t number = order->matches[order->width + leaf].winner;
    order->matches[order->width + leaf] = empty;
    order->free_leaves[order->free_count++] = leaf;
    play_above(order, leaf, number, now_ns);
}

uint32_t td_sched_order_best(td_sched_order *order, int64_t now_ns)
{
    if (is_fixed(order)) {
        if (order->count == 0) return TD_SCHED_NOBODY;
        order->first.order = (uint64_t)td_sched_heap_key(&order->fixed);
        return td_sched_heap_first(&order->fixed);
    }
    if (!is_certain(&order->matches[1], now_ns))
        (void)refresh(order, 1, now_ns);
    return order->matches[1].winner;
}

const td_sched_rank *td_sched_order_best_rank(const td_sched_order *order)
{
    return is_fixed(order) ? &order->first : &order->matches[1].rank;
}
