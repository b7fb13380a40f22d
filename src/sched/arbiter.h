// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_ARBITER_H
#define TD_SCHED_ARBITER_H

// Which models of a device may start a batch now.
//
// On a GPU one model runs at a time. Where its engine takes several batches a
// further one may follow while no other model waits, and only a full one: a
// batch that could still grow loses nothing by waiting for the one before it.
// An engine that batches continuously takes batches of one that join what runs,
// as long as nobody who would be on time becomes late by it.
//
// Models run side by side where the device is no such thing but processors
// (`side_by_side`); and a model whose engine runs batches in parallel
// (asynchronous functions, several workers) as many of its own as it may,
// beside whatever else runs.
//
// Pure: no clock, no thread, no lock, no memory.

#include "sched/batch.h"

#define TD_SCHED_ARBITER_MODELS 64
#define TD_SCHED_ARBITER_RUNS TD_SCHED_MAX_BATCH // at a time

typedef struct td_sched_arbiter_model {
    uint32_t most_inflight; // batches at a time; at least 1
    bool continuous;        // batches of one, rule.most of them at a time
    bool parallel;          // its batches do not take each other's time
    td_sched_batch_rule rule;
    const td_sched_batch_times *times; // borrowed
} td_sched_arbiter_model;

typedef struct td_sched_arbiter_run {
    bool used;
    uint32_t model;
    int64_t due_ns; // NEVER: none
    int64_t started_ns;
    double left;    // of its work, 1 to 0
    double area_ns; // its model's when it started
} td_sched_arbiter_run;

typedef struct td_sched_arbiter_use { // of the device, by a model
    uint32_t running;
    double area_ns; // how many ran, over time
} td_sched_arbiter_use;

typedef struct td_sched_arbiter {
    bool side_by_side; // models run at the same time
    td_sched_arbiter_model models[TD_SCHED_ARBITER_MODELS];
    td_sched_arbiter_use uses[TD_SCHED_ARBITER_MODELS];
    td_sched_arbiter_run runs[TD_SCHED_ARBITER_RUNS];
    uint32_t running;   // of all models
    uint32_t exclusive; // of those, of models that are not parallel
    int64_t now_ns;
    double busy;    // the share of time that something ran; lately counts most
} td_sched_arbiter; // all 0: nothing runs

typedef struct td_sched_grant {
    uint64_t models; // a bit for each that may start a batch
    uint64_t full;   // likewise, but only a full one
} td_sched_grant;

// How the model runs, from its next batch on.
void td_sched_arbiter_set(td_sched_arbiter *arbiter, uint32_t model,
                          const td_sched_arbiter_model *how);

// Who of those that wait (a bit each) may start a batch.
td_sched_grant td_sched_arbiter_grant(td_sched_arbiter *arbiter, int64_t now_ns,
                                      uint64_t waiting);

// Whether nothing runs that a batch of this model would run beside.
bool td_sched_arbiter_is_free(const td_sched_arbiter *arbiter, uint32_t model);

// A batch that was granted starts; `due_ns` is the earliest in it. Returns its
// number, below TD_SCHED_ARBITER_RUNS.
uint32_t td_sched_arbiter_start(td_sched_arbiter *arbiter, int64_t now_ns,
                                uint32_t model, int64_t due_ns);

// It has ended. Returns how many batches of its model ran beside and with it,
// on average: of a continuous engine, the size to which the time it took
// belongs.
uint32_t td_sched_arbiter_end(td_sched_arbiter *arbiter, int64_t now_ns,
                              uint32_t run);

// How busy the device was over the last second or so, 0 to 1.
double td_sched_arbiter_busy(td_sched_arbiter *arbiter, int64_t now_ns);

#endif
