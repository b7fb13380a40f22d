// SPDX-License-Identifier: Apache-2.0
#include "sched/queue.h"

#include "sched/strategy/order.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DOUBLINGS 16

static const char *const overflow_names[] = {
#define TD_SCHED_OVERFLOW_NAME(name, text) text,
    TD_SCHED_OVERFLOWS(TD_SCHED_OVERFLOW_NAME)
#undef TD_SCHED_OVERFLOW_NAME
};

const char *td_sched_queue_overflow_name(td_sched_overflow overflow)
{
    return overflow_names[overflow];
}

td_err td_sched_queue_overflow_find(const char *name,
                                    td_sched_overflow *ret_overflow)
{
    for (uint32_t i = 0; i < TD_SCHED_OVERFLOW_COUNT; i++) {
        if (strcmp(name, overflow_names[i]) != 0) continue;
        *ret_overflow = (td_sched_overflow)i;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}

int64_t td_sched_queue_backoff_ns(const td_sched_queue_settings *settings,
                                  uint32_t attempt)
{
    uint32_t doublings = attempt - 1;
    if (doublings > MAX_DOUBLINGS) doublings = MAX_DOUBLINGS;
    return settings->backoff_ns << doublings;
}

td_err td_sched_queue_new(uint32_t capacity, uint32_t tiers,
                          td_sched_queue **ret_queue)
{
    TD_AUTO(td_sched_queue) *queue =
        calloc(1, sizeof *queue + tiers * sizeof queue->ends[0]);
    if (!queue) return TD_ERR_NOMEM;
    queue->tiers = tiers;
    queue->links = calloc(capacity, sizeof *queue->links);
    if (!queue->links) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < tiers; i++)
        queue->ends[i].oldest = queue->ends[i].newest = TD_SCHED_NOBODY;
    *ret_queue = TD_TAKE(queue);
    return TD_OK;
}

void td_sched_queue_free(td_sched_queue *queue)
{
    free(queue->links);
    free(queue);
}

// Whom a link leads to, or the end of the tier where it leads nowhere.
static uint32_t *after_of(td_sched_queue *queue, uint32_t number, uint32_t tier)
{
    return number == TD_SCHED_NOBODY ? &queue->ends[tier].oldest
                                     : &queue->links[number].after;
}

static uint32_t *before_of(td_sched_queue *queue, uint32_t number,
                           uint32_t tier)
{
    return number == TD_SCHED_NOBODY ? &queue->ends[tier].newest
                                     : &queue->links[number].before;
}

void td_sched_queue_put(td_sched_queue *queue, uint32_t number, uint32_t tier,
                        uint64_t order)
{
    uint32_t before = queue->ends[tier].newest;
    while (before != TD_SCHED_NOBODY && queue->links[before].order > order)
        before = queue->links[before].before;
    uint32_t *after = after_of(queue, before, tier);
    queue->links[number] = (td_sched_queue_links){before, *after, order};
    *before_of(queue, *after, tier) = number;
    *after = number;
    queue->count++;
}

void td_sched_queue_take(td_sched_queue *queue, uint32_t number, uint32_t tier)
{
    td_sched_queue_links gone = queue->links[number];
    *after_of(queue, gone.before, tier) = gone.after;
    *before_of(queue, gone.after, tier) = gone.before;
    queue->count--;
}

uint32_t td_sched_queue_victim(const td_sched_queue *queue, uint32_t tier)
{
    for (uint32_t lowest = queue->tiers; lowest-- > tier;)
        if (queue->ends[lowest].oldest != TD_SCHED_NOBODY)
            return queue->ends[lowest].oldest;
    return TD_SCHED_NOBODY;
}
