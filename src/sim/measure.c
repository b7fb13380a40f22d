// SPDX-License-Identifier: Apache-2.0
#include "sim/measure.h"

#include "base/clock.h"
#include "base/hist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct watched {
    uint32_t joints;
    uint64_t ticks;   // from the first command on
    uint64_t idle;    // of those
    uint64_t starved; // times that it began to be idle
    uint64_t steps;
    bool was_idle;
    td_hist age;
    float before[2][TD_WIRE_MAX_CHANNELS]; // the last command, the one before
    uint64_t bends;
    double sum; // of squared second differences
} watched;

static void watch_command(watched *seen, const float *command)
{
    size_t bytes = seen->joints * sizeof(float);
    for (uint32_t i = 0; seen->ticks > 2 && i < seen->joints; i++) {
        double bend = (double)command[i] - 2.0 * seen->before[0][i] +
                      (double)seen->before[1][i];
        seen->sum += bend * bend;
        seen->bends++;
    }
    memcpy(seen->before[1], seen->before[0], bytes);
    memcpy(seen->before[0], command, bytes);
}

static void watch(void *user, const td_sim_tick *tick)
{
    watched *seen = user;
    const td_edge_step *step = tick->step;
    if (tick->robot != 0 || !step->command) return;
    seen->ticks++;
    seen->steps = tick->cursor;
    seen->idle += step->starved;
    seen->starved += step->starved && !seen->was_idle;
    seen->was_idle = step->starved;
    if (step->fresh) td_hist_record(&seen->age, step->age_ns);
    watch_command(seen, step->command);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static double age_ms(const watched *seen, double quantile)
{
    return (double)td_hist_quantile(&seen->age, quantile) /
           (double)TD_NS_PER_MS;
}

static td_sim_figures figures_of(const td_sim_config *config,
                                 const watched *seen,
                                 const td_sim_result *result)
{
    double fps = (double)config->fps;
    double seconds = (double)result->virtual_ns / (double)TD_NS_PER_S;
    double bends = seen->bends ? (double)seen->bends : 1;
    uint64_t asks = result->edge.asked / config->robots;
    return (td_sim_figures){
        .seconds = seconds,
        .steps = seen->steps,
        .asks = asks,
        .ask_hz = (double)asks / seconds,
        .idle_share = share(seen->idle, seen->ticks),
        .starve_share = share(seen->starved, asks),
        .age_p50_ms = age_ms(seen, 0.5),
        .age_p99_ms = age_ms(seen, 0.99),
        .rms_accel = sqrt(seen->sum / bends) * fps * fps,
    };
}

td_err td_sim_measure(const td_sim_config *config, td_sim_figures *ret_figures,
                      td_errinfo *info)
{
    watched *seen = calloc(1, sizeof *seen);
    if (!seen) return TD_ERR_NOMEM;
    td_hist_init(&seen->age);
    seen->joints = config->joints;
    td_sim_config own = *config;
    own.watch = watch;
    own.watch_user = seen;
    td_sim_result result;
    td_err err = td_sim_run(&own, &result, info);
    if (err == TD_OK) {
        *ret_figures = figures_of(config, seen, &result);
        td_sim_result_done(&result);
    }
    free(seen);
    return err;
}

// The more rows are left, the more often it asks: the first that will do is the
// best.
td_err td_sim_best_fixed(const td_sim_config *config, double idle_share,
                         double starve_share, td_sim_figures *ret_figures,
                         td_errinfo *info)
{
    td_sim_config fixed = *config;
    fixed.edge.ask.mode = TD_EDGE_ASK_THRESHOLD;
    for (uint32_t rows = 0; rows <= config->chunk_rows; rows++) {
        td_sim_figures figures;
        fixed.edge.ask.threshold = (double)rows / config->chunk_rows;
        TD_TRY(td_sim_measure(&fixed, &figures, info));
        if (figures.idle_share > idle_share ||
            figures.starve_share > starve_share)
            continue;
        *ret_figures = figures;
        return TD_OK;
    }
    return TD_ERR_NOTFOUND;
}
