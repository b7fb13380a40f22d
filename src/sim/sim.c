// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>

td_sim_config td_sim_config_default(void)
{
    td_sim_config config = {
        .seed = 1,
        .robots = 4,
        .joints = 7,
        .fps = 30,
        .duration_ns = 60 * TD_NS_PER_S,
        .chunk_rows = 50,
        .max_batch = 4,
        .latency = {.kind = TD_ENGINE_LATENCY_LOGNORMAL,
                    .ms = 80,
                    .std_ms = 20,
                    .per_batch_ms = 5},
        .faults = {.delay_ns = 5 * TD_NS_PER_MS, .jitter_ns = 5 * TD_NS_PER_MS},
        .trace = true,
    };
    td_edge_core_settings_plain(TD_ROBOT_MAX_JOINTS, TD_NS_PER_S / config.fps,
                                &config.edge);
    return config;
}

static td_err check(const td_sim_config *config, td_errinfo *info)
{
    if (config->robots == 0 || config->robots > TD_SIM_MAX_ROBOTS)
        return td_fail(info, TD_ERR_INVALID, "robots: must be 1 to %d, got %u",
                       TD_SIM_MAX_ROBOTS, config->robots);
    if (config->joints == 0 || config->joints > TD_ROBOT_MAX_JOINTS)
        return td_fail(info, TD_ERR_INVALID, "joints: must be 1 to %d, got %u",
                       TD_ROBOT_MAX_JOINTS, config->joints);
    if (config->fps <= 0 || config->fps > 1000)
        return td_fail(info, TD_ERR_INVALID, "fps: must be 1 to 1000, got %lld",
                       (long long)config->fps);
    if (config->component_count > TD_SIM_MAX_COMPONENTS)
        return td_fail(info, TD_ERR_INVALID,
                       "components: must be %d at most, got %u",
                       TD_SIM_MAX_COMPONENTS, config->component_count);
    return TD_OK;
}

static td_err make_model(td_sim_world *world, td_errinfo *info)
{
    const td_sim_config *config = world->config;
    static char names[TD_ROBOT_MAX_JOINTS][12];
    td_engine_synthetic_settings *settings = calloc(1, sizeof *settings);
    if (!settings) return TD_ERR_NOMEM;
    settings->action_count = settings->state_count = config->joints;
    for (uint32_t i = 0; i < config->joints; i++) {
        (void)snprintf(names[i], sizeof names[i], "j%u", i);
        settings->actions[i].name = td_wire_text_of(names[i]);
        settings->states[i] = settings->actions[i];
    }
    settings->chunk_rows = config->chunk_rows;
    settings->max_batch = config->max_batch;
    settings->latency = config->latency;
    td_engine_config engine = {
        .model_id = world->route.model,
        .model_version = world->route.version,
        .step_period_us = 1000000 / config->fps,
        .settings = settings,
    };
    td_err err = td_engine_synthetic_model_new(&engine, &world->model, info);
    free(settings);
    return err;
}

static td_err world_init(td_sim_world *world, td_errinfo *info)
{
    const td_sim_config *config = world->config;
    world->trace =
        (td_sim_trace){.keep = config->trace, .hash = TD_SIM_TRACE_SEED};
    world->route = (td_wire_route){"sim", "run", "synthetic", "v1", "task"};
    td_clock_virtual_init(&world->clock, 0);
    TD_TRY(td_net_hub_new(&world->clock, config->seed, &world->hub));
    TD_TRY(td_net_hub_faults(world->hub, NULL, NULL, &config->faults));
    TD_TRY(td_wire_decoder_new(&world->decoder));
    TD_TRY(td_wire_encoder_new(&world->encoder));
    TD_TRY(make_model(world, info));
    TD_TRY(td_sim_server_new(world, &world->server, info));
    for (uint32_t i = 0; i < config->robots; i++)
        TD_TRY(td_sim_robot_new(world, i, &world->robots[i], info));
    return TD_OK;
}

static void world_done(td_sim_world *world)
{
    for (uint32_t i = 0; i < world->config->robots; i++)
        if (world->robots[i]) td_sim_robot_free(world->robots[i]);
    if (world->server) td_sim_server_free(world->server);
    if (world->model) td_engine_synthetic_model_free(world->model);
    if (world->encoder) td_wire_encoder_free(world->encoder);
    if (world->decoder) td_wire_decoder_free(world->decoder);
    if (world->hub) td_net_hub_free(world->hub);
    free(world->trace.text);
}

// Lets everybody act, in a fixed order; returns when the next has to.
static td_err act(td_sim_world *world, int64_t now_ns, int64_t *ret_due_ns,
                  td_errinfo *info)
{
    int64_t due_ns;
    TD_TRY(td_sim_server_act(world->server, now_ns, ret_due_ns, info));
    for (uint32_t i = 0; i < world->config->robots; i++) {
        TD_TRY(td_sim_robot_act(world->robots[i], now_ns, &due_ns, info));
        if (due_ns < *ret_due_ns) *ret_due_ns = due_ns;
    }
    if (td_net_hub_next_due(world->hub, &due_ns) && due_ns < *ret_due_ns)
        *ret_due_ns = due_ns;
    return world->trace.err;
}

static bool is_done(const td_sim_world *world)
{
    const td_sim_config *config = world->config;
    for (uint32_t i = 0; i < config->robots; i++)
        if (td_sim_robot_cursor(world->robots[i]) < config->steps) return false;
    return config->steps > 0;
}

static td_err run(td_sim_world *world, int64_t *ret_end_ns, td_errinfo *info)
{
    int64_t now_ns = 0, next_ns;
    for (; now_ns < world->config->duration_ns; now_ns = next_ns) {
        td_net_hub_run_until(world->hub, now_ns);
        TD_TRY(act(world, now_ns, &next_ns, info));
        if (is_done(world)) break;
    }
    *ret_end_ns = now_ns < world->config->duration_ns
                      ? now_ns
                      : world->config->duration_ns;
    return TD_OK;
}

static void add_counts(td_edge_counts *sum, const td_edge_counts *more)
{
    sum->ticks += more->ticks;
    sum->fresh += more->fresh;
    sum->starved += more->starved;
    sum->asked += more->asked;
    sum->asked_again += more->asked_again;
    sum->sent += more->sent;
    sum->left += more->left;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        sum->outcomes[i] += more->outcomes[i];
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        sum->strays[i] += more->strays[i];
}

static void collect(td_sim_world *world, int64_t end_ns, td_sim_result *result)
{
    *result = (td_sim_result){.virtual_ns = end_ns};
    for (uint32_t i = 0; i < world->config->robots; i++) {
        td_edge_counts counts;
        td_sim_robot_counts(world->robots[i], &counts);
        add_counts(&result->edge, &counts);
        td_sim_components_count(td_sim_robot_components(world->robots[i]),
                                result->components);
    }
    td_sim_server_counts(world->server, &result->server);
    td_net_hub_stats_get(world->hub, &result->net);
    result->trace_size = world->trace.size;
    result->trace_hash = world->trace.keep ? world->trace.hash : 0;
    result->trace = TD_TAKE(world->trace.text);
}

td_err td_sim_run(const td_sim_config *config, td_sim_result *ret_result,
                  td_errinfo *info)
{
    TD_TRY(check(config, info));
    td_sim_world *world = calloc(1, sizeof *world);
    if (!world) return TD_ERR_NOMEM;
    world->config = config;
    td_err err = world_init(world, info);
    int64_t end_ns = 0;
    if (err == TD_OK) err = run(world, &end_ns, info);
    if (err == TD_OK) collect(world, end_ns, ret_result);
    world_done(world);
    free(world);
    return err;
}

void td_sim_result_done(td_sim_result *result)
{
    free(result->trace);
    result->trace = NULL;
}
