// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_GOLDEN_H
#define TD_WIRE_GOLDEN_H

// For tests: the messages of tests/golden/messages.py, as C sees them.

#include "tendon/wire.h"

extern const td_wire_obs td_wire_golden_obs_full, td_wire_golden_obs_least;
extern const td_wire_action td_wire_golden_action_full,
    td_wire_golden_action_verdict, td_wire_golden_action_error,
    td_wire_golden_action_least;
extern const td_wire_status td_wire_golden_status_full,
    td_wire_golden_status_least;
extern const td_wire_attach td_wire_golden_attach_full,
    td_wire_golden_attach_least;
extern const td_wire_reset td_wire_golden_reset_full,
    td_wire_golden_reset_least;
extern const td_wire_grant td_wire_golden_grant_full,
    td_wire_golden_grant_least;
extern const td_wire_metrics td_wire_golden_metrics_full,
    td_wire_golden_metrics_least;

#endif
