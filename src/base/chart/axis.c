// SPDX-License-Identifier: Apache-2.0
#include "base/chart/axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Rounding must not cost the tick at either end.
#define SLACK 1e-6
#define MOST_WHOLE 1e15 // of ticks that double

bool td_chart_axis_shows(bool log, double value)
{
    return fabs(value) <= 1e100 && (!log || value >= 1e-100);
}

td_chart_axis td_chart_axis_of(double lo, double hi, bool log)
{
    if (!(lo <= hi))
        return (td_chart_axis){
            .lo = log ? 1 : 0, .hi = log ? 10 : 1, .log = log};

    double size = fmax(fabs(lo), fabs(hi));
    bool same = hi - lo <= size * 1e-9;
    if (log && same)
        return (td_chart_axis){.lo = lo / 2, .hi = hi * 2, .log = true};
    if (size < 1e-100) return (td_chart_axis){.hi = 1};
    if (same)
        return (td_chart_axis){.lo = lo - size / 10, .hi = hi + size / 10};
    return (td_chart_axis){.lo = lo, .hi = hi, .log = log};
}

double td_chart_axis_share(const td_chart_axis *axis, double value)
{
    if (axis->log) return log(value / axis->lo) / log(axis->hi / axis->lo);
    return (value - axis->lo) / (axis->hi - axis->lo);
}

double td_chart_axis_value(const td_chart_axis *axis, double share)
{
    if (axis->log) return axis->lo * pow(axis->hi / axis->lo, share);
    return axis->lo + share * (axis->hi - axis->lo);
}

double td_chart_tick_value(td_chart_tick tick)
{
    double power = pow(10, abs(tick.exponent));
    return tick.exponent < 0 ? (double)tick.digits / power
                             : (double)tick.digits * power;
}

// The smallest of 1, 2 and 5 times a power of ten that is at least `size`.
static td_chart_tick round_up(double size)
{
    int exponent = (int)floor(log10(size));
    double rest = size / pow(10, exponent) * (1 - SLACK);
    if (rest <= 1) return (td_chart_tick){1, exponent};
    if (rest <= 2) return (td_chart_tick){2, exponent};
    if (rest <= 5) return (td_chart_tick){5, exponent};
    return (td_chart_tick){1, exponent + 1};
}

static td_chart_tick step_of(const td_chart_axis *axis, size_t most_ticks)
{
    return round_up((axis->hi - axis->lo) / (double)(most_ticks - 1));
}

static size_t linear_ticks(const td_chart_axis *axis, size_t most_ticks,
                           td_chart_tick *ret_ticks)
{
    td_chart_tick step = step_of(axis, most_ticks);
    double size = td_chart_tick_value(step);
    int64_t first = (int64_t)ceil(axis->lo / size - SLACK);
    int64_t last = (int64_t)floor(axis->hi / size + SLACK);
    size_t count = 0;
    for (int64_t i = first; i <= last && count < most_ticks; i++)
        ret_ticks[count++] =
            (td_chart_tick){i * step.digits, i ? step.exponent : 0};
    return count;
}

// 1, 2 and 5 in every decade while there is room, else powers of ten, else only
// every so many of those.
static size_t log_ticks(const td_chart_axis *axis, size_t most_ticks,
                        td_chart_tick *ret_ticks)
{
    static const int64_t digits[] = {1, 2, 5};
    double decades = log10(axis->hi / axis->lo);
    size_t each = 3 * (decades + 1) <= (double)most_ticks ? 3 : 1;
    int stride = 1 + (int)(decades / (double)(most_ticks - 1) - SLACK);
    double lo = axis->lo * (1 - SLACK);
    double hi = axis->hi * (1 + SLACK);

    int from = (int)floor(log10(lo));
    size_t count = 0;
    for (int e = from; e <= (int)ceil(log10(hi)); e++) {
        if (e % stride != 0) continue;
        for (size_t d = 0; d < each && count < most_ticks; d++) {
            td_chart_tick tick = {digits[d], e};
            double value = td_chart_tick_value(tick);
            if (value >= lo && value <= hi) ret_ticks[count++] = tick;
        }
    }
    return count;
}

static size_t double_ticks(const td_chart_axis *axis, size_t most_ticks,
                           td_chart_tick *ret_ticks)
{
    size_t count = 0;
    double hi = fmin(axis->hi * (1 + SLACK), MOST_WHOLE);
    double at = fmax(1, ceil(axis->lo - SLACK));
    for (; at <= hi && count < most_ticks; at *= 2)
        ret_ticks[count++] = (td_chart_tick){(int64_t)at, 0};
    return count;
}

size_t td_chart_axis_ticks(const td_chart_axis *axis, size_t most_ticks,
                           td_chart_tick *ret_ticks)
{
    if (axis->log && axis->doubles)
        return double_ticks(axis, most_ticks, ret_ticks);
    if (axis->log && axis->hi / axis->lo >= 10)
        return log_ticks(axis, most_ticks, ret_ticks);
    return linear_ticks(axis, most_ticks, ret_ticks);
}

static void widen_log(td_chart_axis *axis)
{
    axis->lo = pow(10, floor(log10(axis->lo) + SLACK));
    axis->hi = pow(10, ceil(log10(axis->hi) - SLACK));
    if (axis->hi / axis->lo < 5) axis->hi = axis->lo * 10;
}

// A wider axis may ask for a wider step, which then needs another look.
void td_chart_axis_widen(td_chart_axis *axis, size_t most_ticks)
{
    if (axis->log) {
        widen_log(axis);
        return;
    }
    for (int look = 0; look < 3; look++) {
        double size = td_chart_tick_value(step_of(axis, most_ticks));
        axis->lo = floor(axis->lo / size + SLACK) * size;
        axis->hi = ceil(axis->hi / size - SLACK) * size;
    }
}

static void fixed_label(td_chart_tick tick, char *ret_label)
{
    int64_t scale = 1;
    for (int e = abs(tick.exponent); e > 0; e--)
        scale *= 10;
    long long whole = tick.exponent < 0 ? llabs(tick.digits / scale)
                                        : llabs(tick.digits * scale);
    int size = snprintf(ret_label, TD_CHART_LABEL_BYTES, "%s%lld",
                        tick.digits < 0 ? "-" : "", whole);
    if (tick.exponent >= 0) return;

    // A leading 1 keeps the zeros behind the point; the point takes its place.
    (void)snprintf(ret_label + size, TD_CHART_LABEL_BYTES - (size_t)size,
                   "%lld", scale + llabs(tick.digits % scale));
    ret_label[size] = '.';
}

void td_chart_tick_label(td_chart_tick tick,
                         char ret_label[TD_CHART_LABEL_BYTES])
{
    if (tick.digits == 0 || abs(tick.exponent) <= 6)
        fixed_label(tick, ret_label);
    else
        (void)snprintf(ret_label, TD_CHART_LABEL_BYTES, "%llde%d",
                       (long long)tick.digits, tick.exponent);
}
