// SPDX-License-Identifier: Apache-2.0
// Measures an engine into a profile, and prints what it finds as it goes.
//
// First the sizes: for each batch size, how long a full batch takes alone, and
// the fewest members that need that size. A size whose times scatter too much
// is refused, with what to do about it. Then the rates, where they are asked
// for: requests arrive at random at a part of the highest rate, run through the
// real engine, and the times are set beside what the profile itself predicts
// for the same arrivals. That shows whether the profile can be planned from.
//
// Everything that was measured is in the draft's file at once
// (profile/draft.h), so a run that was interrupted goes on where it was: a size
// or rate that the draft has is not measured again.
//
// One thread; the engine is asked one batch at a time through engine/measure.h.
#include "cli/profile/run.h"

#include "base/clock.h"
#include "base/rand.h"
#include "cli/cli.h"
#include "engine/measure.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_NOISE 0.1
#define MOST_APART 0.2 // of a prediction that holds
#define PREDICTIONS 21 // their median counts

typedef struct run {
    const td_cli_profile_plan *plan;
    td_engine_measure measure;
    td_cli_profile_draft *draft;
    size_t done, all; // steps
    td_errinfo *info;
} run;

static void progress(const run *r, const char *what, uint32_t batch,
                     double percent)
{
    if (!isatty(STDERR_FILENO)) return;
    (void)fprintf(stderr, "\r\033[K%zu of %zu: %s, batch %u", r->done + 1,
                  r->all, what, batch);
    if (percent > 0) (void)fprintf(stderr, ", %g %%", percent);
    (void)fflush(stderr);
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO)) (void)fprintf(stderr, "\r\033[K");
}

static td_err refuse_noise(const run *r, uint32_t n, double noise)
{
    if (noise <= MOST_NOISE || r->plan->accept_noise) return TD_OK;
    return td_fail(r->info, TD_ERR_MISMATCH,
                   "too noisy: the times of a batch of %u vary by %.0f %% from "
                   "one part of the samples to the next, at most %.0f %% is "
                   "taken; stop what else runs on this machine and begin "
                   "again, or take it with --accept-noise",
                   n, noise * 100, MOST_NOISE * 100);
}

static td_err measure_batches(const run *r, uint32_t n, double *ret_ms,
                              double *noise)
{
    double own = 0;
    TD_TRY(td_engine_measure_batches(&r->measure, n, r->plan->samples, ret_ms,
                                     r->info));
    TD_TRY(td_engine_measure_noise(ret_ms, r->plan->samples, &own));
    TD_TRY(refuse_noise(r, n, own));
    if (own > *noise) *noise = own;
    return TD_OK;
}

// The full size, and the fewest members that need it.
static td_err measure_size(const run *r, uint32_t n, uint32_t before,
                           double *samples)
{
    size_t count = r->plan->samples;
    double noise = 0;
    td_config_profile_service size = {
        .batch = n, .alone_ms = samples, .alone_count = count};
    TD_TRY(measure_batches(r, n, samples, &noise));
    if (before + 1 < n) {
        TD_TRY(measure_batches(r, before + 1, samples + count, &noise));
        size.padded_ms = samples + count;
        size.padded_count = count;
    }
    return td_cli_profile_draft_add_size(r->draft, &size, noise, r->info);
}

static double top_hz(const td_config_profile *profile, uint32_t most)
{
    double top = 0;
    for (uint32_t n = 1; n <= most; n++)
        top = fmax(top, n * 1000 /
                            fmax(td_config_profile_mean_ms(profile, n), 1e-6));
    return top;
}

static void print_size(const td_config_profile *profile,
                       const td_config_profile_service *size)
{
    uint32_t n = (uint32_t)size->batch;
    (void)printf("%5u  %9.3f  %9.3f  ", n,
                 td_config_profile_quantile_ms(profile, n, 0.5),
                 td_config_profile_quantile_ms(profile, n, 0.99));
    if (size->padded_count)
        (void)printf("%9.3f", size->padded_ms[size->padded_count / 2]);
    else
        (void)printf("%9s", "-");
    (void)printf("  %10.1f\n", top_hz(profile, n));
    (void)fflush(stdout);
}

static td_err measure_sizes(run *r)
{
    uint32_t before = 0;
    double *samples = calloc(2 * r->plan->samples, sizeof *samples);
    if (!samples) return TD_ERR_NOMEM;
    td_err err = TD_OK;
    (void)printf("%5s  %9s  %9s  %9s  %10s\n", "batch", "p50 ms", "p99 ms",
                 "padded ms", "requests/s");
    for (size_t i = 0; err == TD_OK && i < r->plan->size_count; i++) {
        uint32_t n = r->plan->sizes[i];
        progress(r, "alone", n, 0);
        if (!td_cli_profile_draft_size(r->draft, n))
            err = measure_size(r, n, before, samples);
        clear_progress();
        if (err == TD_OK)
            print_size(r->draft->kept, td_cli_profile_draft_size(r->draft, n));
        before = n;
        r->done++;
    }
    free(samples);
    return err;
}

// The same arrivals through the service times instead of the engine.
static void predict(const td_config_profile *profile,
                    td_engine_traffic *traffic, uint64_t seed)
{
    td_rand rand;
    td_rand_init(&rand, seed);
    int64_t now_ns = 0;
    while (traffic->done < traffic->count) {
        uint32_t n = td_engine_traffic_take(traffic, now_ns);
        if (n == 0) {
            now_ns = td_engine_traffic_next_ns(traffic);
            continue;
        }
        double ms =
            td_config_profile_quantile_ms(profile, n, td_rand_unit(&rand));
        now_ns += (int64_t)(ms * (double)TD_NS_PER_MS);
        td_engine_traffic_answer(traffic, now_ns);
    }
}

static td_err init_traffic(const run *r, const td_config_profile_rate *rate,
                           td_engine_traffic *traffic)
{
    uint64_t seed = (uint64_t)rate->batch * 1000 + (uint64_t)rate->percent;
    return td_engine_traffic_init(traffic, rate->rate_hz, r->plan->requests,
                                  (uint32_t)rate->batch, seed, 0);
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static td_err fill_predicted(const run *r, td_config_profile_rate *rate)
{
    double p50_ms[PREDICTIONS], p99_ms[PREDICTIONS];
    for (size_t i = 0; i < PREDICTIONS; i++) {
        td_engine_traffic traffic;
        TD_TRY(init_traffic(r, rate, &traffic));
        predict(r->draft->kept, &traffic, i);
        p50_ms[i] = td_engine_traffic_quantile_ms(&traffic, 0.5);
        p99_ms[i] = td_engine_traffic_quantile_ms(&traffic, 0.99);
        td_engine_traffic_done(&traffic);
    }
    qsort(p50_ms, PREDICTIONS, sizeof p50_ms[0], by_size);
    qsort(p99_ms, PREDICTIONS, sizeof p99_ms[0], by_size);
    rate->predicted_p50_ms = p50_ms[PREDICTIONS / 2];
    rate->predicted_p99_ms = p99_ms[PREDICTIONS / 2];
    return TD_OK;
}

static td_err fill_rate(const run *r, td_config_profile_rate *rate)
{
    td_engine_traffic traffic;
    TD_TRY(fill_predicted(r, rate));
    TD_TRY(init_traffic(r, rate, &traffic));
    td_err err = td_engine_measure_traffic(&r->measure, &traffic, r->info);
    if (err == TD_OK) {
        rate->measured_p50_ms = td_engine_traffic_quantile_ms(&traffic, 0.5);
        rate->measured_p99_ms = td_engine_traffic_quantile_ms(&traffic, 0.99);
    }
    td_engine_traffic_done(&traffic);
    return err;
}

static bool holds(const td_config_profile_rate *rate)
{
    return fabs(rate->measured_p50_ms - rate->predicted_p50_ms) <=
               MOST_APART * rate->predicted_p50_ms &&
           fabs(rate->measured_p99_ms - rate->predicted_p99_ms) <=
               MOST_APART * rate->predicted_p99_ms;
}

static void print_rate(const td_config_profile_rate *rate)
{
    (void)printf("%5lld  %4.0f %%  %10.1f  %10.3f  %10.3f  %10.3f  %10.3f%s\n",
                 (long long)rate->batch, rate->percent, rate->rate_hz,
                 rate->predicted_p50_ms, rate->measured_p50_ms,
                 rate->predicted_p99_ms, rate->measured_p99_ms,
                 holds(rate) ? "" : "  apart");
    (void)fflush(stdout);
}

static td_err measure_rate(run *r, uint32_t batch, double percent)
{
    td_config_profile_rate rate = {
        .batch = batch,
        .percent = percent,
        .rate_hz = top_hz(r->draft->kept, batch) * percent / 100,
    };
    progress(r, "under load", batch, percent);
    td_err err = TD_OK;
    if (!td_cli_profile_draft_rate(r->draft, batch, percent)) {
        err = fill_rate(r, &rate);
        if (err == TD_OK)
            err = td_cli_profile_draft_add_rate(r->draft, &rate, r->info);
    }
    clear_progress();
    r->done++;
    if (err == TD_OK)
        print_rate(td_cli_profile_draft_rate(r->draft, batch, percent));
    return err;
}

static void print_verdict(const td_cli_profile_draft *draft, uint32_t batch)
{
    int apart = 0;
    (void)printf("batch %u: ", batch);
    for (int i = 1; i <= TD_CLI_PROFILE_RATES; i++) {
        double percent = 100.0 * i / TD_CLI_PROFILE_RATES;
        if (holds(td_cli_profile_draft_rate(draft, batch, percent))) continue;
        (void)printf("%s%g", apart++ ? ", " : "apart at ", percent);
    }
    (void)printf(apart ? " %% of the top throughput\n"
                       : "prediction and measurement agree at all rates\n");
}

static td_err measure_rates(run *r)
{
    (void)printf("\n%5s  %6s  %10s  %10s  %10s  %10s  %10s\n", "batch", "rate",
                 "requests/s", "p50 pred.", "measured", "p99 pred.",
                 "measured");
    for (size_t i = 0; i < r->plan->size_count; i++)
        for (int k = 1; k <= TD_CLI_PROFILE_RATES; k++)
            TD_TRY(measure_rate(r, r->plan->sizes[i],
                                100.0 * k / TD_CLI_PROFILE_RATES));
    (void)printf("\nWhere measurement is more than %.0f %% away from what the "
                 "service times predict:\n",
                 MOST_APART * 100);
    for (size_t i = 0; i < r->plan->size_count; i++)
        print_verdict(r->draft, r->plan->sizes[i]);
    return TD_OK;
}

td_err td_cli_profile_run(const td_cli_profile_plan *plan, td_engine *engine,
                          td_cli_profile_draft *draft, td_errinfo *info)
{
    TD_AUTO(td_engine_probe) *probe = NULL;
    TD_TRY(td_engine_probe_new(engine->ops->spec(engine), &probe));
    run r = {
        .plan = plan,
        .measure = {engine, probe, td_cli_is_stopping},
        .draft = draft,
        .all = plan->size_count * (1 + TD_CLI_PROFILE_RATES),
        .info = info,
    };
    TD_TRY(measure_sizes(&r));
    return measure_rates(&r);
}
