// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_CORE_CORE_FIXTURE_H
#define TD_EDGE_CORE_CORE_FIXTURE_H

// A robot of two channels for tests, and the answers that it is given.

#include "base/clock.h"
#include "edge/core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CHANNELS 2
#define MAX_ROWS 64
#define PERIOD_NS (10 * TD_NS_PER_MS)
#define SERVER "gpu-1"

static inline td_edge_core_settings robot_settings(void)
{
    td_edge_core_settings settings;
    td_edge_core_settings_plain(CHANNELS, PERIOD_NS, &settings);
    settings.actions_per_chunk = MAX_ROWS;
    settings.aggregate = TD_EDGE_LATEST_ONLY;
    settings.max_action_age_ns = 60 * TD_NS_PER_S;
    settings.ask.threshold = 0;
    settings.ask.resend_min_ns = TD_NS_PER_S;
    settings.ask.resend_max_ns = TD_NS_PER_S;
    settings.warn_after_empty_ticks = 3;
    settings.boot = 7;
    settings.route = 2;
    settings.episode = 5;
    return settings;
}

static inline td_edge_core *robot_new(const td_edge_core_settings *settings)
{
    td_edge_core *core = NULL;
    assert_int_equal(td_edge_core_new(settings, &core, NULL), TD_OK);
    return core;
}

static inline void robot_send(td_edge_core *core, uint64_t seq, int64_t now_ns)
{
    td_edge_sent sent = {
        .seq = seq,
        .episode = td_edge_core_episode(core),
        .cursor = td_edge_core_cursor(core),
        .captured_ns = now_ns,
        .put_ns = now_ns,
    };
    assert_true(td_edge_core_sent(core, &sent));
}

// A tick of a robot that stands at zero.
static inline td_edge_step robot_tick_alone(td_edge_core *core, int64_t now_ns,
                                            uint64_t connection)
{
    static const float at_zero[CHANNELS];
    const td_edge_core_input seen = {
        .now_ns = now_ns,
        .connection = connection,
        .reading = at_zero,
        .read_ns = now_ns,
    };
    return td_edge_core_tick(core, &seen);
}

// A tick of a connected robot, which sends at once what it asks.
static inline td_edge_step robot_tick(td_edge_core *core, int64_t now_ns)
{
    td_edge_step step = robot_tick_alone(core, now_ns, 1);
    if (step.ask) robot_send(core, step.seq, now_ns);
    return step;
}

// An answer and its bytes, which lie unaligned as they may on the wire.
typedef struct robot_answer {
    td_wire_action action;
    unsigned char bytes[1 + MAX_ROWS * CHANNELS * sizeof(float)];
} robot_answer;

// Row k says value + k, and the same below zero.
static inline void answer_fill(robot_answer *answer, uint64_t seq,
                               uint32_t rows, float value)
{
    assert_true(rows <= MAX_ROWS);
    answer->action = (td_wire_action){
        .ident = {.boot = 7, .route = 2, .episode = 5, .seq = seq},
        .server = td_wire_text_of(SERVER),
        .actions =
            {
                .dtype = TD_WIRE_F32,
                .rank = 2,
                .shape = {rows, CHANNELS},
                .data = answer->bytes + 1,
                .size = (size_t)rows * CHANNELS * sizeof(float),
            },
    };
    for (uint32_t k = 0; k < rows; k++) {
        const float row[CHANNELS] = {value + (float)k, -value - (float)k};
        memcpy(answer->bytes + 1 + k * sizeof row, row, sizeof row);
    }
}

static inline td_edge_answer robot_hear(td_edge_core *core, int64_t now_ns,
                                        const td_wire_action *action)
{
    td_edge_answer result;
    assert_int_equal(td_edge_core_answer(core, now_ns, SERVER, action, &result),
                     TD_OK);
    return result;
}

static inline td_edge_answer robot_answered(td_edge_core *core, int64_t now_ns,
                                            uint64_t seq, uint32_t rows,
                                            float value)
{
    robot_answer answer;
    answer_fill(&answer, seq, rows, value);
    return robot_hear(core, now_ns, &answer.action);
}

// The counts, checked: every observation sent has exactly one outcome.
static inline td_edge_counts robot_counts(const td_edge_core *core)
{
    td_edge_counts counts;
    td_edge_core_counts(core, &counts);
    uint64_t sum = 0;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        sum += counts.outcomes[i];
    assert_int_equal(sum, counts.sent);
    return counts;
}

#endif
