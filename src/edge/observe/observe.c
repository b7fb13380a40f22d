// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/observe.h"

#include "base/clock.h"

const float *td_edge_observe_state(const td_edge_core_settings *settings,
                                   const td_edge_outgoing *outgoing,
                                   uint32_t *ret_count)
{
    *ret_count = settings->policy_states > 0 ? settings->policy_states
                                             : settings->channels;
    return settings->policy_states > 0 ? outgoing->policy_state
                                       : outgoing->state;
}

static void fill_state(const td_edge_core_settings *settings,
                       const td_edge_outgoing *outgoing, int64_t now_ns,
                       td_wire_obs *obs)
{
    uint32_t channels;
    const float *state = td_edge_observe_state(settings, outgoing, &channels);
    obs->state = (td_wire_tensor){
        .dtype = TD_WIRE_F32,
        .rank = 1,
        .shape = {channels},
        .data = state,
        .size = channels * sizeof(float),
        .has_age = true,
        .age_us = (now_ns - outgoing->captured_ns) / TD_NS_PER_US,
    };
}

void td_edge_observe_fill(const td_edge_core_settings *settings,
                          const char *client, const char *task,
                          const td_edge_outgoing *outgoing, int64_t now_ns,
                          td_wire_obs *ret_obs)
{
    const td_edge_request *request = &outgoing->request;
    *ret_obs = (td_wire_obs){
        .ident = {settings->boot, settings->route, outgoing->episode,
                  request->seq},
        .client = td_wire_text_of(client),
        .task = td_wire_text_of(task),
        .cursor = outgoing->cursor,
        .priority = settings->priority,
        .urgency = settings->urgency,
        .has_steps_remaining = true,
        .steps_remaining = request->left,
        .must_go = request->must_go,
        .has_budget = true,
        .budget_us = request->left * settings->period_ns / TD_NS_PER_US,
        .has_again = request->again > 0,
        .again = request->again,
    };
    if (request->again == 0) fill_state(settings, outgoing, now_ns, ret_obs);
}
