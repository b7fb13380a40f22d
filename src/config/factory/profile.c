// SPDX-License-Identifier: Apache-2.0
// Reads the profile of a model on a GPU, and answers what a batch takes.
//
// The file holds samples of service times, by size of batch, or for a language
// model prefill and steps by concurrency. They are sorted once when the file is
// read, so that a quantile is a look-up.
//
// A batch between two measured sizes takes what the larger one takes; where the
// engine was asked for padded batches too, it lies between the fewest members
// that take that size and the full one. Steps of a language model lie between
// the neighbouring concurrencies. Nothing is extrapolated: beyond the largest
// size its own times are given, and td_config_profile_max_batch() says how
// large that is.
//
// A profile whose measuring is not complete is read by
// td_config_profile_load_part() alone. An error adds the command that measures
// a new one.
#include "config/factory/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZES 64
#define MAX_SAMPLES 16384
#define MAX_MS 600000
#define MAX_RATES 1024
#define BYTES_PER_GB 1073741824.0

const char *const td_config_profile_origins[] = {"measured", "fitted",
                                                 "published", NULL};

static td_err check_profile(const td_config_location *location,
                            const td_config_node *node, void *value);

static const td_config_field service_rows[] = {
    TD_ROW_INTEGER(td_config_profile_service, batch, NULL, 1, MAX_SIZES,
                   "members; grows from entry to entry"),
    TD_ROW_NUMBERS(td_config_profile_service, alone_ms, alone_count, NULL, 0,
                   MAX_MS, 1, MAX_SAMPLES,
                   "what such a batch takes with nothing else under way"),
    TD_ROW_NUMBERS(td_config_profile_service, padded_ms, padded_count, "[]", 0,
                   MAX_MS, 0, MAX_SAMPLES,
                   "the same with the fewest members that need this size: one "
                   "more than the size before"),
};
static const td_config_table service_table = {
    service_rows, TD_COUNT_OF(service_rows), sizeof(td_config_profile_service),
    NULL};

static const td_config_field step_rows[] = {
    TD_ROW_INTEGER(td_config_profile_step, concurrency, NULL, 1, MAX_SIZES,
                   "requests under way; grows from entry to entry"),
    TD_ROW_NUMBERS(td_config_profile_step, ms, ms_count, NULL, 0, MAX_MS, 1,
                   MAX_SAMPLES,
                   "from one token of a request to the next, with the "
                   "prefills of those that join"),
};
static const td_config_table step_table = {
    step_rows, TD_COUNT_OF(step_rows), sizeof(td_config_profile_step), NULL};

static const td_config_field language_rows[] = {
    TD_ROW_INTEGER(td_config_profile_language, prompt_tokens, "0", 0, 10000000,
                   "of a request, with its pictures"),
    TD_ROW_INTEGER(td_config_profile_language, output_tokens, "0", 0, 10000000,
                   "of an answer"),
    TD_ROW_INTEGER(td_config_profile_language, kv_bytes_per_token, "0", 0,
                   1000000000, "K/V cache"),
    TD_ROW_NUMBERS(td_config_profile_language, prefill_ms, prefill_count, "[]",
                   0, MAX_MS, 0, MAX_SAMPLES, "of one prompt, alone"),
    TD_ROW_STRUCTS(td_config_profile_language, step, step_count,
                   td_config_profile_step, "[]", step_table, 0, MAX_SIZES,
                   "a request takes its prefill, and a step for each token of "
                   "its answer"),
};
static const td_config_table language_table = {
    language_rows, TD_COUNT_OF(language_rows),
    sizeof(td_config_profile_language), NULL};

static const td_config_field rate_rows[] = {
    TD_ROW_INTEGER(td_config_profile_rate, batch, NULL, 1, MAX_SIZES,
                   "most members of a batch"),
    TD_ROW_NUMBER(td_config_profile_rate, percent, NULL, 0, 1000,
                  "of the top throughput of such batches"),
    TD_ROW_NUMBER(td_config_profile_rate, rate_hz, NULL, 0, 10000000,
                  "requests a second"),
    TD_ROW_NUMBER(td_config_profile_rate, predicted_p50_ms, NULL, 0, MAX_MS,
                  "latency with queueing, from the service times"),
    TD_ROW_NUMBER(td_config_profile_rate, predicted_p99_ms, NULL, 0, MAX_MS,
                  "as above"),
    TD_ROW_NUMBER(td_config_profile_rate, measured_p50_ms, NULL, 0, MAX_MS,
                  "latency with queueing, of the engine"),
    TD_ROW_NUMBER(td_config_profile_rate, measured_p99_ms, NULL, 0, MAX_MS,
                  "as above"),
};
static const td_config_table rate_table = {
    rate_rows, TD_COUNT_OF(rate_rows), sizeof(td_config_profile_rate), NULL};

static const td_config_field profile_rows[] = {
    TD_ROW_INTEGER(td_config_profile, profile, NULL, 1, 1000000,
                   "the version of this format, 1"),
    TD_ROW_TEXT(td_config_profile, model, NULL, 1, 256, "as factories name it"),
    TD_ROW_TEXT(td_config_profile, model_hash, "\"\"", 0, 128,
                "sha256 of its weights; empty: not known"),
    TD_ROW_TEXT(td_config_profile, engine, NULL, 1, 64, "what ran it"),
    TD_ROW_TEXT(td_config_profile, engine_hash, "\"\"", 0, 128,
                "sha256 of the engine's program; empty: not known"),
    TD_ROW_TEXT(td_config_profile, gpu, NULL, 1, 128,
                "as factories name it; CPU for none"),
    TD_ROW_NUMBER(td_config_profile, gpu_memory_gb, "0", 0, 100000,
                  "what the GPU has, in 2^30 bytes; 0: not known"),
    TD_ROW_NUMBER(td_config_profile, memory_gb, "0", 0, 100000,
                  "what the loaded model takes, without K/V; 0: not known"),
    TD_ROW_ENUM(td_config_profile, origin, NULL, td_config_profile_origins,
                "measured here, fitted to published figures, or published by "
                "others"),
    TD_ROW_TEXT(td_config_profile, source, "\"\"", 0, 4096,
                "where the figures come from, in words"),
    TD_ROW_NUMBER(td_config_profile, noise, "0", 0, 1000,
                  "how far the median of a part of the samples was from that "
                  "of all; 0.03 is 3 %"),
    TD_ROW_STRUCTS(td_config_profile, service, service_count,
                   td_config_profile_service, "[]", service_table, 0, MAX_SIZES,
                   "a model that runs one batch at a time"),
    TD_ROW_STRUCT(td_config_profile, language, td_config_profile_language, "{}",
                  language_table, "a language model that batches continuously"),
    TD_ROW_STRUCTS(td_config_profile, rates, rate_count, td_config_profile_rate,
                   "[]", rate_table, 0, MAX_RATES,
                   "under load: predicted and measured"),
    TD_ROW_BOOL(td_config_profile, complete, NULL,
                "true, the last line; false: `tendon profile` has not finished "
                "it"),
};
const td_config_table td_config_profile_table = {
    profile_rows, TD_COUNT_OF(profile_rows), sizeof(td_config_profile),
    check_profile};

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static void sort(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, by_size);
}

static const td_config_node *member(const td_config_node *list, size_t index)
{
    const td_config_node *at = list->first;
    while (index-- > 0)
        at = at->next;
    return at;
}

static td_err must_grow(const td_config_location *location,
                        const td_config_node *list, size_t index,
                        const char *field, int64_t before, int64_t now)
{
    if (now > before) return TD_OK;
    char where[64];
    (void)snprintf(where, sizeof where, field, index);
    return td_config_location_fail(
        location, member(list, index), where,
        "must be above that before it, %lld, got %lld", (long long)before,
        (long long)now);
}

static td_err check_service(const td_config_location *location,
                            const td_config_node *node,
                            td_config_profile *profile)
{
    const td_config_node *list = td_config_node_get(node, "service");
    int64_t before = 0;
    for (size_t i = 0; i < profile->service_count; i++) {
        td_config_profile_service *size = &profile->service[i];
        TD_TRY(must_grow(location, list, i, "service[%zu].batch", before,
                         size->batch));
        before = size->batch;
        sort(size->alone_ms, size->alone_count);
        sort(size->padded_ms, size->padded_count);
    }
    return TD_OK;
}

static td_err check_language(const td_config_location *location,
                             const td_config_node *node,
                             td_config_profile *profile)
{
    td_config_profile_language *language = &profile->language;
    const td_config_node *own = td_config_node_get(node, "language");
    if (language->step_count == 0) return TD_OK;
    if (language->prefill_count == 0 || language->output_tokens == 0)
        return td_config_location_fail(
            location, own, "language",
            "steps need prefill_ms and output_tokens too");
    const td_config_node *list = td_config_node_get(own, "step");
    int64_t before = 0;
    for (size_t i = 0; i < language->step_count; i++) {
        td_config_profile_step *step = &language->step[i];
        TD_TRY(must_grow(location, list, i, "language.step[%zu].concurrency",
                         before, step->concurrency));
        before = step->concurrency;
        sort(step->ms, step->ms_count);
    }
    sort(language->prefill_ms, language->prefill_count);
    return TD_OK;
}

static td_err check_profile(const td_config_location *location,
                            const td_config_node *node, void *value)
{
    td_config_profile *profile = value;
    if (profile->profile != TD_CONFIG_PROFILE_FORMAT)
        return td_config_location_fail(
            location, td_config_node_get(node, "profile"), "profile",
            "must be %d, got %lld", TD_CONFIG_PROFILE_FORMAT,
            (long long)profile->profile);
    if ((profile->service_count > 0) == (profile->language.step_count > 0))
        return td_config_location_fail(
            location, NULL, NULL,
            "must have service or language, one of the two");
    TD_TRY(check_service(location, node, profile));
    TD_TRY(check_language(location, node, profile));
    profile->file = td_arena_print(location->arena, "%s", location->file);
    return profile->file ? TD_OK : td_config_location_no_memory(location);
}

static void add_way_out(td_err err, td_errinfo *info)
{
    (void)td_fail(info, err, "%s; `tendon profile` measures a new one",
                  info && info->text[0] ? info->text : td_err_text(err));
}

td_err td_config_profile_load_part(const char *path,
                                   td_config_profile **ret_profile,
                                   td_errinfo *info)
{
    void *profile = NULL;
    td_err err =
        td_config_table_load(&td_config_profile_table, path, &profile, info);
    if (err != TD_OK) {
        add_way_out(err, info);
        return err;
    }
    *ret_profile = profile;
    return TD_OK;
}

static td_err check_complete(const td_config_profile *profile, td_errinfo *info)
{
    if (profile->complete) return TD_OK;
    return td_fail(info, TD_ERR_INVALID,
                   "%s: is not complete; the `tendon profile` that began it "
                   "goes on with it",
                   td_config_location_shown_path(profile->file));
}

td_err td_config_profile_load(const char *path, td_config_profile **ret_profile,
                              td_errinfo *info)
{
    TD_AUTO(td_config_profile) *profile = NULL;
    TD_TRY(td_config_profile_load_part(path, &profile, info));
    TD_TRY(check_complete(profile, info));
    *ret_profile = TD_TAKE(profile);
    return TD_OK;
}

td_err td_config_profile_parse(const char *path, const void *data, size_t size,
                               td_config_profile **ret_profile,
                               td_errinfo *info)
{
    void *value = NULL;
    td_err err = td_config_table_parse(&td_config_profile_table, path, data,
                                       size, &value, info);
    if (err != TD_OK) {
        add_way_out(err, info);
        return err;
    }
    TD_AUTO(td_config_profile) *profile = value;
    TD_TRY(check_complete(profile, info));
    *ret_profile = TD_TAKE(profile);
    return TD_OK;
}

void td_config_profile_free(td_config_profile *profile)
{
    td_config_table_free(profile);
}

bool td_config_profile_continuous(const td_config_profile *profile)
{
    return profile->service_count == 0;
}

uint32_t td_config_profile_max_batch(const td_config_profile *profile)
{
    const td_config_profile_language *language = &profile->language;
    if (td_config_profile_continuous(profile))
        return (uint32_t)language->step[language->step_count - 1].concurrency;
    return (uint32_t)profile->service[profile->service_count - 1].batch;
}

// What is asked of a set of samples: the mean, or a quantile.
typedef struct figure {
    bool mean;
    double quantile;
} figure;

static double of_samples(const double *ms, size_t count, figure what)
{
    if (!what.mean) {
        double at = fmin(fmax(what.quantile, 0), 1) * (double)count;
        size_t index = (size_t)at;
        return ms[index < count ? index : count - 1];
    }
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ms[i];
    return sum / (double)count;
}

static double between(double x, double x0, double y0, double x1, double y1)
{
    return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
}

// A batch between two sizes lies between the padded samples, which are of the
// fewest members that take the larger size, and those of the full one.
static double of_batch(const td_config_profile *profile, uint32_t n,
                       figure what)
{
    size_t i = 0;
    while (i + 1 < profile->service_count && profile->service[i].batch < n)
        i++;
    const td_config_profile_service *size = &profile->service[i];
    double full = of_samples(size->alone_ms, size->alone_count, what);
    if (n >= size->batch || size->padded_count == 0) return full;
    double least = i ? (double)profile->service[i - 1].batch + 1 : 1;
    return between(n, least,
                   of_samples(size->padded_ms, size->padded_count, what),
                   (double)size->batch, full);
}

// Between two concurrencies a step lies between their steps.
static double of_step(const td_config_profile_language *language, uint32_t n,
                      figure what)
{
    size_t i = 0;
    while (i + 1 < language->step_count && language->step[i].concurrency < n)
        i++;
    const td_config_profile_step *step = &language->step[i];
    double own = of_samples(step->ms, step->ms_count, what);
    if (i == 0 || n >= step->concurrency) return own;
    const td_config_profile_step *before = step - 1;
    return between(n, (double)before->concurrency,
                   of_samples(before->ms, before->ms_count, what),
                   (double)step->concurrency, own);
}

static double of_request(const td_config_profile *profile, uint32_t n,
                         figure what)
{
    const td_config_profile_language *language = &profile->language;
    return of_samples(language->prefill_ms, language->prefill_count, what) +
           (double)language->output_tokens * of_step(language, n, what);
}

static double time_ms(const td_config_profile *profile, uint32_t n, figure what)
{
    return td_config_profile_continuous(profile) ? of_request(profile, n, what)
                                                 : of_batch(profile, n, what);
}

double td_config_profile_mean_ms(const td_config_profile *profile, uint32_t n)
{
    return time_ms(profile, n, (figure){.mean = true});
}

double td_config_profile_quantile_ms(const td_config_profile *profile,
                                     uint32_t n, double quantile)
{
    return time_ms(profile, n, (figure){.quantile = quantile});
}

double td_config_profile_memory_gb(const td_config_profile *profile, uint32_t n)
{
    const td_config_profile_language *language = &profile->language;
    if (profile->memory_gb == 0) return 0;
    double tokens = (double)(language->prompt_tokens + language->output_tokens);
    return profile->memory_gb +
           n * tokens * (double)language->kv_bytes_per_token / BYTES_PER_GB;
}
