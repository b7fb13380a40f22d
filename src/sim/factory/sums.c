// SPDX-License-Identifier: Apache-2.0
// What all runs add up to, and the figures of it.
#include "sim/factory/world.h"

#include <stdlib.h>

static size_t latency_count(const td_plan *plan)
{
    return plan->class_count * TD_WIRE_MAX_COMPONENTS;
}

td_err td_sim_factory_sums_init(td_sim_factory_sums *sums, const td_plan *plan)
{
    *sums = (td_sim_factory_sums){
        .streams = calloc(plan->stream_count, sizeof *sums->streams),
        .actions = calloc(plan->class_count, sizeof *sums->actions),
        .qualified = calloc(plan->class_count, sizeof *sums->qualified),
        .stopped = calloc(plan->class_count, sizeof *sums->stopped),
        .restarts = calloc(plan->class_count, sizeof *sums->restarts),
        .latencies = calloc(latency_count(plan), sizeof *sums->latencies),
        .busy_ns = calloc(plan->server_count, sizeof *sums->busy_ns),
        .ran_ns = calloc(plan->server_count, sizeof *sums->ran_ns),
    };
    if (!sums->streams || !sums->actions || !sums->qualified ||
        !sums->stopped || !sums->restarts || !sums->latencies ||
        !sums->busy_ns || !sums->ran_ns)
        return TD_ERR_NOMEM;
    for (size_t i = 0; i < latency_count(plan); i++)
        td_hist_init(&sums->latencies[i]);
    return TD_OK;
}

void td_sim_factory_sums_done(td_sim_factory_sums *sums)
{
    free(sums->streams);
    free(sums->actions);
    free(sums->qualified);
    free(sums->stopped);
    free(sums->restarts);
    free(sums->latencies);
    free(sums->busy_ns);
    free(sums->ran_ns);
}

double td_sim_factory_met(const td_sim_factory_tally *tally)
{
    uint64_t all = tally->on_time + tally->late + tally->lost;
    return all > 0 ? (double)tally->on_time / (double)all : 1;
}

static void add(td_sim_factory_component *sum, uint32_t robot,
                const td_sim_factory_tally *tally)
{
    double met = td_sim_factory_met(tally);
    sum->tally.on_time += tally->on_time;
    sum->tally.late += tally->late;
    sum->tally.lost += tally->lost;
    if (sum->least_robot != TD_PLAN_NONE && met >= sum->least_met) return;
    sum->least_met = met;
    sum->least_robot = robot;
}

static double quantile_ms(const td_hist *hist, double quantile)
{
    return (double)td_hist_quantile(hist, quantile) / (double)TD_NS_PER_MS;
}

static void class_figures(const td_sim_factory_sums *sums, const td_plan *plan,
                          uint32_t number, td_sim_factory_result *result)
{
    td_sim_factory_class *class = &result->classes[number];
    class->actions_hz = (double)sums->actions[number] / result->seconds;
    class->qualified_hz = (double)sums->qualified[number] / result->seconds;
    class->stopped = sums->stopped[number];
    class->restarts = sums->restarts[number];
    result->actions_hz += class->actions_hz;
    result->qualified_hz += class->qualified_hz;
    result->value_hz += class->qualified_hz * plan->classes[number].value;
    for (uint32_t i = 0; i < TD_WIRE_MAX_COMPONENTS; i++) {
        const td_hist *hist =
            &sums->latencies[(size_t)number * TD_WIRE_MAX_COMPONENTS + i];
        class->components[i] = (td_sim_factory_component){
            .p50_ms = quantile_ms(hist, 0.5),
            .p99_ms = quantile_ms(hist, 0.99),
            .least_met = 1,
            .least_robot = TD_PLAN_NONE,
        };
    }
}

static void fill(const td_sim_factory_sums *sums, const td_plan *plan,
                 td_sim_factory_result *result)
{
    for (uint32_t i = 0; i < plan->class_count; i++)
        class_figures(sums, plan, i, result);
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        uint32_t class = plan->robots[stream->robot].task;
        result->streams[i] = sums->streams[i];
        add(&result->classes[class].components[stream->component],
            stream->robot, &sums->streams[i]);
    }
    for (size_t i = 0; i < plan->server_count; i++) {
        double busy_ns = sums->busy_ns[i];
        result->servers[i] = (td_sim_factory_load){
            .busy = busy_ns / (result->seconds * (double)TD_NS_PER_S),
            .batch = busy_ns > 0 ? sums->ran_ns[i] / busy_ns : 0,
        };
    }
}

td_err td_sim_factory_sums_result(const td_sim_factory_sums *sums,
                                  const td_plan *plan,
                                  const td_sim_factory_options *options,
                                  td_sim_factory_result *ret_result)
{
    double counted_ns = (double)(options->duration_ns - options->warmup_ns);
    td_sim_factory_result result = {
        .seconds = options->runs * counted_ns / (double)TD_NS_PER_S,
        .classes = calloc(plan->class_count, sizeof *result.classes),
        .class_count = plan->class_count,
        .streams = calloc(plan->stream_count, sizeof *result.streams),
        .stream_count = plan->stream_count,
        .servers = calloc(plan->server_count, sizeof *result.servers),
        .server_count = plan->server_count,
        .events = sums->events,
    };
    if (!result.classes || !result.streams || !result.servers) {
        td_sim_factory_result_done(&result);
        return TD_ERR_NOMEM;
    }
    fill(sums, plan, &result);
    *ret_result = result;
    return TD_OK;
}
