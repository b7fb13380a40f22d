// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_FACTORY_PROFILE_H
#define TD_CONFIG_FACTORY_PROFILE_H

// The profile of a model on a GPU: how long its engine takes.
//
// It holds service times, not queueing: what one batch of n takes alone, or,
// for a language model that batches continuously, what one request takes while
// n run. Queueing comes from the simulator or the real server.
//
// Samples are in growing order, so that a quantile is a look-up.

#include "config/yaml/table.h"

#define TD_CONFIG_PROFILE_FORMAT 1

// Times of a batch of `batch`. `padded_ms`, of an engine that was asked for it:
// the fewest members that still need this size, one more than the size before.
typedef struct td_config_profile_service {
    int64_t batch;
    double *alone_ms;
    size_t alone_count; // at least 1
    double *padded_ms;
    size_t padded_count;
} td_config_profile_service;

// From one token to the next of a request while `concurrency` run, with the
// prefills of those that join in between.
typedef struct td_config_profile_step {
    int64_t concurrency;
    double *ms;
    size_t ms_count; // at least 1
} td_config_profile_step;

// A request takes its prefill and output_tokens steps.
typedef struct td_config_profile_language {
    double *prefill_ms; // of one prompt, alone
    size_t prefill_count;
    td_config_profile_step *step; // concurrency grows
    size_t step_count;            // 0: not a language model
    int64_t prompt_tokens, output_tokens;
    int64_t kv_bytes_per_token;
} td_config_profile_language;

// Latency with queueing at a part of the top throughput of a batch limit: what
// the service times predict, and what was measured.
typedef struct td_config_profile_rate {
    int64_t batch;
    double percent;
    double rate_hz;
    double predicted_p50_ms, predicted_p99_ms;
    double measured_p50_ms, measured_p99_ms;
} td_config_profile_rate;

typedef enum td_config_profile_origin {
    TD_CONFIG_MEASURED,
    TD_CONFIG_FITTED,    // to figures that others published
    TD_CONFIG_PUBLISHED, // by others
} td_config_profile_origin;
extern const char *const td_config_profile_origins[];

typedef struct td_config_profile {
    int64_t profile; // TD_CONFIG_PROFILE_FORMAT
    const char *model;
    const char *model_hash; // "": not known
    const char *engine;
    const char *engine_hash;
    const char *gpu;
    double gpu_memory_gb; // of the GPU; 0: not known
    double memory_gb;     // that the model takes, without K/V; 0: not known
    td_config_profile_origin origin;
    const char *source; // where it comes from, in words
    double noise;       // spread of the times of one batch, 0.03 is 3 %
    td_config_profile_service *service; // batch grows
    size_t service_count;               // 0: a language model
    td_config_profile_language language;
    td_config_profile_rate *rates;
    size_t rate_count;
    bool complete;    // the last line of the file
    const char *file; // as loaded
} td_config_profile;

// Reads and checks one that is complete. Owned by the caller. Blocks on the
// file. IO, FORMAT (not YAML), LIMIT, INVALID, with file, line and the way out
// in `info`.
TD_NODISCARD td_err td_config_profile_load(const char *path,
                                           td_config_profile **ret_profile,
                                           td_errinfo *info);
TD_NODISCARD td_err td_config_profile_parse(const char *path, const void *data,
                                            size_t size,
                                            td_config_profile **ret_profile,
                                            td_errinfo *info);

// One that may still lack sizes and rates: what `tendon profile` goes on from.
TD_NODISCARD td_err td_config_profile_load_part(const char *path,
                                                td_config_profile **ret_profile,
                                                td_errinfo *info);
void td_config_profile_free(td_config_profile *profile);
TD_AUTO_FREE(td_config_profile, td_config_profile_free)

// Writes one so that it reads back the same. Blocks on the file. IO.
TD_NODISCARD td_err td_config_profile_write(const td_config_profile *profile,
                                            FILE *out);

// Whether what is submitted joins what runs; then n below is how many run.
bool td_config_profile_continuous(const td_config_profile *profile);

// The largest batch or concurrency that was measured.
uint32_t td_config_profile_max_batch(const td_config_profile *profile);

// The time of a batch of n, 1 to most: of its own size, or between two sizes
// that were measured as their padded samples say (without them, of the next
// larger). With quantile 0 to 1 at that place of the distribution; a uniform
// draw of `quantile` is a draw of the time. Pure.
double td_config_profile_mean_ms(const td_config_profile *profile, uint32_t n);
double td_config_profile_quantile_ms(const td_config_profile *profile,
                                     uint32_t n, double quantile);

// What it takes of a GPU with n in it, K/V with it. 0: not known.
double td_config_profile_memory_gb(const td_config_profile *profile,
                                   uint32_t n);

// The profiles of a folder. Owned by the caller.
typedef struct td_config_profiles {
    td_config_profile **items;
    size_t count;
} td_config_profiles;

// Reads every *.yaml in the folder, in the order of their names. Blocks. IO, or
// as td_config_profile_load().
TD_NODISCARD td_err td_config_profiles_load(const char *folder,
                                            td_config_profiles **ret_profiles,
                                            td_errinfo *info);
void td_config_profiles_free(td_config_profiles *profiles);
TD_AUTO_FREE(td_config_profiles, td_config_profiles_free)

// The profile of a model on a GPU. A name fits with or without what stands
// before its last '/'. `engine` "": whichever there is. Borrowed. NOTFOUND,
// MISMATCH (for another GPU, or of another engine), INVALID (several), with the
// way out in `info`.
TD_NODISCARD td_err td_config_profiles_find(
    const td_config_profiles *profiles, const char *model, const char *engine,
    const char *gpu, const td_config_profile **ret_profile, td_errinfo *info);

// Every field, for help and docs.
extern const td_config_table td_config_profile_table;

#endif
