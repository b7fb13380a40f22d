// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_MEASURE_H
#define TD_SIM_MEASURE_H

// What a setting does to a robot: runs a simulation and watches its first one.

#include "sim/sim.h"

typedef struct td_sim_figures {
    double seconds;      // of virtual time, from the start to the end
    uint64_t steps;      // executed
    uint64_t asks;       // observations sent
    double ask_hz;       // the same a second
    double idle_share;   // of the ticks from the first command on
    double starve_share; // of the asks: those that did not come in time
    double age_p50_ms;   // of executed actions, since their observation
    double age_p99_ms;
    double rms_accel; // of the commands, by second differences
} td_sim_figures;

// Blocks for as long as it computes. Takes the place of the configuration's
// watch. What td_sim_run() fails with.
TD_NODISCARD td_err td_sim_measure(const td_sim_config *config,
                                   td_sim_figures *ret_figures,
                                   td_errinfo *info);

// The figures of the fixed g, in rows of a chunk, that asks least of those that
// idle and starve no more than this. NOTFOUND if none does.
TD_NODISCARD td_err td_sim_best_fixed(const td_sim_config *config,
                                      double idle_share, double starve_share,
                                      td_sim_figures *ret_figures,
                                      td_errinfo *info);

#endif
