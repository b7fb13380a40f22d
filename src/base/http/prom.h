// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_HTTP_PROM_H
#define TD_BASE_HTTP_PROM_H

// Metrics as text, in the format that Prometheus reads (version 0.0.4).
//
// Samples of one name must follow each other: a family has one HELP and one
// TYPE line, which come with its first sample. One thread at a time. Writing
// returns nothing; ask the stream (ferror) at the end.

#include "base/hist.h"

#include <stdio.h>

#define TD_PROM_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define TD_PROM_MAX_NAME 127 // the rest of a longer name is cut

typedef struct td_prom {
    FILE *out;
    char family[TD_PROM_MAX_NAME + 1]; // of the last sample
} td_prom;

// A list of labels ends with {0}; NULL is an empty list. Values are UTF-8 and
// may hold anything; a byte that a name may not hold becomes '_'.
typedef struct td_prom_label {
    const char *name;
    const char *value;
} td_prom_label;

// Borrows `out` as long as it is written to.
void td_prom_init(td_prom *prom, FILE *out);

// Begins a family, which then is there even if no sample follows.
typedef enum td_prom_type {
    TD_PROM_COUNTER,
    TD_PROM_GAUGE,
    TD_PROM_HISTOGRAM,
} td_prom_type;
void td_prom_family(td_prom *prom, const char *name, const char *help,
                    td_prom_type type);

void td_prom_counter(td_prom *prom, const char *name, const char *help,
                     const td_prom_label *labels, uint64_t value);

// One that is not a whole number.
void td_prom_counter_of(td_prom *prom, const char *name, const char *help,
                        const td_prom_label *labels, double value);

void td_prom_gauge(td_prom *prom, const char *name, const char *help,
                   const td_prom_label *labels, double value);

// Nanoseconds, written in seconds: buckets from 10 us to 10 s, each bound as
// exact as td_hist_count_to() is. The histogram may be written to meanwhile.
void td_prom_histogram(td_prom *prom, const char *name, const char *help,
                       const td_prom_label *labels, const td_hist *hist_ns);

// What the caller has counted by itself: counts[i] are the values above the
// bound before and not above bounds[i], counts[bound_count] those above all.
typedef struct td_prom_buckets {
    const double *bounds;
    const uint64_t *counts;
    size_t bound_count;
    double sum;
} td_prom_buckets;
void td_prom_histogram_of(td_prom *prom, const char *name, const char *help,
                          const td_prom_label *labels,
                          const td_prom_buckets *buckets);

#endif
