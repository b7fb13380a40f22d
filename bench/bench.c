// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    uint64_t rows, missed;
    bool progress; // a line of it is on the terminal
} printed;

static td_event stop_event;
static _Atomic bool stopped;

static void clear_progress(void)
{
    if (printed.progress) (void)fputs("\r\033[K", stderr);
    printed.progress = false;
}

void td_bench_progress(const char *fmt, ...)
{
    if (!isatty(STDERR_FILENO)) return;
    clear_progress();
    va_list args;
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fflush(stderr);
    printed.progress = true;
}

static bool is_two_sided(const td_bench_row *row)
{
    return row->limited == TD_BENCH_RATIO_OFF ||
           row->limited == TD_BENCH_VALUE_OFF;
}

// How far a figure is from where it belongs.
static double off_by(const td_bench_row *row)
{
    double off = row->limited == TD_BENCH_RATIO_OFF ? row->ratio - 1
                                                    : row->value - row->other;
    return off < 0 ? -off : off;
}

static bool is_missed(const td_bench_row *row)
{
    double got = row->limited == TD_BENCH_RATIO ? row->ratio : row->value;
    if (row->limited == TD_BENCH_NO_LIMIT) return false;
    if (is_two_sided(row)) return !(off_by(row) <= row->limit);
    return row->more ? !(got >= row->limit) : !(got <= row->limit);
}

static double other_of(const td_bench_row *row)
{
    return row->ratio > 0 ? row->value / row->ratio : row->other;
}

static void print_json(const td_bench_row *row)
{
    (void)printf("{\"bench\":\"%s\",\"case\":\"%s\",\"value\":%.6g,"
                 "\"unit\":\"%s\",\"better\":\"%s\"",
                 row->bench, row->name, row->value, row->unit,
                 row->more ? "more" : "less");
    if (row->against)
        (void)printf(",\"against\":\"%s\",\"against_value\":%.6g,"
                     "\"ratio\":%.6g",
                     row->against, other_of(row), row->ratio);
    (void)printf("}\n");
}

// Four digits, and never an exponent.
static void print_number(char ret[16], double number)
{
    (void)snprintf(ret, 16, number >= 1000 ? "%.0f" : "%.4g", number);
}

static void print_limit(char ret[48], const td_bench_row *row)
{
    const char *words = row->more ? "at least" : "at most";
    const char *unit = row->limited == TD_BENCH_RATIO ? " x" : "";
    double limit = row->limit;
    if (is_two_sided(row)) words = "off by at most";
    if (row->limited == TD_BENCH_RATIO_OFF) {
        limit = 100 * limit;
        unit = " %";
    }
    (void)snprintf(ret, 48, "%s %.3g%s  %s", words, limit, unit,
                   is_missed(row) ? "MISSED" : "within");
}

static void print_people(const td_bench_row *row)
{
    char value[16];
    char other[16];
    char against[64] = "";
    char ratio[16] = "";
    char limit[48] = "";
    char range[32] = "";
    if (row->high > 0)
        (void)snprintf(range, sizeof range, "  (%.2f to %.2f)", row->low,
                       row->high);
    if (row->against) {
        print_number(other, other_of(row));
        (void)snprintf(against, sizeof against, "%s %s", row->against, other);
        (void)snprintf(ratio, sizeof ratio, "%.2f", row->ratio);
    }
    if (row->limited != TD_BENCH_NO_LIMIT) print_limit(limit, row);
    print_number(value, row->value);
    if (printed.rows == 0)
        (void)printf("%-42s %10s %-6s %-28s %6s  %s\n", "case", "value", "unit",
                     "against", "ratio", "limit");
    (void)printf("%s/%-*s %10s %-6s %-28s %6s  %s%s\n", row->bench,
                 (int)(41 - strlen(row->bench)), row->name, value, row->unit,
                 against, ratio, limit, range);
}

void td_bench_print(const td_bench_options *options, const td_bench_row *row)
{
    clear_progress();
    if (options->json)
        print_json(row);
    else
        print_people(row);
    (void)fflush(stdout);
    printed.rows++;
    printed.missed += is_missed(row);
}

void td_bench_say(const td_bench_options *options, const char *fmt, ...)
{
    if (options->json) return;
    clear_progress();
    va_list args;
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    (void)putchar('\n');
    (void)fflush(stdout);
}

int td_bench_stay_awake(const td_bench_options *options)
{
    int fd = -1;
    td_errinfo refusal;
    if (td_thread_stay_awake(0, &fd, &refusal) != TD_OK)
        td_bench_say(options, "%s", refusal.text);
    return fd;
}

bool td_bench_wanted(const td_bench_options *options, const char *name)
{
    return !options->only || strstr(name, options->only);
}

void td_bench_tally(uint64_t *ret_rows, uint64_t *ret_missed)
{
    *ret_rows = printed.rows;
    *ret_missed = printed.missed;
}

void td_bench_pairs_add(td_bench_pairs *pairs, double ours, double theirs)
{
    if (pairs->count == TD_BENCH_MAX_PAIRS) return;
    pairs->ours[pairs->count] = ours;
    pairs->theirs[pairs->count] = theirs;
    pairs->count++;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double td_bench_median(double *values, size_t count)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double td_bench_pairs_value(const td_bench_pairs *pairs)
{
    td_bench_pairs copy = *pairs;
    return td_bench_median(copy.ours, copy.count);
}

static double median_ratio(const td_bench_pairs *pairs, double *ret_sorted)
{
    for (size_t i = 0; i < pairs->count; i++)
        ret_sorted[i] = pairs->ours[i] / pairs->theirs[i];
    return td_bench_median(ret_sorted, pairs->count);
}

double td_bench_pairs_ratio(const td_bench_pairs *pairs)
{
    double ratios[TD_BENCH_MAX_PAIRS];
    return median_ratio(pairs, ratios);
}

// Each ratio is above the median with one half: their number is binomial.
void td_bench_pairs_range(const td_bench_pairs *pairs, double *ret_low,
                          double *ret_high)
{
    double ratios[TD_BENCH_MAX_PAIRS];
    double n = (double)pairs->count;
    bool enough = pairs->count >= 6;
    (void)median_ratio(pairs, ratios);
    size_t rank = (size_t)fmax(1, (n - 1.96 * sqrt(n)) / 2);
    *ret_low = enough ? ratios[rank - 1] : 0;
    *ret_high = enough ? ratios[pairs->count - rank] : 0;
}

double td_bench_quantile_us(const td_hist *hist, double quantile)
{
    return (double)td_hist_quantile(hist, quantile) / (double)TD_NS_PER_US;
}

void td_bench_stop(void *unused)
{
    (void)unused;
    atomic_store(&stopped, true);
    td_event_signal(&stop_event);
}

td_err td_bench_sleep(int64_t ns)
{
    int64_t until_ns = td_clock_monotonic_ns() + ns;
    if (!atomic_load(&stopped))
        (void)td_event_wait_until(&stop_event, until_ns);
    return atomic_load(&stopped) ? TD_ERR_CANCELLED : TD_OK;
}
