// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/share.h"

#include <assert.h>
#include <stdlib.h>

#define NEWEST_WEIGHT 8 // an eighth of each new cost

td_err td_sched_share_init(td_sched_share *share, uint32_t clients,
                           uint32_t tiers, uint32_t runs)
{
    assert(tiers <= TD_SCHED_MAX_TIERS);
    size_t flows = (size_t)clients * tiers;
    *share = (td_sched_share){
        .clients = clients,
        .tiers = tiers,
        .runs = runs,
        .tags_ns = calloc(flows, sizeof *share->tags_ns),
        .counts = calloc(flows, sizeof *share->counts),
    };
    td_err err = share->tags_ns && share->counts ? TD_OK : TD_ERR_NOMEM;
    for (uint32_t i = 0; i < tiers && err == TD_OK; i++)
        err = td_sched_heap_init(&share->waiting[i], clients);
    if (err != TD_OK) td_sched_share_done(share);
    return err;
}

void td_sched_share_done(td_sched_share *share)
{
    for (uint32_t i = 0; i < share->tiers; i++)
        td_sched_heap_done(&share->waiting[i]);
    free(share->tags_ns);
    free(share->counts);
    *share = (td_sched_share){0};
}

static size_t flow(const td_sched_share *share, uint32_t tier, uint32_t client)
{
    return (size_t)tier * share->clients + client;
}

static void raise_floor(td_sched_share *share, uint32_t tier)
{
    if (share->waiting[tier].count == 0) return;
    int64_t least_ns = td_sched_heap_key(&share->waiting[tier]);
    if (least_ns > share->floors_ns[tier]) share->floors_ns[tier] = least_ns;
}

void td_sched_share_waits(td_sched_share *share, uint32_t tier, uint32_t client)
{
    size_t at = flow(share, tier, client);
    if (share->counts[at]++ > 0) return;
    if (share->tags_ns[at] < share->floors_ns[tier])
        share->tags_ns[at] = share->floors_ns[tier];
    td_sched_heap_put(&share->waiting[tier], client, share->tags_ns[at]);
}

void td_sched_share_leaves(td_sched_share *share, uint32_t tier,
                           uint32_t client)
{
    size_t at = flow(share, tier, client);
    assert(share->counts[at] > 0);
    if (--share->counts[at] > 0) return;
    raise_floor(share, tier);
    td_sched_heap_take(&share->waiting[tier], client);
}

void td_sched_share_charge(td_sched_share *share, uint32_t tier,
                           uint32_t client, int64_t device_ns)
{
    if (device_ns == 0) return;
    size_t at = flow(share, tier, client);
    share->tags_ns[at] += device_ns;
    if (share->counts[at] > 0)
        td_sched_heap_put(&share->waiting[tier], client, share->tags_ns[at]);
}

void td_sched_share_forgive(td_sched_share *share, uint32_t tier,
                            uint32_t client)
{
    int64_t tag_ns = share->tags_ns[flow(share, tier, client)];
    int64_t floor_ns = tag_ns - share->runs * share->mean_run_ns;
    if (floor_ns > share->floors_ns[tier]) share->floors_ns[tier] = floor_ns;
}

void td_sched_share_measured(td_sched_share *share, int64_t device_ns)
{
    if (device_ns < 1) device_ns = 1;
    if (share->mean_run_ns == 0)
        share->mean_run_ns = device_ns;
    else
        share->mean_run_ns += (device_ns - share->mean_run_ns) / NEWEST_WEIGHT;
}

void td_sched_share_forget(td_sched_share *share, uint32_t client)
{
    for (uint32_t tier = 0; tier < share->tiers; tier++) {
        size_t at = flow(share, tier, client);
        assert(share->counts[at] == 0);
        share->tags_ns[at] = 0;
    }
}

int64_t td_sched_share_limit_ns(td_sched_share *share, uint32_t tier)
{
    if (share->runs == 0) return INT64_MAX;
    raise_floor(share, tier);
    return share->floors_ns[tier] + share->runs * share->mean_run_ns;
}
