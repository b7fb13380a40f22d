// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_PLANNING_H
#define TD_CLI_PLANNING_H

// Plans that were tried out in simulation, for `tendon plan`.

#include "plan/admit/admit.h"
#include "sim/factory.h"

#define TD_CLI_PLANNING_RUNS 3
#define TD_CLI_PLANNING_S 60 // of each, without the warm-up

typedef struct td_cli_planning {
    td_config_factory *factory;
    td_config_profiles *profiles;
    td_plan_options options;
    double unsafe, failing; // as td_sim_factory_options
} td_cli_planning;

// Simulates a plan as all are that are written. Free with
// td_sim_factory_result_done(). As td_sim_factory_run().
TD_NODISCARD td_err td_cli_planning_simulate(const td_cli_planning *in,
                                             const td_config_factory *factory,
                                             const td_plan *plan,
                                             td_sim_factory_result *ret_result,
                                             td_errinfo *info);

// Plans, and plans more carefully while the simulation finds a robot that
// misses its deadlines. Owned by the caller. As td_plan_make(); MISMATCH with
// the robot when it still does.
TD_NODISCARD td_err td_cli_planning_make(const td_cli_planning *in,
                                         const td_config_factory *factory,
                                         td_plan **ret_plan,
                                         double *ret_qualified_hz,
                                         td_errinfo *info);

// What came of those who are in a factory and not in a plan.
typedef struct td_cli_newcomers {
    size_t count, admitted;
    td_plan_admit_result last; // of them; zero without any
} td_cli_newcomers;

// Admits them one by one, with every model and robot staying where it is, until
// one is not. The admission is owned by the caller. As td_plan_admission_new().
TD_NODISCARD td_err td_cli_planning_admit(const td_cli_planning *in,
                                          const td_config_factory *factory,
                                          const td_plan *before,
                                          td_plan_admission **ret_admission,
                                          td_cli_newcomers *ret_newcomers,
                                          td_errinfo *info);

// The plan for a factory that runs by another one: newcomers are admitted where
// that is nearly as good as a new plan, which moves as little as it can. Says
// on the standard output which it is, and why. Owned by the caller. As
// td_cli_planning_make(). `loud`: whether it may print.
TD_NODISCARD td_err td_cli_planning_replan(const td_cli_planning *in,
                                           const td_plan *before, bool loud,
                                           td_plan **ret_plan,
                                           double *ret_qualified_hz,
                                           td_errinfo *info);

#endif
