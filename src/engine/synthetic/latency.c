// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/latency.h"

#include "base/clock.h"
#include "engine/engine.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MS 3600000.0

// The samples of one batch size.
typedef struct size_samples {
    uint32_t n;
    double *ms;
    size_t count;
    double mean_ms;
} size_samples;

struct td_engine_synthetic_latency {
    td_engine_latency settings;
    size_samples sizes[TD_ENGINE_MAX_BATCH]; // n grows
    size_t size_count;
};

static bool is_time(double ms)
{
    return ms >= 0 && ms <= MAX_MS;
}

static td_err check_size(const td_engine_latency_size *size, uint32_t before,
                         td_errinfo *info)
{
    if (size->n <= before || size->n > TD_ENGINE_MAX_BATCH)
        return td_fail(info, TD_ERR_INVALID,
                       "latency: batch sizes must grow from 1 to %d, got %u",
                       TD_ENGINE_MAX_BATCH, size->n);
    if (size->count == 0)
        return td_fail(info, TD_ERR_INVALID,
                       "latency: no samples of a batch of %u", size->n);
    for (size_t i = 0; i < size->count; i++)
        if (!is_time(size->ms[i]))
            return td_fail(info, TD_ERR_INVALID,
                           "latency: a sample must be 0 to 3600000 "
                           "milliseconds, got %g",
                           size->ms[i]);
    return TD_OK;
}

static td_err copy_size(td_engine_synthetic_latency *latency,
                        const td_engine_latency_size *from)
{
    size_samples *size = &latency->sizes[latency->size_count];
    size->ms = malloc(from->count * sizeof *size->ms);
    if (!size->ms) return TD_ERR_NOMEM;
    latency->size_count++;
    memcpy(size->ms, from->ms, from->count * sizeof *size->ms);
    size->n = from->n;
    size->count = from->count;
    for (size_t i = 0; i < from->count; i++)
        size->mean_ms += from->ms[i] / (double)from->count;
    return TD_OK;
}

static td_err copy_sizes(td_engine_synthetic_latency *latency, td_errinfo *info)
{
    const td_engine_latency *settings = &latency->settings;
    uint32_t before = 0;
    if (settings->size_count == 0)
        return td_fail(info, TD_ERR_INVALID, "latency: the profile is empty");
    for (size_t i = 0; i < settings->size_count; i++) {
        TD_TRY(check_size(&settings->sizes[i], before, info));
        TD_TRY(copy_size(latency, &settings->sizes[i]));
        before = settings->sizes[i].n;
    }
    return TD_OK;
}

td_err
td_engine_synthetic_latency_new(const td_engine_latency *settings,
                                td_engine_synthetic_latency **ret_latency,
                                td_errinfo *info)
{
    if (!is_time(settings->ms) || !is_time(settings->std_ms) ||
        !is_time(settings->per_batch_ms) || !is_time(settings->prepare_ms))
        return td_fail(info, TD_ERR_INVALID,
                       "latency: must be 0 to 3600000 milliseconds");
    if (settings->kind == TD_ENGINE_LATENCY_LOGNORMAL && settings->ms == 0)
        return td_fail(info, TD_ERR_INVALID,
                       "latency: a lognormal one must have ms above 0");
    TD_AUTO(td_engine_synthetic_latency) *latency = calloc(1, sizeof *latency);
    if (!latency) return TD_ERR_NOMEM;
    latency->settings = *settings;
    if (settings->kind == TD_ENGINE_LATENCY_PROFILE)
        TD_TRY(copy_sizes(latency, info));
    latency->settings.sizes = NULL;
    *ret_latency = TD_TAKE(latency);
    return TD_OK;
}

void td_engine_synthetic_latency_free(td_engine_synthetic_latency *latency)
{
    for (size_t i = 0; i < latency->size_count; i++)
        free(latency->sizes[i].ms);
    free(latency);
}

// The measured size that stands for a batch of n: its own, or the next larger,
// or the largest.
static const size_samples *
samples_of(const td_engine_synthetic_latency *latency, uint32_t n)
{
    size_t i = 0;
    while (i + 1 < latency->size_count && latency->sizes[i].n < n)
        i++;
    return &latency->sizes[i];
}

static double draw_lognormal(const td_engine_latency *settings, td_rand *rand)
{
    double ratio = settings->std_ms / settings->ms;
    double variance = log1p(ratio * ratio);
    return settings->ms *
           exp(sqrt(variance) * td_rand_normal(rand) - variance / 2);
}

static double draw_ms(const td_engine_synthetic_latency *latency, td_rand *rand,
                      uint32_t n)
{
    const td_engine_latency *settings = &latency->settings;
    switch (settings->kind) {
    case TD_ENGINE_LATENCY_NONE:
        break;
    case TD_ENGINE_LATENCY_FIXED:
        return settings->ms;
    case TD_ENGINE_LATENCY_NORMAL:
        return fmax(0, settings->ms + settings->std_ms * td_rand_normal(rand));
    case TD_ENGINE_LATENCY_LOGNORMAL:
        return draw_lognormal(settings, rand);
    case TD_ENGINE_LATENCY_PROFILE: {
        const size_samples *size = samples_of(latency, n);
        return size->ms[td_rand_u64(rand) % size->count];
    }
    }
    return 0;
}

static double mean_ms(const td_engine_synthetic_latency *latency, uint32_t n)
{
    switch (latency->settings.kind) {
    case TD_ENGINE_LATENCY_NONE:
        return 0;
    case TD_ENGINE_LATENCY_PROFILE:
        return samples_of(latency, n)->mean_ms;
    default:
        return latency->settings.ms;
    }
}

static int64_t with_members(const td_engine_synthetic_latency *latency,
                            double ms, uint32_t n)
{
    uint32_t from = 1;
    if (latency->settings.kind == TD_ENGINE_LATENCY_PROFILE)
        from = samples_of(latency, n)->n;
    if (n > from) ms += (n - from) * latency->settings.per_batch_ms;
    return llrint(fmin(ms, MAX_MS) * (double)TD_NS_PER_MS);
}

int64_t td_engine_synthetic_latency_prepare_ns(
    const td_engine_synthetic_latency *latency)
{
    return llrint(latency->settings.prepare_ms * (double)TD_NS_PER_MS);
}

int64_t
td_engine_synthetic_latency_draw_ns(const td_engine_synthetic_latency *latency,
                                    td_rand *rand, uint32_t n)
{
    return with_members(latency, draw_ms(latency, rand, n), n);
}

int64_t
td_engine_synthetic_latency_mean_ns(const td_engine_synthetic_latency *latency,
                                    uint32_t n)
{
    return with_members(latency, mean_ms(latency, n), n);
}
