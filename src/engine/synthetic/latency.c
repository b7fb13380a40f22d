// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/latency.h"

#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZES 64
#define MAX_SAMPLES 65536
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
    size_samples sizes[MAX_SIZES]; // n grows
    size_t size_count;
};

static td_err bad_line(const char *file, int line, const char *what,
                       td_errinfo *info)
{
    return td_fail(info, TD_ERR_FORMAT, "%.200s:%d: %s", file, line, what);
}

static bool read_sample(char **at, double *ret_ms)
{
    char *end = NULL;
    double ms = strtod(*at, &end);
    if (end == *at || !(ms >= 0 && ms <= MAX_MS)) return false;
    *at = end;
    *ret_ms = ms;
    return true;
}

static td_err read_samples(size_samples *size, char *text, const char *file,
                           int line, td_errinfo *info)
{
    double sum = 0;
    for (;;) {
        text += strspn(text, " \t\r\n,");
        if (!*text || *text == '#') break;
        if (size->count == MAX_SAMPLES)
            return bad_line(file, line, "more than 65536 samples", info);
        double *grown = realloc(size->ms, (size->count + 1) * sizeof *grown);
        if (!grown) return TD_ERR_NOMEM;
        size->ms = grown;
        if (!read_sample(&text, &size->ms[size->count]))
            return bad_line(file, line,
                            "a sample must be 0 to 3600000 milliseconds", info);
        sum += size->ms[size->count++];
    }
    if (size->count == 0)
        return bad_line(file, line, "no samples after the batch size", info);
    size->mean_ms = sum / (double)size->count;
    return TD_OK;
}

static td_err read_line(td_engine_synthetic_latency *latency, char *text,
                        int line, td_errinfo *info)
{
    const char *file = latency->settings.file;
    text += strspn(text, " \t\r\n");
    if (!*text || *text == '#') return TD_OK;
    char *end = NULL;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end != ':' || n < 1 || n > MAX_SIZES)
        return bad_line(file, line,
                        "must be \"n: samples in ms\" with n from 1 to 64",
                        info);
    size_t count = latency->size_count;
    if (count && n <= latency->sizes[count - 1].n)
        return bad_line(file, line, "batch sizes must grow from line to line",
                        info);
    size_samples *size = &latency->sizes[latency->size_count++];
    size->n = (uint32_t)n;
    return read_samples(size, end + 1, file, line, info);
}

static td_err read_lines(td_engine_synthetic_latency *latency, FILE *file,
                         td_errinfo *info)
{
    char *text = NULL;
    size_t room = 0;
    td_err err = TD_OK;
    for (int line = 1; err == TD_OK && getline(&text, &room, file) >= 0; line++)
        err = read_line(latency, text, line, info);
    free(text);
    if (err != TD_OK) return err;
    if (ferror(file))
        return td_fail(info, TD_ERR_IO, "%.200s: %s", latency->settings.file,
                       strerror(errno));
    if (latency->size_count == 0)
        return bad_line(latency->settings.file, 1, "the profile is empty",
                        info);
    return TD_OK;
}

static td_err read_profile(td_engine_synthetic_latency *latency,
                           td_errinfo *info)
{
    FILE *file = fopen(latency->settings.file, "re");
    if (!file)
        return td_fail(info, TD_ERR_IO, "%.200s: %s", latency->settings.file,
                       strerror(errno));
    td_err err = read_lines(latency, file, info);
    fclose(file);
    return err;
}

static bool is_time(double ms)
{
    return ms >= 0 && ms <= MAX_MS;
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
        TD_TRY(read_profile(latency, info));
    latency->settings.file = NULL;
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
