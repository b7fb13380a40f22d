// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_INTAKE_INTERNAL_H
#define TD_SERVER_INTAKE_INTERNAL_H

// What the two ways of an observation share: intake.c and later.c.

#include "server/intake/intake.h"

struct td_server_intake {
    const td_server_context *ctx;
    td_server_device *device;
    td_server_pool *pool;
    td_server_notify *notify;
    const td_server_health *health;
    _Atomic(td_wire_decoder *) decoder; // the transport's threads'; NULL: out
    td_wire_decoder *loop_decoder;      // the loop's
    int64_t silence_ns; // when the loop looks; guarded by the device's lock
};

// intake.c: the steps that both ways have.

// A request with this message, which stays the caller's if there is no memory
// (NULL). Any thread.
td_server_request *td_server_intake_request(td_server_intake *intake,
                                            td_server_client *client,
                                            td_net_msg *msg,
                                            int64_t arrived_ns);
TD_NODISCARD td_err td_server_intake_decode(td_wire_decoder *decoder,
                                            td_server_request *request,
                                            td_errinfo *info);
// Whether it says that it is of the client on whose key it came. MISMATCH.
TD_NODISCARD td_err td_server_intake_check_client(
    const td_server_client *client, td_wire_text id, td_errinfo *info);
// That, and whether it fits the model.
TD_NODISCARD td_err td_server_intake_check(const td_server_intake *intake,
                                           const td_server_request *request,
                                           td_errinfo *info);
// Counts one that goes no further.
void td_server_intake_end_locked(const td_server_intake *intake,
                                 td_server_client *client,
                                 td_server_outcome outcome, uint64_t seq);
// Into the core, where it waits, and which may hand older ones back. What the
// core does not take is given back, or its robot is notified.
void td_server_intake_wait_locked(td_server_intake *intake,
                                  td_server_request *request);
// Counts one that nobody reads. Consumes it. Any thread.
void td_server_intake_drop_reset(const td_server_context *ctx, td_net_msg *msg);

#endif
