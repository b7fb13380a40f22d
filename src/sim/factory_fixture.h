// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_FACTORY_FIXTURE_H
#define TD_SIM_FACTORY_FIXTURE_H

// The Rosa paper's tasks on 8 GPUs, and plans made by hand.

#include "base/clock.h"
#include "sim/factory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SYSTEM1 "    system1: {model: nvidia/GR00T-N1.6-3B, slo_ms: 200}\n"
#define SYSTEM2                                                                \
    "    system2: {model: Qwen2.5-VL-7B-Instruct, slo_ms: 2000, every: 10}\n"
#define SAFETY                                                                 \
    "    safety: {model: Qwen2.5-VL-3B-Instruct, slo_ms: 500, freq_hz: 2}\n"
#define MONITOR                                                                \
    "    monitor: {model: Qwen2.5-VL-7B-Instruct, slo_ms: 2000, "              \
    "freq_hz: 0.5}\n"

#define P1 SYSTEM1
#define P2 SYSTEM1 MONITOR
#define P3 SYSTEM1 SAFETY MONITOR
#define P4 SYSTEM1 SYSTEM2 SAFETY MONITOR

// A plan by hand; robots are dealt to the servers of each component in turn.
typedef struct shop_hand {
    const char *components; // P1 to P4
    uint32_t robots;
    uint32_t servers[4]; // of each component
    double rate_hz;      // 0: whenever they can
    uint32_t batch;      // of System 1
    td_config_wait wait; // likewise
    bool one_gpu;        // for all servers
    const char *more;    // lines of the task
} shop_hand;

typedef struct shop {
    td_config_factory *factory;
    td_config_profiles *profiles;
    td_plan plan;
} shop;

static inline td_config_factory *shop_factory(const shop_hand *hand)
{
    char text[2048];
    td_config_factory *factory;
    td_errinfo info = {.text = ""};
    (void)snprintf(text, sizeof text,
                   "server_cluster: {num_servers: 8, gpu_type: NVIDIA H200}\n"
                   "robot_fleet: [{task: job, num_robots: %u}]\n"
                   "job:\n  pipeline: {action_period_ms: 200}\n%s"
                   "  components:\n%s",
                   hand->robots, hand->more ? hand->more : "",
                   hand->components);
    if (td_config_factory_parse("by hand", text, strlen(text), &factory,
                                &info) != TD_OK)
        fail_msg("%s", info.text);
    return factory;
}

static inline void shop_servers(shop *made, const shop_hand *hand)
{
    const td_config_factory_task *task = &made->factory->tasks[0];
    for (size_t c = 0; c < task->component_count; c++)
        for (uint32_t i = 0; i < hand->servers[c]; i++) {
            size_t number = made->plan.server_count++;
            made->plan.servers[number] = (td_plan_server){
                .id = task->components[c].name,
                .node = "node-0",
                .gpu = hand->one_gpu ? 0 : (uint32_t)number,
                .model = task->components[c].model,
                .engine = "",
                .gpu_type = "NVIDIA H200",
                .batch_most = c == 0 ? hand->batch : 64,
                .wait = c == 0 ? hand->wait : TD_CONFIG_WAIT_NONE,
                .wait_ms = 55, // FIXED: as long as two take
            };
        }
}

// Phases are those of a server's streams, one after the other.
static inline td_plan_stream shop_stream(const shop *made,
                                         const shop_hand *hand, uint32_t robot,
                                         uint32_t component)
{
    const td_config_factory_component *it =
        &made->factory->tasks[0].components[component];
    uint32_t servers = hand->servers[component], first = 0;
    for (uint32_t i = 0; i < component; i++)
        first += hand->servers[i];
    uint32_t place = robot / servers, own = robot % servers;
    uint32_t streams = (hand->robots - own + servers - 1) / servers;
    return (td_plan_stream){
        .robot = robot,
        .component = component,
        .name = it->name,
        .server = first + own,
        .standby = TD_PLAN_NONE,
        .rate_hz = component == 0 ? hand->rate_hz : it->rate_hz,
        .every = component > 0 && it->per_action > 0 ? (uint32_t)it->every : 0,
        .phase = (double)place / streams,
        .deadline_ms = it->slo_ms,
    };
}

static inline void shop_open(shop *made, const shop_hand *hand)
{
    td_errinfo info = {.text = ""};
    *made = (shop){.factory = shop_factory(hand)};
    if (td_config_profiles_load(TD_SOURCE_DIR "/profiles", &made->profiles,
                                &info) != TD_OK)
        fail_msg("%s", info.text);
    td_plan *plan = &made->plan;
    uint32_t components = (uint32_t)made->factory->tasks[0].component_count;
    plan->servers = calloc(32, sizeof *plan->servers);
    plan->robots = calloc(hand->robots, sizeof *plan->robots);
    plan->streams =
        calloc((size_t)hand->robots * components, sizeof *plan->streams);
    plan->classes = calloc(1, sizeof *plan->classes);
    assert_true(plan->servers && plan->robots && plan->streams &&
                plan->classes);
    shop_servers(made, hand);
    for (uint32_t r = 0; r < hand->robots; r++) {
        plan->robots[r] = (td_plan_robot){
            .name = made->factory->robots[r].name,
            .key = made->factory->robots[r].key,
            .first_stream = r * components,
            .stream_count = components,
        };
        for (uint32_t c = 0; c < components; c++)
            plan->streams[plan->stream_count++] = shop_stream(made, hand, r, c);
    }
    plan->robot_count = hand->robots;
    plan->class_count = 1;
    plan->classes[0] = (td_plan_class){.task = "job", .value = 1};
}

static inline void shop_close(shop *made)
{
    free(made->plan.servers);
    free(made->plan.robots);
    free(made->plan.streams);
    free(made->plan.classes);
    td_config_profiles_free(made->profiles);
    td_config_factory_free(made->factory);
}

// As the paper ran it: nothing varies but the phases, first come first served.
static inline td_sim_factory_options shop_replay(void)
{
    td_sim_factory_options options = td_sim_factory_defaults;
    options.action_jitter = 0;
    options.network_jitter_ns = 0;
    options.in_turn = options.unphased = true;
    return options;
}

static inline td_sim_factory_result
shop_run(const shop *made, const td_sim_factory_options *options)
{
    td_sim_factory_result result;
    td_errinfo info = {.text = ""};
    if (td_sim_factory_run(made->factory, made->profiles, &made->plan, options,
                           &result, &info) != TD_OK)
        fail_msg("%s", info.text);
    return result;
}

static inline td_sim_factory_result
shop_try(const shop_hand *hand, const td_sim_factory_options *options)
{
    shop made;
    shop_open(&made, hand);
    td_sim_factory_result result = shop_run(&made, options);
    shop_close(&made);
    return result;
}

#endif
