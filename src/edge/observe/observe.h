// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_OBSERVE_OBSERVE_H
#define TD_EDGE_OBSERVE_OBSERVE_H

// What an observation says, apart from its images. Pure.

#include "edge/core/core.h"

// From the tick: an observation is to be sent.
typedef struct td_edge_request {
    uint64_t seq;
    uint32_t left; // rows
    bool must_go;
    uint64_t again; // only for this one's answer, which was missed; 0: observe
} td_edge_request;

// The same with the state that was read for it.
typedef struct td_edge_outgoing {
    td_edge_request request;
    int64_t captured_ns;
    uint64_t episode;
    uint64_t cursor;
    float state[TD_WIRE_MAX_CHANNELS];        // of the joints
    float policy_state[TD_WIRE_MAX_CHANNELS]; // to the policy, where that is
                                              // another
    bool has_policy_state;                    // that is known already
} td_edge_outgoing;

// The state that the policy sees, and how many numbers that is. Borrows
// `outgoing`.
const float *td_edge_observe_state(const td_edge_core_settings *settings,
                                   const td_edge_outgoing *outgoing,
                                   uint32_t *ret_count);

// As of `now_ns`, when the message is made. Borrows `client`, `task` and the
// state.
void td_edge_observe_fill(const td_edge_core_settings *settings,
                          const char *client, const char *task,
                          const td_edge_outgoing *outgoing, int64_t now_ns,
                          td_wire_obs *ret_obs);

#endif
