// SPDX-License-Identifier: Apache-2.0
#include "base/http/prom.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

// Three a decade, from a steady tick's lateness to a model that has gone away.
static const struct {
    int64_t ns;
    const char *seconds;
} bounds[] = {
    {10 * TD_NS_PER_US, "0.00001"},  {25 * TD_NS_PER_US, "0.000025"},
    {50 * TD_NS_PER_US, "0.00005"},  {100 * TD_NS_PER_US, "0.0001"},
    {250 * TD_NS_PER_US, "0.00025"}, {500 * TD_NS_PER_US, "0.0005"},
    {1 * TD_NS_PER_MS, "0.001"},     {2500 * TD_NS_PER_US, "0.0025"},
    {5 * TD_NS_PER_MS, "0.005"},     {10 * TD_NS_PER_MS, "0.01"},
    {25 * TD_NS_PER_MS, "0.025"},    {50 * TD_NS_PER_MS, "0.05"},
    {100 * TD_NS_PER_MS, "0.1"},     {250 * TD_NS_PER_MS, "0.25"},
    {500 * TD_NS_PER_MS, "0.5"},     {1 * TD_NS_PER_S, "1"},
    {2500 * TD_NS_PER_MS, "2.5"},    {5 * TD_NS_PER_S, "5"},
    {10 * TD_NS_PER_S, "10"},        {INT64_MAX, "+Inf"},
};

void td_prom_init(td_prom *prom, FILE *out)
{
    *prom = (td_prom){.out = out};
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// `colon`: names of metrics may hold one, those of labels not.
static void clean_name(const char *name, bool colon,
                       char ret_name[TD_PROM_MAX_NAME + 1])
{
    size_t size = 0;
    if (*name == '\0' || is_digit(*name)) ret_name[size++] = '_';
    for (; *name != '\0' && size < TD_PROM_MAX_NAME; name++) {
        bool is_good = is_letter(*name) || is_digit(*name);
        is_good |= colon && *name == ':';
        ret_name[size] = '_';
        if (is_good) ret_name[size] = *name;
        size++;
    }
    ret_name[size] = '\0';
}

// `also` is escaped beside backslash and line feed; '\0': nothing is.
static void print_escaped(FILE *out, const char *text, char also)
{
    const char special[] = {'\n', '\\', also, '\0'};
    for (;;) {
        size_t plain = strcspn(text, special);
        fwrite(text, 1, plain, out);
        text += plain;
        if (*text == '\0') return;
        fputc('\\', out);
        fputc(*text == '\n' ? 'n' : *text, out);
        text++;
    }
}

void td_prom_family(td_prom *prom, const char *name, const char *help,
                    td_prom_type type)
{
    static const char *const types[] = {[TD_PROM_COUNTER] = "counter",
                                        [TD_PROM_GAUGE] = "gauge",
                                        [TD_PROM_HISTOGRAM] = "histogram"};
    char family[TD_PROM_MAX_NAME + 1];
    clean_name(name, true, family);
    if (strcmp(family, prom->family) == 0) return;

    memcpy(prom->family, family, sizeof family);
    fprintf(prom->out, "# HELP %s ", family);
    print_escaped(prom->out, help, '\0');
    fprintf(prom->out, "\n# TYPE %s %s\n", family, types[type]);
}

static void print_label(FILE *out, char before, const char *name,
                        const char *value)
{
    char clean[TD_PROM_MAX_NAME + 1];
    clean_name(name, false, clean);
    fputc(before, out);
    fputs(clean, out);
    fputs("=\"", out);
    print_escaped(out, value, '"');
    fputc('"', out);
}

// All of a sample but its value. `le`: the bound of a bucket, or NULL.
static void begin_sample(td_prom *prom, const char *suffix,
                         const td_prom_label *labels, const char *le)
{
    fputs(prom->family, prom->out);
    fputs(suffix, prom->out);
    char before = '{';
    for (; labels && labels->name; labels++) {
        print_label(prom->out, before, labels->name, labels->value);
        before = ',';
    }
    if (le) {
        print_label(prom->out, before, "le", le);
        before = ',';
    }
    fputs(before == '{' ? " " : "} ", prom->out);
}

void td_prom_counter(td_prom *prom, const char *name, const char *help,
                     const td_prom_label *labels, uint64_t value)
{
    td_prom_family(prom, name, help, TD_PROM_COUNTER);
    begin_sample(prom, "", labels, NULL);
    fprintf(prom->out, "%" PRIu64 "\n", value);
}

static void print_value(FILE *out, double value)
{
    if (isnan(value))
        fputs("NaN\n", out);
    else if (isinf(value))
        fputs(value > 0 ? "+Inf\n" : "-Inf\n", out);
    else
        fprintf(out, "%.15g\n", value);
}

void td_prom_counter_of(td_prom *prom, const char *name, const char *help,
                        const td_prom_label *labels, double value)
{
    td_prom_family(prom, name, help, TD_PROM_COUNTER);
    begin_sample(prom, "", labels, NULL);
    print_value(prom->out, value);
}

void td_prom_gauge(td_prom *prom, const char *name, const char *help,
                   const td_prom_label *labels, double value)
{
    td_prom_family(prom, name, help, TD_PROM_GAUGE);
    begin_sample(prom, "", labels, NULL);
    print_value(prom->out, value);
}

// The count is taken from the buckets, not from the histogram: a value that is
// recorded meanwhile is then in both or in none, as the format wants it.
void td_prom_histogram(td_prom *prom, const char *name, const char *help,
                       const td_prom_label *labels, const td_hist *hist_ns)
{
    td_prom_family(prom, name, help, TD_PROM_HISTOGRAM);
    uint64_t sum_ns = td_hist_sum(hist_ns);
    uint64_t count = 0;
    for (size_t i = 0; i < TD_COUNT_OF(bounds); i++) {
        count = td_hist_count_to(hist_ns, bounds[i].ns);
        begin_sample(prom, "_bucket", labels, bounds[i].seconds);
        fprintf(prom->out, "%" PRIu64 "\n", count);
    }
    begin_sample(prom, "_sum", labels, NULL);
    fprintf(prom->out, "%" PRIu64 ".%09" PRIu64 "\n", sum_ns / TD_NS_PER_S,
            sum_ns % TD_NS_PER_S);
    begin_sample(prom, "_count", labels, NULL);
    fprintf(prom->out, "%" PRIu64 "\n", count);
}

void td_prom_histogram_of(td_prom *prom, const char *name, const char *help,
                          const td_prom_label *labels,
                          const td_prom_buckets *buckets)
{
    td_prom_family(prom, name, help, TD_PROM_HISTOGRAM);
    uint64_t count = 0;
    for (size_t i = 0; i <= buckets->bound_count; i++) {
        char bound[32] = "+Inf";
        if (i < buckets->bound_count)
            snprintf(bound, sizeof bound, "%.15g", buckets->bounds[i]);
        count += buckets->counts[i];
        begin_sample(prom, "_bucket", labels, bound);
        fprintf(prom->out, "%" PRIu64 "\n", count);
    }
    begin_sample(prom, "_sum", labels, NULL);
    print_value(prom->out, buckets->sum);
    begin_sample(prom, "_count", labels, NULL);
    fprintf(prom->out, "%" PRIu64 "\n", count);
}
