// SPDX-License-Identifier: Apache-2.0
#include "server/report/measure.h"

#include "base/clock.h"
#include "server/core/align.h"

void td_server_measure_arrival_locked(td_server_stats *stats,
                                      const td_server_request *request)
{
    uint32_t number = request->client->number;
    td_server_align_ages ages;
    td_server_align_ages_of(&request->obs, &ages);
    td_server_stats_record(stats, TD_SERVER_SPREAD_PAYLOAD, number,
                           request->arrived_ns, (int64_t)request->size);
    if (ages.count > 0)
        td_server_stats_record(stats, TD_SERVER_SPREAD_STALENESS, number,
                               request->arrived_ns, ages.oldest_us);
}

void td_server_measure_wait_locked(td_server_stats *stats,
                                   const td_server_request *request,
                                   int64_t now_ns)
{
    int64_t wait_ns = request->started_ns - request->arrived_ns;
    td_server_stats_record(stats, TD_SERVER_SPREAD_WAIT,
                           request->client->number, now_ns,
                           wait_ns / TD_NS_PER_US);
}

void td_server_measure_answer_locked(td_server_stats *stats,
                                     const td_server_request *request,
                                     int64_t now_ns, int64_t service_ns,
                                     int64_t device_ns)
{
    uint32_t number = request->client->number;
    td_server_measure_wait_locked(stats, request, now_ns);
    td_server_stats_record(stats, TD_SERVER_SPREAD_INFERENCE, number, now_ns,
                           service_ns / TD_NS_PER_US);
    td_server_stats_record(stats, TD_SERVER_SPREAD_E2E, number, now_ns,
                           (now_ns - request->arrived_ns) / TD_NS_PER_US);
    td_server_stats_count(stats, TD_SERVER_COUNT_DEVICE_US, number,
                          (uint64_t)(device_ns / TD_NS_PER_US));
}

void td_server_measure_batch_locked(td_server_stats *stats, int64_t now_ns,
                                    uint32_t members, uint64_t depth)
{
    td_server_stats_record(stats, TD_SERVER_SPREAD_BATCH, TD_SERVER_NOBODY,
                           now_ns, members);
    td_server_stats_record(stats, TD_SERVER_SPREAD_DEPTH, TD_SERVER_NOBODY,
                           now_ns, (int64_t)depth);
}
