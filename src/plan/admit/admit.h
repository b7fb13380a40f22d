// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_ADMIT_ADMIT_H
#define TD_PLAN_ADMIT_ADMIT_H

// A robot more in a factory at work, without moving a model or another robot:
// it is routed to servers that have room for it. Where none has room at its
// class's rate, the robots of one server share what it can do.
//
// Pure. One thread; a few microseconds, since what servers can take was
// computed when the admission was made.

#include "plan/plan.h"

#define TD_PLAN_VERDICTS(X)                                                    \
    X(ADMITTED, "admitted")                                                    \
    X(SLOWER, "admitted, and others are slower")                               \
    X(REPLAN, "only with a new plan")

typedef enum td_plan_verdict {
#define TD_PLAN_VERDICT_ENUM(name, text) TD_PLAN_##name,
    TD_PLAN_VERDICTS(TD_PLAN_VERDICT_ENUM)
#undef TD_PLAN_VERDICT_ENUM
        TD_PLAN_VERDICT_COUNT
} td_plan_verdict;

const char *td_plan_verdict_text(td_plan_verdict verdict);

typedef struct td_plan_admit_result {
    td_plan_verdict verdict;
    double before_hz, after_hz; // weighted actions of all robots
    char reason[256];           // for a person
} td_plan_admit_result;

typedef struct td_plan_admission td_plan_admission;

// Copies the plan; borrows the factory and the profiles that it was made from.
// Owned by the caller. MISMATCH for a plan of another factory; as
// td_plan_make().
TD_NODISCARD td_err td_plan_admission_new(const td_config_factory *factory,
                                          const td_config_profiles *profiles,
                                          const td_plan *plan,
                                          td_plan_admission **ret_admission,
                                          td_errinfo *info);
void td_plan_admission_free(td_plan_admission *admission);
TD_AUTO_FREE(td_plan_admission, td_plan_admission_free)

// The plan as it is now; borrowed until it is used again.
const td_plan *td_plan_admission_plan(const td_plan_admission *admission);

// Admits a robot of a task, or says why not; then nothing has changed.
// `global_hz` is what a new plan with it would give (weighted; 0: not known):
// admission that gives less than 90 % of that is not worth it. EXISTS for a
// robot that is there, INVALID, NOMEM.
TD_NODISCARD td_err td_plan_admit(td_plan_admission *admission,
                                  const char *name, const char *key,
                                  uint32_t task, double global_hz,
                                  td_plan_admit_result *ret_result);

#endif
