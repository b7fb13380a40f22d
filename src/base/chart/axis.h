// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_CHART_AXIS_H
#define TD_BASE_CHART_AXIS_H

// Axes and their ticks at round values. A tick is kept as digits and a power of
// ten, so that its label is exact and no locale has a say in it.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_CHART_LABEL_BYTES 40

typedef struct td_chart_axis {
    double lo, hi; // lo < hi; both above 0 where `log`
    bool log;
    bool doubles; // with `log`: ticks at lo, 2 lo, 4 lo and so on, whole ones
} td_chart_axis;

typedef struct td_chart_tick {
    int64_t digits;
    int exponent; // the value is digits x 10^exponent
} td_chart_tick;

// Whether an axis can show `value` at all.
bool td_chart_axis_shows(bool log, double value);

// From `lo` to `hi`, made wider where they are the same, or some range where
// there is none (lo > hi).
td_chart_axis td_chart_axis_of(double lo, double hi, bool log);

// Widens the axis until it begins and ends at a tick.
void td_chart_axis_widen(td_chart_axis *axis, size_t most_ticks);

// 0 at lo, 1 at hi.
double td_chart_axis_share(const td_chart_axis *axis, double value);

// The inverse.
double td_chart_axis_value(const td_chart_axis *axis, double share);

// Round values within the axis, ascending; at most `most_ticks`, which is at
// least 2.
size_t td_chart_axis_ticks(const td_chart_axis *axis, size_t most_ticks,
                           td_chart_tick *ret_ticks);

double td_chart_tick_value(td_chart_tick tick);
void td_chart_tick_label(td_chart_tick tick,
                         char ret_label[TD_CHART_LABEL_BYTES]);

#endif
