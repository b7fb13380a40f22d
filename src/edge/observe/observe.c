// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/observe.h"

#include "base/clock.h"

const float *td_edge_observe_state(const td_edge_settings *settings,
                                   const td_edge_outgoing *outgoing,
                                   uint32_t *ret_count)
{
    *ret_count = settings->told > 0 ? settings->told : settings->channels;
    return settings->told > 0 ? outgoing->told : outgoing->state;
}

static void fill_state(const td_edge_settings *settings,
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

void td_edge_observe(const td_edge_settings *settings, const char *client,
                     const char *task, const td_edge_outgoing *outgoing,
                     int64_t now_ns, td_wire_obs *ret_obs)
{
    const td_edge_asking *asking = &outgoing->asking;
    *ret_obs = (td_wire_obs){
        .ident = {settings->boot, settings->route, outgoing->episode,
                  asking->seq},
        .client = td_wire_text_of(client),
        .task = td_wire_text_of(task),
        .cursor = outgoing->cursor,
        .priority = settings->priority,
        .urgency = settings->urgency,
        .has_steps_remaining = true,
        .steps_remaining = asking->left,
        .must_go = asking->must_go,
        .has_budget = true,
        .budget_us = asking->left * settings->period_ns / TD_NS_PER_US,
        .has_again = asking->again > 0,
        .again = asking->again,
    };
    if (asking->again == 0) fill_state(settings, outgoing, now_ns, ret_obs);
}
