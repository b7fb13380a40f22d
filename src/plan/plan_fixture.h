// SPDX-License-Identifier: Apache-2.0
#ifndef TD_PLAN_PLAN_FIXTURE_H
#define TD_PLAN_PLAN_FIXTURE_H

// Factories as text and the profiles that they are planned with.

#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CLUSTER(gpus)                                                          \
    "server_cluster: {num_servers: " #gpus ", gpu_type: NVIDIA H200}\n"
#define FLEET(robots) "robot_fleet: [{task: job, num_robots: " #robots "}]\n"
#define TASK(name) name ":\n  pipeline: {action_period_ms: 200}\n"
#define PARTS "  components:\n"
#define SYSTEM1 "    system1: {model: nvidia/GR00T-N1.6-3B, slo_ms: 200}\n"
#define SYSTEM2                                                                \
    "    system2: {model: Qwen2.5-VL-7B-Instruct, slo_ms: 2000, every: 10}\n"
#define SAFETY                                                                 \
    "    safety: {model: Qwen2.5-VL-3B-Instruct, slo_ms: 500, freq_hz: 2}\n"
#define MONITOR                                                                \
    "    monitor: {model: Qwen2.5-VL-7B-Instruct, slo_ms: 2000, "              \
    "freq_hz: 0.5}\n"
#define P4(name) TASK(name) PARTS SYSTEM1 SYSTEM2 SAFETY MONITOR

typedef struct plant {
    td_config_factory *factory;
    td_config_profiles *profiles;
    td_plan_options options;
    td_plan *plan;
    td_errinfo info;
} plant;

static inline void plant_open(plant *it, const char *text,
                              td_plan_planner planner)
{
    *it = (plant){.options = td_plan_options_of(planner)};
    if (td_config_factory_parse("factory.yaml", text, strlen(text),
                                &it->factory, &it->info) != TD_OK ||
        td_config_profiles_load(TD_SOURCE_DIR "/profiles", &it->profiles,
                                &it->info) != TD_OK)
        fail_msg("%s", it->info.text);
}

static inline td_err plant_plan(plant *it)
{
    if (it->plan) td_plan_free(it->plan);
    it->plan = NULL;
    return td_plan_make(it->factory, it->profiles, &it->options, &it->plan,
                        &it->info);
}

static inline void plant_made(plant *it, const char *text,
                              td_plan_planner planner)
{
    plant_open(it, text, planner);
    if (plant_plan(it) != TD_OK) fail_msg("%s", it->info.text);
}

static inline void plant_close(plant *it)
{
    if (it->plan) td_plan_free(it->plan);
    if (it->profiles) td_config_profiles_free(it->profiles);
    if (it->factory) td_config_factory_free(it->factory);
}

// GPUs whose first stream is of this component.
static inline uint32_t plant_gpus(const plant *it, const char *component)
{
    const td_plan *plan = it->plan;
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->server_count; i++)
        for (size_t j = 0; j < plan->stream_count; j++)
            if (plan->streams[j].server == i) {
                count += strcmp(plan->streams[j].name, component) == 0;
                break;
            }
    return count;
}

#endif
