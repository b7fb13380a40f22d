// SPDX-License-Identifier: Apache-2.0
// What was measured, as it is recorded: most of it when nobody waits for it any
// more, since that takes longer than to measure it.
#include "server/core/align.h"
#include "server/shell.h"

void td_server_measure_arrival_locked(const td_server_request *request)
{
    const td_server_peer *peer = request->peer;
    td_server_stats *stats = peer->server->stats;
    td_server_align_ages ages;
    td_server_align_ages_of(&request->obs, &ages);
    td_server_stats_record(stats, TD_SERVER_SPREAD_PAYLOAD, peer->number,
                           request->arrived_ns, (int64_t)request->size);
    if (ages.count > 0)
        td_server_stats_record(stats, TD_SERVER_SPREAD_STALENESS, peer->number,
                               request->arrived_ns, ages.oldest_us);
}

void td_server_measure_wait_locked(const td_server_request *request,
                                   int64_t now_ns)
{
    int64_t wait_ns = request->started_ns - request->arrived_ns;
    td_server_stats_record(request->peer->server->stats, TD_SERVER_SPREAD_WAIT,
                           request->peer->number, now_ns,
                           wait_ns / TD_NS_PER_US);
}

void td_server_measure_answer_locked(const td_server_request *request,
                                     int64_t now_ns, int64_t service_ns,
                                     int64_t device_ns)
{
    uint32_t number = request->peer->number;
    td_server_stats *stats = request->peer->server->stats;
    td_server_measure_wait_locked(request, now_ns);
    td_server_stats_record(stats, TD_SERVER_SPREAD_INFERENCE, number, now_ns,
                           service_ns / TD_NS_PER_US);
    td_server_stats_record(stats, TD_SERVER_SPREAD_E2E, number, now_ns,
                           (now_ns - request->arrived_ns) / TD_NS_PER_US);
    td_server_stats_count(stats, TD_SERVER_COUNT_DEVICE_US, number,
                          (uint64_t)(device_ns / TD_NS_PER_US));
}

void td_server_measure_batch_locked(const td_server_run *run, int64_t now_ns)
{
    td_server_stats *stats = run->server->stats;
    td_server_stats_record(stats, TD_SERVER_SPREAD_BATCH, TD_SERVER_NOBODY,
                           now_ns, run->members);
    td_server_stats_record(stats, TD_SERVER_SPREAD_DEPTH, TD_SERVER_NOBODY,
                           now_ns, (int64_t)run->depth);
}
