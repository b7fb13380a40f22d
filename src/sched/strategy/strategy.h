// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_STRATEGY_STRATEGY_H
#define TD_SCHED_STRATEGY_STRATEGY_H

// Who goes first: the six strategies, and the score that three of them use.
//
// A request has a rank at every moment (td_sched_rank): a value that changes
// along a line until a known time. That is what lets an order be kept without
// scoring everybody anew for each decision.
//
// The value is the published score. Where a deadline is known it stands in the
// place of cadence, steps and age, which only guess at it: among equal claims
// that is earliest deadline first, and what cannot be met, or will be asked
// anew before it is needed, falls back the less the more urgent it is. The rule
// is written down in docs/scheduling.md. A score of the user's own replaces all
// of it.
//
// Pure. To add a strategy: a row here, and its rank in strategy.c.

#include "base/err.h"
#include "sched/strategy/expr.h"
#include "sched/strategy/heap.h"
#include "tendon/score.h"

#include <math.h>
#include <stdbool.h>

// Name, text, whether it keeps priorities apart in tiers, whether it scores.
#define TD_SCHED_STRATEGIES(X)                                                 \
    X(DEADLINE_AWARE, "deadline_aware", false, true)                           \
    X(MODEL_DEADLINE, "model_deadline", false, true) /* models take turns */   \
    X(TIERED_DEADLINE, "tiered_deadline", true, true)                          \
    X(PRIORITY_TIERED, "priority_tiered", true, false)                         \
    X(BATCH_OPTIMIZED, "batch_optimized", false, false) /* full or timed */    \
    X(ROUND_ROBIN, "round_robin", false, false)         /* one of each client */

typedef enum td_sched_strategy {
#define TD_SCHED_STRATEGY_ENUM(name, text, tiered, scores) TD_SCHED_##name,
    TD_SCHED_STRATEGIES(TD_SCHED_STRATEGY_ENUM)
#undef TD_SCHED_STRATEGY_ENUM
        TD_SCHED_STRATEGY_COUNT
} td_sched_strategy;

const char *td_sched_strategy_name(td_sched_strategy strategy);

// NOTFOUND with the names that there are.
TD_NODISCARD td_err td_sched_strategy_find(const char *name,
                                           td_sched_strategy *ret_strategy,
                                           td_errinfo *info);

// Whether the strategy keeps priorities apart, and whether it scores.
bool td_sched_strategy_tiered(td_sched_strategy strategy);
static inline bool td_sched_strategy_scores(td_sched_strategy strategy)
{
#define TD_SCHED_STRATEGY_SCORES(name, text, tiered, scores)                   \
    | (unsigned)(scores) << TD_SCHED_##name
    return (0u TD_SCHED_STRATEGIES(TD_SCHED_STRATEGY_SCORES)) >> strategy & 1;
#undef TD_SCHED_STRATEGY_SCORES
}

typedef struct td_sched_weights {
    double cadence, urgency, steps, priority, age;
} td_sched_weights;

#define TD_SCHED_WEIGHTS_PUBLISHED                                             \
    {.cadence = 45, .urgency = 25, .steps = 15, .priority = 10, .age = 15}

#define TD_SCHED_MAX_TIERS 8
#define TD_SCHED_FAIRNESS 0.1

#define TD_SCHED_STEPS_UNSET UINT32_MAX
#define TD_SCHED_STRATEGY_FAR_NS 4e18 // a century: as good as never

// By how many parts of the age's a deadline that cannot be met falls back.
#define TD_SCHED_STRATEGY_LATE_PARTS 4
// The time in which the part of a deadline grows by that of the age.
#define TD_SCHED_STRATEGY_HURRY_NS 50000000

// What is known of a request when it is ranked. What every comparison reads is
// in the first line of the cache.
typedef struct td_sched_facts {
    _Alignas(
        64) double fixed; // the part of its score that time does not change
    double rise;          // of its score with time, per nanosecond
    double back;          // what it falls back by when it is late
    int64_t since_ns;     // its client has waited
    int64_t budget_ns;    // for the age; at least 1
    int64_t due_ns;       // its robot runs dry; NEVER: none
    int64_t expected_ns;  // its client's next; NEVER: not known
    uint64_t order;       // of arrival
    uint64_t round;       // ROUND_ROBIN: its turn, nobody else's
    uint32_t priority;    // 0 is the highest
    float urgency;        // 0 to 1
    uint32_t steps;       // remaining, or UNSET
    bool renews;          // its client's next takes its place
    const char *client, *model; // names, for a score of the user's own
} td_sched_facts;

// The fields of an expression, as in td_score_request.
#define TD_SCHED_FIELDS(X)                                                     \
    X(AGE_MS, "age_ms")                                                        \
    X(BUDGET_MS, "budget_ms")                                                  \
    X(URGENCY, "urgency")                                                      \
    X(PRIORITY, "priority")                                                    \
    X(STEPS_REMAINING, "steps_remaining") /* -1: not set */                    \
    X(SLACK_MS, "slack_ms")     /* until due; of the budget where not set */   \
    X(OVERDUE_MS, "overdue_ms") /* its client's next is; 0: is not */          \
    X(SCORE, "score")           /* the published one */

typedef enum td_sched_field {
#define TD_SCHED_FIELD_ENUM(name, text) TD_SCHED_FIELD_##name,
    TD_SCHED_FIELDS(TD_SCHED_FIELD_ENUM)
#undef TD_SCHED_FIELD_ENUM
        TD_SCHED_FIELD_COUNT
} td_sched_field;

extern const td_sched_expr_fields td_sched_strategy_fields;

typedef struct td_sched_policy {
    td_sched_strategy strategy;
    td_sched_weights weights;
    uint32_t tiers;     // of those that are tiered
    double fairness;    // part of the runs for who starves, where it scores
    td_sched_expr expr; // replaces the published score unless it is empty
    double (*score)(void *user,
                    const td_score_request *request); // (optional) instead of
                                                      // both
    void *score_user;                                 // its own
} td_sched_policy;

// Sets `fixed`, `rise` and `back` from the rest.
void td_sched_strategy_fix(const td_sched_policy *policy,
                           td_sched_facts *facts);

// The published score at this moment, the deadline not regarded.
double td_sched_strategy_score(const td_sched_policy *policy,
                               const td_sched_facts *facts, int64_t now_ns);

typedef struct td_sched_rank {
    double value; // at that moment; higher first, then by order
    double slope; // of the value, per nanosecond
    int64_t at_ns;
    int64_t until_ns; // before then all this holds
    uint64_t order;   // of arrival
    bool nobody;      // behind everybody: an empty place
} td_sched_rank;

// Values that are nearer to each other are equal: what rounding makes.
#define TD_SCHED_STRATEGY_EQUAL 1e-9

// The last moment to start it at so that its deadline is met, if the engine
// takes `run_ns`; INT64_MIN where it does not go by one.
int64_t td_sched_strategy_last_ns(const td_sched_policy *policy,
                                  const td_sched_facts *facts, int64_t run_ns);

// The rank of a request; `run_ns` is what the engine takes for it.
void td_sched_strategy_rank(const td_sched_policy *policy,
                            const td_sched_facts *facts, int64_t run_ns,
                            int64_t now_ns, td_sched_rank *ret_rank);

// When the lower of two overtakes the higher, if both go on as they do; NEVER.
static inline int64_t
td_sched_strategy_crossing_ns(double apart, double closing, int64_t now_ns)
{
    if (!(closing > 0)) return TD_SCHED_NEVER_NS;
    double in_ns = apart / closing;
    if (!(in_ns < TD_SCHED_STRATEGY_FAR_NS)) return TD_SCHED_NEVER_NS;
    return now_ns + (in_ns < 1 ? 1 : (int64_t)in_ns);
}

static inline double td_sched_strategy_value_at(const td_sched_rank *rank,
                                                int64_t now_ns)
{
    return rank->value + rank->slope * (double)(now_ns - rank->at_ns);
}

// Whether a goes before b, and before which time that holds if neither is to
// get another rank. Here because an order asks it at every match.
static inline bool td_sched_strategy_before(const td_sched_rank *a,
                                            const td_sched_rank *b,
                                            int64_t now_ns,
                                            int64_t *ret_until_ns)
{
    *ret_until_ns = TD_SCHED_NEVER_NS;
    if (a->nobody || b->nobody) return !a->nobody;
    double lead = td_sched_strategy_value_at(a, now_ns) -
                  td_sched_strategy_value_at(b, now_ns);
    double gain = a->slope - b->slope;
    bool equal = fabs(lead) < TD_SCHED_STRATEGY_EQUAL;
    bool before = equal ? a->order < b->order : lead > 0;
    *ret_until_ns = td_sched_strategy_crossing_ns(
        before ? lead : -lead, before ? -gain : gain, now_ns);
    return before;
}

#endif
