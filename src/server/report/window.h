// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_REPORT_WINDOW_H
#define TD_SERVER_REPORT_WINDOW_H

// How a number was spread over the last seconds or minutes.
//
// Histograms of short slices of time, added up when somebody asks. Memory and
// the cost of recording are the same at any rate, and a window is whole at any
// rate: a ring of the last 10,000 values, which is the usual way, is ten
// seconds long at 1,000 a second, whatever window was asked for.
//
// Values up to 15 are exact, larger ones fall into buckets no wider than 1/8 of
// their value, quantiles are interpolated inside; count, sum, least and largest
// are exact. Of a window with few values (TD_SERVER_WINDOW_EXACT) all is exact:
// the last so many are kept as they were.
//
// One writer at a time; readers on any thread wait for nobody and delay nobody.
// A slice that is taken into use again while it is read is left out.

#include <stdatomic.h>
#include <stdint.h>

#define TD_SERVER_WINDOW_MAX_S 600
#define TD_SERVER_WINDOW_BUCKETS 200
#define TD_SERVER_WINDOW_EXACT 64
#define TD_SERVER_WINDOW_SHORT 7 // slices of 10 s: windows up to 60 s
#define TD_SERVER_WINDOW_LONG 11 // slices of 60 s: longer ones

typedef struct td_server_slice {
    _Atomic uint32_t number; // since time 0, from 1; 0: holds nothing
    _Atomic uint64_t sum, min, max;
    _Atomic uint32_t counts[TD_SERVER_WINDOW_BUCKETS];
} td_server_slice;

typedef struct td_server_window {
    td_server_slice few[TD_SERVER_WINDOW_SHORT];
    td_server_slice many[TD_SERVER_WINDOW_LONG];
    _Atomic uint64_t begun, written;               // values, ever
    _Atomic uint64_t last[TD_SERVER_WINDOW_EXACT]; // a ring
} td_server_window;

typedef struct td_server_stats_spread {
    uint64_t count;
    double mean, min, max; // all 0 when the count is
    double p50, p95, p99, p999;
} td_server_stats_spread;

// Windows of several numbers added up. Begin with TD_SERVER_SUM_EMPTY.
typedef struct td_server_sum {
    uint64_t count, sum, min, max;
    uint64_t counts[TD_SERVER_WINDOW_BUCKETS];
    uint64_t values[TD_SERVER_WINDOW_EXACT];
    uint64_t value_count; // all of them, if it is the count
} td_server_sum;

#define TD_SERVER_SUM_EMPTY                                                    \
    (td_server_sum)                                                            \
    {                                                                          \
        .min = UINT64_MAX                                                      \
    }

// Forgets everything, as at the start. Writer.
void td_server_window_clear(td_server_window *window);

// Writer; never blocks. The time does not go back by more than a slice.
void td_server_window_record(td_server_window *window, int64_t now_ns,
                             uint64_t value);

// What was recorded in the last `window_ns` (1 s to MAX_S), rounded up to whole
// slices. Any thread; never blocks.
void td_server_window_read(const td_server_window *window, int64_t now_ns,
                           int64_t window_ns,
                           td_server_stats_spread *ret_spread);

// The same, added to `sum`; and what a sum amounts to.
void td_server_window_add(const td_server_window *window, int64_t now_ns,
                          int64_t window_ns, td_server_sum *sum);
void td_server_window_spread(td_server_sum *sum,
                             td_server_stats_spread *ret_spread);

// From when on such a window counts what came.
int64_t td_server_window_since_ns(int64_t now_ns, int64_t window_ns);

#endif
