// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SCHED_ARBITER_H
#define TD_SCHED_ARBITER_H

// Which models of a device may start a batch now.
//
// One model runs at a time. Where its engine takes several batches a further
// one may follow while no other model waits, and only a full one: a batch that
// could still grow loses nothing by waiting for the one before it. An engine
// that batches continuously takes batches of one that join what runs, as long
// as nobody who would be on time becomes late by it.
//
// Pure: no clock, no thread, no lock, no memory.

#include "sched/batch.h"

#define TD_SCHED_ARBITER_MODELS 64
#define TD_SCHED_ARBITER_RUNS TD_SCHED_MAX_BATCH // at a time

typedef struct td_sched_arbiter_model {
    uint32_t most_inflight; // batches at a time; at least 1
    bool continuous;        // batches of one, rule.most of them at a time
    td_sched_batch_rule rule;
    const td_sched_batch_times *times; // borrowed
} td_sched_arbiter_model;

typedef struct td_sched_arbiter_run {
    bool used;
    int64_t due_ns; // NEVER: none
    int64_t started_ns;
    double left;    // of its work, 1 to 0
    double area_ns; // the arbiter's when it started
} td_sched_arbiter_run;

typedef struct td_sched_arbiter {
    td_sched_arbiter_model models[TD_SCHED_ARBITER_MODELS];
    td_sched_arbiter_run runs[TD_SCHED_ARBITER_RUNS];
    uint32_t running;
    uint32_t model; // that runs
    int64_t now_ns;
    double area_ns; // how many ran, over time
    double busy;    // the share of time that something ran; lately counts most
} td_sched_arbiter; // all 0: nothing runs

typedef struct td_sched_grant {
    uint64_t models; // a bit for each that may start a batch
    bool full;       // only a full one
} td_sched_grant;

// How the model runs, from its next batch on.
void td_sched_arbiter_set(td_sched_arbiter *arbiter, uint32_t model,
                          const td_sched_arbiter_model *how);

// Who of those that wait (a bit each) may start a batch.
td_sched_grant td_sched_arbiter_grant(td_sched_arbiter *arbiter, int64_t now_ns,
                                      uint64_t waiting);

// A batch that was granted starts; `due_ns` is the earliest in it. Returns its
// number, below TD_SCHED_ARBITER_RUNS.
uint32_t td_sched_arbiter_start(td_sched_arbiter *arbiter, int64_t now_ns,
                                uint32_t model, int64_t due_ns);

// It has ended. Returns how many batches ran beside and with it, on average:
// of a continuous engine, the size to which the time it took belongs.
uint32_t td_sched_arbiter_end(td_sched_arbiter *arbiter, int64_t now_ns,
                              uint32_t run);

// How busy the device was over the last second or so, 0 to 1.
double td_sched_arbiter_busy(td_sched_arbiter *arbiter, int64_t now_ns);

#endif
