// SPDX-License-Identifier: Apache-2.0
#include "edge/core/inflight.h"

#include <assert.h>

const char *td_edge_outcome_name(td_edge_outcome outcome)
{
    static const char *const names[] = {
#define TD_EDGE_OUTCOME_NAME(name, text) text,
        TD_EDGE_OUTCOMES(TD_EDGE_OUTCOME_NAME)
#undef TD_EDGE_OUTCOME_NAME
    };
    return names[outcome];
}

void td_edge_inflight_send(td_edge_inflight *inflight, const td_edge_sent *sent)
{
    assert(sent->seq > 0);
    td_edge_sent *entry = &inflight->entries[sent->seq % TD_EDGE_INFLIGHT_MAX];
    td_edge_inflight_end(inflight, entry->seq, TD_EDGE_UNANSWERED);
    *entry = *sent;
    td_edge_sent *asked =
        &inflight->entries[sent->again % TD_EDGE_INFLIGHT_MAX];
    if (sent->again > 0 && asked->seq == sent->again) asked->repeated = true;
    inflight->sent++;
    inflight->outcomes[TD_EDGE_PENDING]++;
}

bool td_edge_inflight_find(const td_edge_inflight *inflight, uint64_t seq,
                           td_edge_sent *ret_sent)
{
    const td_edge_sent *entry = &inflight->entries[seq % TD_EDGE_INFLIGHT_MAX];
    if (seq == 0 || entry->seq != seq) return false;
    *ret_sent = *entry;
    return true;
}

void td_edge_inflight_end(td_edge_inflight *inflight, uint64_t seq,
                          td_edge_outcome outcome)
{
    td_edge_sent sent;
    if (!td_edge_inflight_find(inflight, seq, &sent)) return;
    inflight->entries[seq % TD_EDGE_INFLIGHT_MAX] = (td_edge_sent){0};
    inflight->outcomes[TD_EDGE_PENDING]--;
    inflight->outcomes[outcome]++;
}

void td_edge_inflight_end_all(td_edge_inflight *inflight,
                              td_edge_outcome outcome)
{
    for (size_t i = 0; i < TD_EDGE_INFLIGHT_MAX; i++)
        td_edge_inflight_end(inflight, inflight->entries[i].seq, outcome);
}

int64_t td_edge_inflight_oldest(const td_edge_inflight *inflight,
                                uint64_t after, uint64_t upto,
                                int64_t otherwise_ns)
{
    int64_t oldest_ns = otherwise_ns;
    for (size_t i = 0; i < TD_EDGE_INFLIGHT_MAX; i++) {
        const td_edge_sent *entry = &inflight->entries[i];
        if (entry->seq <= after || entry->seq > upto) continue;
        if (entry->captured_ns < oldest_ns) oldest_ns = entry->captured_ns;
    }
    return oldest_ns;
}
