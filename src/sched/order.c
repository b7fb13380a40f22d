// SPDX-License-Identifier: Apache-2.0
#include "sched/order.h"

#include <assert.h>
#include <stdlib.h>

static const td_sched_order_match empty = {.until_ns = TD_SCHED_NEVER_NS,
                                           .winner = TD_SCHED_NOBODY};

static bool by_arrival(const td_sched_order *order)
{
    td_sched_strategy strategy = order->policy->strategy;
    return strategy == TD_SCHED_PRIORITY_TIERED ||
           strategy == TD_SCHED_BATCH_OPTIMIZED;
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
        .matches = calloc((size_t)2 * room, sizeof *order->matches),
        .stands = calloc(capacity, sizeof *order->stands),
        .free_seats = calloc(capacity, sizeof *order->free_seats),
    };
    if (!order->matches || !order->stands || !order->free_seats ||
        td_sched_heap_init(&order->arrivals, capacity) != TD_OK) {
        td_sched_order_done(order);
        return TD_ERR_NOMEM;
    }
    order->matches[1] = empty;
    return TD_OK;
}

void td_sched_order_done(td_sched_order *order)
{
    free(order->matches);
    free(order->stands);
    free(order->free_seats);
    td_sched_heap_done(&order->arrivals);
    *order = (td_sched_order){0};
}

static void look(td_sched_order *order, uint32_t leaf, int64_t now_ns)
{
    td_sched_order_match *m = &order->matches[leaf];
    if (m->winner == TD_SCHED_NOBODY) return;
    td_sched_stand *stand = &order->stands[m->seat];
    td_sched_strategy_stand(order->policy, &order->facts[m->winner],
                            order->run_ns, now_ns, stand);
    m->until_ns = stand->until_ns;
}

// Of the two below a match, who goes first, and until when all of it holds.
static void play(td_sched_order *order, uint32_t at, int64_t now_ns)
{
    const td_sched_order_match *a = &order->matches[(size_t)2 * at];
    const td_sched_order_match *b = a + 1;
    td_sched_order_match result = *a;
    if (b->until_ns < result.until_ns) result.until_ns = b->until_ns;
    if (a->winner == TD_SCHED_NOBODY) {
        result.winner = b->winner;
        result.seat = b->seat;
    } else if (b->winner != TD_SCHED_NOBODY) {
        int64_t turn_ns;
        if (!td_sched_strategy_before(&order->stands[a->seat],
                                      &order->stands[b->seat], now_ns,
                                      &turn_ns)) {
            result.winner = b->winner;
            result.seat = b->seat;
        }
        if (turn_ns < result.until_ns) result.until_ns = turn_ns;
    }
    order->matches[at] = result;
}

static void lower(td_sched_order *order, uint32_t at, int64_t until_ns)
{
    for (; at >= 1 && order->matches[at].until_ns > until_ns; at /= 2)
        order->matches[at].until_ns = until_ns;
}

// After the leaf of `number` has changed. Above a match that somebody else won
// and still wins, only the certainty can be less.
static void play_above(td_sched_order *order, uint32_t seat, uint32_t number,
                       int64_t now_ns)
{
    for (uint32_t at = (order->width + seat) / 2; at >= 1; at /= 2) {
        uint32_t was = order->matches[at].winner;
        play(order, at, now_ns);
        const td_sched_order_match *is = &order->matches[at];
        if (is->winner != was || was == number) continue;
        lower(order, at / 2, is->until_ns);
        return;
    }
}

// Plays again what is no longer certain.
static void refresh(td_sched_order *order, uint32_t at, int64_t now_ns)
{
    if (order->matches[at].until_ns > now_ns) return;
    if (at >= order->width) {
        look(order, at, now_ns);
        return;
    }
    refresh(order, 2 * at, now_ns);
    refresh(order, 2 * at + 1, now_ns);
    play(order, at, now_ns);
}

static void play_all(td_sched_order *order, int64_t now_ns)
{
    for (uint32_t at = order->width - 1; at >= 1; at--)
        play(order, at, now_ns);
}

void td_sched_order_again(td_sched_order *order, int64_t now_ns)
{
    if (by_arrival(order)) return;
    for (uint32_t seat = 0; seat < order->width; seat++)
        look(order, order->width + seat, now_ns);
    play_all(order, now_ns);
}

// The leaves move, and everything is played again: once for each doubling.
static void widen(td_sched_order *order, int64_t now_ns)
{
    uint32_t width = order->width;
    for (uint32_t seat = 0; seat < width; seat++)
        order->matches[2 * width + seat] = order->matches[width + seat];
    for (uint32_t seat = width; seat < 2 * width; seat++)
        order->matches[2 * width + seat] = empty;
    order->width = 2 * width;
    play_all(order, now_ns);
}

uint32_t td_sched_order_put(td_sched_order *order, uint32_t number,
                            int64_t now_ns)
{
    assert(order->count < order->capacity);
    order->count++;
    if (by_arrival(order)) {
        int64_t arrival = (int64_t)order->facts[number].order;
        td_sched_heap_put(&order->arrivals, number, arrival);
        return number;
    }
    uint32_t seat = order->free_count > 0
                        ? order->free_seats[--order->free_count]
                        : order->seats_used++;
    if (seat >= order->width) widen(order, now_ns);
    td_sched_order_match *leaf = &order->matches[order->width + seat];
    leaf->winner = number;
    leaf->seat = seat;
    td_sched_order_changed(order, seat, now_ns);
    return seat;
}

void td_sched_order_changed(td_sched_order *order, uint32_t seat,
                            int64_t now_ns)
{
    if (by_arrival(order)) return;
    look(order, order->width + seat, now_ns);
    play_above(order, seat, order->matches[order->width + seat].winner, now_ns);
}

void td_sched_order_take(td_sched_order *order, uint32_t seat, int64_t now_ns)
{
    order->count--;
    if (by_arrival(order)) {
        td_sched_heap_take(&order->arrivals, seat);
        return;
    }
    uint32_t number = order->matches[order->width + seat].winner;
    order->matches[order->width + seat] = empty;
    order->free_seats[order->free_count++] = seat;
    play_above(order, seat, number, now_ns);
}

uint32_t td_sched_order_best(td_sched_order *order, int64_t now_ns)
{
    if (by_arrival(order))
        return order->count > 0 ? td_sched_heap_first(&order->arrivals)
                                : TD_SCHED_NOBODY;
    refresh(order, 1, now_ns);
    return order->matches[1].winner;
}

td_sched_stand td_sched_order_stand(const td_sched_order *order)
{
    if (!by_arrival(order)) return order->stands[order->matches[1].seat];
    return (td_sched_stand){
        .order = (uint64_t)td_sched_heap_key(&order->arrivals),
        .until_ns = TD_SCHED_NEVER_NS,
        .band = TD_SCHED_BAND_SCORED,
    };
}
