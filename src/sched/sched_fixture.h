// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_SCHED_FIXTURE_H
#define TD_SCHED_SCHED_FIXTURE_H

// Small words for tests of the scheduler.

#include "sched/sched.h"
#include "sched/strategy/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000LL
#define NEVER TD_SCHED_NEVER_NS
#define UNSET TD_SCHED_STEPS_UNSET
#define ALL TD_SCHED_ALL_MODELS

static char payload; // whose it is does not matter here

static inline td_sched_settings settings_of(td_sched_strategy strategy)
{
    td_sched_settings settings = td_sched_defaults;
    settings.policy.strategy = strategy;
    settings.policy.tiers = 3;
    settings.batch.wait = TD_SCHED_WAIT_NONE;
    settings.models = 2;
    return settings;
}

static inline td_sched *sched_new(const td_sched_settings *settings)
{
    td_sched *sched = NULL;
    td_errinfo info = {""};
    if (td_sched_new(settings, &sched, &info) != TD_OK)
        fail_msg("%s", info.text);
    return sched;
}

static inline uint32_t join(td_sched *sched, uint32_t client, uint32_t model,
                            bool queued)
{
    static const char *const names[] = {"c0", "c1", "c2", "c3", "c4"};
    td_sched_member member = {.client = names[client % TD_COUNT_OF(names)],
                              .model_id = model ? "m1" : "m0",
                              .model = model,
                              .queued = queued,
                              .most_urgency = 1,
                              .budget_ns = 50 * MS};
    uint32_t number;
    assert_int_equal(td_sched_join(sched, &member, &number), TD_OK);
    return number;
}

static inline td_sched_item item_of(uint32_t member, uint64_t seq)
{
    return (td_sched_item){.member = member,
                           .payload = &payload,
                           .seq = seq,
                           .due_ns = NEVER,
                           .useless_ns = NEVER,
                           .expected_ns = NEVER,
                           .priority = 1,
                           .steps = UNSET};
}

static inline td_sched_ended submit(td_sched *sched, int64_t now_ns,
                                    const td_sched_item *item)
{
    td_sched_ended ended;
    assert_int_equal(td_sched_submit(sched, now_ns, item, &ended),
                     TD_SCHED_WAITING);
    return ended;
}

static inline td_sched_ended submit_seq(td_sched *sched, int64_t now_ns,
                                        uint32_t member, uint64_t seq)
{
    td_sched_item item = item_of(member, seq);
    return submit(sched, now_ns, &item);
}

// Runs the next alone and says its seq; 0: there was none.
static inline uint64_t run_one(td_sched *sched, int64_t now_ns, uint64_t models)
{
    td_sched_pick pick;
    if (td_sched_next(sched, now_ns, models, 1, &pick) == 0) return 0;
    (void)td_sched_done(sched, now_ns, pick.ticket, TD_SCHED_ANSWERED);
    return pick.request.seq;
}

static inline uint64_t count_of(const td_sched *sched, td_sched_outcome outcome)
{
    td_sched_counts counts;
    td_sched_count(sched, &counts);
    uint64_t sum = 0;
    for (int i = 0; i < TD_SCHED_OUTCOME_COUNT; i++)
        sum += counts.outcomes[i];
    assert_int_equal(counts.submitted, sum);
    return counts.outcomes[outcome];
}

#endif
