// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_MEASURE_H
#define TD_SERVER_REPORT_MEASURE_H

// The times and sizes of requests, as they go into the stats: most of it when
// nobody waits for it any more, since that takes longer than to measure it.
// With the device's lock held.

#include "server/core/core.h"
#include "server/report/stats.h"

void td_server_measure_arrival_locked(td_server_stats *stats,
                                      const td_server_request *request);

// Its batch has ended: for how long it had waited.
void td_server_measure_wait_locked(td_server_stats *stats,
                                   const td_server_request *request,
                                   int64_t now_ns);

// Answered: that, what the model took, and its part of the device's time.
void td_server_measure_answer_locked(td_server_stats *stats,
                                     const td_server_request *request,
                                     int64_t now_ns, int64_t service_ns,
                                     int64_t device_ns);

// A batch of so many has ended; `depth` waited at its start, with them.
void td_server_measure_batch_locked(td_server_stats *stats, int64_t now_ns,
                                    uint32_t members, uint64_t depth);

#endif
