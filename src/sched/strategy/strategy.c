// SPDX-License-Identifier: Apache-2.0
#include "sched/strategy/strategy.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define CADENCE_PER_NS 1e-8 // overdue by 0.1 s is worth the whole weight
#define LOWEST_PRIORITY 10
#define NS_PER_MS 1e6

static const struct {
    const char *name;
    bool tiered;
} traits[] = {
#define TD_SCHED_STRATEGY_TRAITS(name, text, tiered, scores) {text, tiered},
    TD_SCHED_STRATEGIES(TD_SCHED_STRATEGY_TRAITS)
#undef TD_SCHED_STRATEGY_TRAITS
};

static const char *const field_names[] = {
#define TD_SCHED_FIELD_NAME(name, text) text,
    TD_SCHED_FIELDS(TD_SCHED_FIELD_NAME)
#undef TD_SCHED_FIELD_NAME
};

const td_sched_expr_fields td_sched_strategy_fields = {field_names,
                                                       TD_SCHED_FIELD_COUNT};

const char *td_sched_strategy_name(td_sched_strategy strategy)
{
    return traits[strategy].name;
}

td_err td_sched_strategy_find(const char *name, td_sched_strategy *ret_strategy,
                              td_errinfo *info)
{
    for (uint32_t i = 0; i < TD_SCHED_STRATEGY_COUNT; i++) {
        if (strcmp(name, traits[i].name) != 0) continue;
        *ret_strategy = (td_sched_strategy)i;
        return TD_OK;
    }
#define TD_SCHED_STRATEGY_LISTED(name, text, tiered, scores) " " text
    return td_fail(info, TD_ERR_NOTFOUND,
                   "no strategy \"%.40s\": there is" TD_SCHED_STRATEGIES(
                       TD_SCHED_STRATEGY_LISTED),
                   name);
#undef TD_SCHED_STRATEGY_LISTED
}

bool td_sched_strategy_tiered(td_sched_strategy strategy)
{
    return traits[strategy].tiered;
}

static double steps_part(const td_sched_weights *weights, uint32_t steps)
{
    if (steps == TD_SCHED_STEPS_UNSET || steps > 4) return 0;
    if (steps == 0) return weights->steps;
    return weights->steps * (steps <= 2 ? 0.7 : 0.4);
}

// What it claims, whatever the time is.
static double claims(const td_sched_weights *w, const td_sched_facts *facts)
{
    uint32_t priority =
        facts->priority < LOWEST_PRIORITY ? facts->priority : LOWEST_PRIORITY;
    return w->urgency * (double)facts->urgency +
           w->priority * (LOWEST_PRIORITY - priority) / LOWEST_PRIORITY;
}

void td_sched_strategy_fix(const td_sched_policy *policy, td_sched_facts *facts)
{
    const td_sched_weights *w = &policy->weights;
    facts->fixed = claims(w, facts);
    facts->rise = w->age / TD_SCHED_STRATEGY_HURRY_NS;
    facts->back =
        TD_SCHED_STRATEGY_LATE_PARTS * w->age * (1 - (double)facts->urgency);
    if (facts->due_ns != TD_SCHED_NEVER_NS) return;
    facts->fixed += steps_part(w, facts->steps);
    facts->rise = w->age / (double)facts->budget_ns;
}

static void stand_scored(const td_sched_weights *weights,
                         const td_sched_facts *facts, double fixed, double rise,
                         int64_t now_ns, td_sched_rank *rank)
{
    double value = fixed, slope = 0;
    int64_t until_ns = TD_SCHED_NEVER_NS;
    if (now_ns >= facts->expected_ns) {
        slope = weights->cadence * CADENCE_PER_NS;
        value += slope * (double)(now_ns - facts->expected_ns);
    } else {
        until_ns = facts->expected_ns;
    }
    int64_t age_ns = now_ns - facts->since_ns;
    if (age_ns < facts->budget_ns) {
        value += rise * (double)age_ns;
        slope += rise;
        int64_t old_ns = now_ns + (facts->budget_ns - age_ns);
        if (old_ns < until_ns) until_ns = old_ns;
    } else {
        value += weights->age;
    }
    rank->value = value;
    rank->slope = slope;
    rank->until_ns = until_ns;
}

double td_sched_strategy_score(const td_sched_policy *policy,
                               const td_sched_facts *facts, int64_t now_ns)
{
    const td_sched_weights *w = &policy->weights;
    td_sched_rank rank;
    stand_scored(w, facts, claims(w, facts) + steps_part(w, facts->steps),
                 w->age / (double)facts->budget_ns, now_ns, &rank);
    return rank.value;
}

static td_score_request request_of(const td_sched_policy *policy,
                                   const td_sched_facts *facts, int64_t now_ns)
{
    double age_ns = (double)(now_ns - facts->since_ns);
    double budget_ns = (double)facts->budget_ns;
    bool has_due = facts->due_ns != TD_SCHED_NEVER_NS;
    double slack_ns =
        has_due ? (double)(facts->due_ns - now_ns) : budget_ns - age_ns;
    bool overdue = now_ns >= facts->expected_ns;
    double overdue_ns = overdue ? (double)(now_ns - facts->expected_ns) : 0;
    bool has_steps = facts->steps != TD_SCHED_STEPS_UNSET;
    return (td_score_request){
        .age_ms = age_ns / NS_PER_MS,
        .budget_ms = budget_ns / NS_PER_MS,
        .urgency = (double)facts->urgency,
        .priority = facts->priority,
        .steps_remaining = has_steps ? (double)facts->steps : -1,
        .slack_ms = slack_ns / NS_PER_MS,
        .overdue_ms = overdue_ns / NS_PER_MS,
        .score = td_sched_strategy_score(policy, facts, now_ns),
        .client = facts->client ? facts->client : "",
        .model = facts->model ? facts->model : "",
    };
}

static double evaluate(const td_sched_expr *expr,
                       const td_score_request *request)
{
    const double values[TD_SCHED_FIELD_COUNT] = {
        [TD_SCHED_FIELD_AGE_MS] = request->age_ms,
        [TD_SCHED_FIELD_BUDGET_MS] = request->budget_ms,
        [TD_SCHED_FIELD_URGENCY] = request->urgency,
        [TD_SCHED_FIELD_PRIORITY] = request->priority,
        [TD_SCHED_FIELD_STEPS_REMAINING] = request->steps_remaining,
        [TD_SCHED_FIELD_SLACK_MS] = request->slack_ms,
        [TD_SCHED_FIELD_OVERDUE_MS] = request->overdue_ms,
        [TD_SCHED_FIELD_SCORE] = request->score,
    };
    return td_sched_expr_eval(expr, values);
}

// Nothing is known of how such a score moves, so it holds for this moment only.
static void stand_custom(const td_sched_policy *policy,
                         const td_sched_facts *facts, td_sched_rank *rank)
{
    td_score_request request = request_of(policy, facts, rank->at_ns);
    double value = policy->score ? policy->score(policy->score_user, &request)
                                 : evaluate(&policy->expr, &request);
    rank->value = isfinite(value) ? value : -DBL_MAX;
    rank->until_ns = rank->at_ns + 1;
}

static bool is_custom(const td_sched_policy *policy)
{
    return policy->score || policy->expr.count > 0;
}

int64_t td_sched_strategy_last_ns(const td_sched_policy *policy,
                                  const td_sched_facts *facts, int64_t run_ns)
{
    bool by_deadline = td_sched_strategy_scores(policy->strategy) &&
                       !is_custom(policy) && facts->due_ns != TD_SCHED_NEVER_NS;
    return by_deadline ? facts->due_ns - run_ns : INT64_MIN;
}

// Its robot will have asked anew before it needs the answer.
static bool can_wait(const td_sched_facts *facts)
{
    return facts->renews && facts->expected_ns <= facts->due_ns;
}

static void stand_due(const td_sched_weights *weights,
                      const td_sched_facts *facts, int64_t run_ns,
                      td_sched_rank *rank)
{
    int64_t last_ns = facts->due_ns - run_ns;
    rank->value = facts->fixed + weights->age;
    if (rank->at_ns > last_ns) {
        rank->value -= facts->back;
        return;
    }
    rank->value -= facts->rise * (double)(last_ns - rank->at_ns);
    rank->slope = facts->rise;
    rank->until_ns = last_ns + 1;
    if (can_wait(facts)) rank->value -= facts->back;
}

void td_sched_strategy_rank(const td_sched_policy *policy,
                            const td_sched_facts *facts, int64_t run_ns,
                            int64_t now_ns, td_sched_rank *ret_rank)
{
    td_sched_rank *rank = ret_rank;
    *rank = (td_sched_rank){
        .at_ns = now_ns, .until_ns = TD_SCHED_NEVER_NS, .order = facts->order};
    if (policy->strategy == TD_SCHED_ROUND_ROBIN)
        rank->value = -(double)facts->round;
    else if (!td_sched_strategy_scores(policy->strategy))
        rank->value = 0; // by arrival alone
    else if (is_custom(policy))
        stand_custom(policy, facts, rank);
    else if (facts->due_ns != TD_SCHED_NEVER_NS)
        stand_due(&policy->weights, facts, run_ns, rank);
    else
        stand_scored(&policy->weights, facts, facts->fixed, facts->rise, now_ns,
                     rank);
}
