// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_SCHEDULING_H
#define TD_CONFIG_MANIFEST_SCHEDULING_H

// Who goes first on every device, and when a batch of a model starts.

#include "base/err.h"

#include <stdbool.h>

#define TD_CONFIG_MAX_TIERS 8

// In the order of td_sched_strategy.
typedef enum td_config_strategy {
    TD_CONFIG_DEADLINE_AWARE,
    TD_CONFIG_MODEL_DEADLINE,
    TD_CONFIG_TIERED_DEADLINE,
    TD_CONFIG_PRIORITY_TIERED,
    TD_CONFIG_BATCH_OPTIMIZED,
    TD_CONFIG_ROUND_ROBIN,
} td_config_strategy;

// In the order of td_sched_overflow.
typedef enum td_config_overflow {
    TD_CONFIG_DROP_OLDEST,
    TD_CONFIG_REJECT_NEWEST,
} td_config_overflow;

// In the order of td_sched_batch_wait.
typedef enum td_config_wait {
    TD_CONFIG_WAIT_SLACK,
    TD_CONFIG_WAIT_NONE,
    TD_CONFIG_WAIT_FIXED,
    TD_CONFIG_WAIT_FULL,
} td_config_wait;

typedef struct td_config_weights {
    double cadence, urgency, steps, priority, age;
} td_config_weights;

typedef struct td_config_queue {
    int64_t size;
    double ttl_ms;
    td_config_overflow overflow;
    int64_t retries;
    double backoff_ms;
} td_config_queue;

typedef struct td_config_cadence {
    double alpha, gone_s, wake_ahead_ms;
    int64_t wake_samples;
} td_config_cadence;

typedef struct td_config_flush {
    int64_t max_size;
    double wait_ms;
} td_config_flush;

// The score and the plug-in are read by others: `_at` says where they stand,
// "manifest.yaml:5: scheduling.score".
typedef struct td_config_scheduling {
    td_config_strategy strategy;
    td_config_weights weights;
    const char *score, *score_at;   // an expression; empty: the published score
    const char *plugin, *plugin_at; // a file; empty: none
    int64_t tiers;
    double fairness;
    bool side_by_side;
    td_config_queue queue;
    td_config_cadence cadence;
    td_config_flush flush;
} td_config_scheduling;

// Reads fields of `scheduling` alone, of a document that errors call `path`:
// what is not given is as it was, but score and plugin, which then are none.
// Owned by the caller; free with td_config_scheduling_free(). As
// td_config_manifest_parse(); INVALID for `tiers`, which stay.
TD_NODISCARD td_err td_config_scheduling_parse(const char *path,
                                               const char *text,
                                               const td_config_scheduling *was,
                                               td_config_scheduling **ret_now,
                                               td_errinfo *info);
void td_config_scheduling_free(td_config_scheduling *scheduling);
TD_AUTO_FREE(td_config_scheduling, td_config_scheduling_free)

typedef struct td_config_batch {
    td_config_wait wait;
    int64_t max_size; // 0: the engine's
    double wait_ms;
} td_config_batch;

extern const struct td_config_table td_config_scheduling_table;
extern const struct td_config_table td_config_batch_table;
extern const char *const td_config_strategies[];
extern const char *const td_config_overflows[];
extern const char *const td_config_waits[];

#endif
