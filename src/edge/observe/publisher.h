// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_PUBLISHER_H
#define TD_EDGE_OBSERVE_PUBLISHER_H

// Sends observations: a thread of its own makes images of the newest frames,
// encodes them with the state that the driver read, and puts the message.
//
// Newest wins: an observation that waits here is replaced by the next.

#include "edge/observe/frames.h"
#include "edge/observe/observe.h"
#include "edge/observe/task.h"
#include "edge/session/link.h"

typedef struct td_edge_publisher_config {
    td_net *net;
    const td_wire_route *route; // this and all else is borrowed
    const char *client;
    const td_edge_core_settings *core;
    td_edge_frames_config frames;
    td_edge_similar_settings similar;
    td_edge_link *link;
    td_edge_task *task;
} td_edge_publisher_config;

typedef struct td_edge_publisher td_edge_publisher;

// Declares the topic of observations; the thread starts later. Owned by the
// caller. NOMEM, INVALID (a JPEG quality or tolerance out of range), and as
// td_net_publish() and td_thread_start().
TD_NODISCARD td_err
td_edge_publisher_new(const td_edge_publisher_config *config,
                      td_edge_publisher **ret_publisher, td_errinfo *info);
TD_NODISCARD td_err td_edge_publisher_start(td_edge_publisher *publisher,
                                            td_errinfo *info);

// In this order: ends the thread; leaves the network, waiting until the
// transport has given every buffer back; frees, when nobody sends any more.
// Each does what comes before it too. Block.
void td_edge_publisher_end(td_edge_publisher *publisher);
void td_edge_publisher_leave(td_edge_publisher *publisher);
void td_edge_publisher_free(td_edge_publisher *publisher);
TD_AUTO_FREE(td_edge_publisher, td_edge_publisher_free)

// Observation `seq` is going to be sent: makes its images meanwhile. Tick's
// thread; never blocks.
void td_edge_publisher_prepare(td_edge_publisher *publisher, uint64_t seq);

// Sends it. True: another that waited is replaced by it. Driver's thread, or
// the one that calls td_edge_pull(); never blocks.
bool td_edge_publisher_send(td_edge_publisher *publisher,
                            const td_edge_outgoing *outgoing);

typedef struct td_edge_publisher_stats {
    uint64_t stale[TD_WIRE_MAX_IMAGES]; // observations not sent for want of a
                                        // new frame, by camera
    const td_hist *skew_ns; // between a frame and its state; borrowed
} td_edge_publisher_stats;

// Any thread.
td_edge_publisher_stats
td_edge_publisher_stats_get(const td_edge_publisher *publisher);

#endif
