// SPDX-License-Identifier: Apache-2.0
#include "base/http/prom.h"

#include "base/clock.h"
#include "base/sync/thread.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CONCURRENT_VALUES = 200000 };

static char *text;
static size_t size;
static td_prom prom;
static td_hist hist;

static void begin(void)
{
    free(text);
    text = NULL;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    td_prom_init(&prom, out);
}

// Borrowed until the next begin().
static const char *written(void)
{
    assert_int_equal(fclose(prom.out), 0);
    return text;
}

static int setup(void **state)
{
    (void)state;
    td_hist_init(&hist);
    begin();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(text);
    text = NULL;
    return 0;
}

static void a_family_is_introduced_once(void **state)
{
    (void)state;
    td_prom_counter(&prom, "dropped_total", "Dropped.",
                    (td_prom_label[]){{"why", "late"}, {0}}, 3);
    td_prom_counter(&prom, "dropped_total", "Dropped.",
                    (td_prom_label[]){{"why", "early"}, {"by", "me"}, {0}},
                    UINT64_MAX);
    td_prom_gauge(&prom, "rows", "Rows left.", NULL, 12);
    assert_string_equal(written(), "# HELP dropped_total Dropped.\n"
                                   "# TYPE dropped_total counter\n"
                                   "dropped_total{why=\"late\"} 3\n"
                                   "dropped_total{why=\"early\",by=\"me\"} "
                                   "18446744073709551615\n"
                                   "# HELP rows Rows left.\n"
                                   "# TYPE rows gauge\n"
                                   "rows 12\n");
}

static void names_keep_to_what_is_allowed(void **state)
{
    static const struct {
        const char *name, *label;
        const char *sample;
    } cases[] = {
        {"fine:name_1", "label", "fine:name_1{label=\"\"} 0\n"},
        {"with-dash", "a:b", "with_dash{a_b=\"\"} 0\n"},
        {"1st", "2nd", "_1st{_2nd=\"\"} 0\n"},
        {"", "", "_{_=\"\"} 0\n"},
        {"\xc3\xa4 \n", "}\"", "____{__=\"\"} 0\n"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        if (i > 0) begin();
        td_prom_label labels[] = {{cases[i].label, ""}, {0}};
        td_prom_counter(&prom, cases[i].name, "", labels, 0);
        const char *line = strstr(written(), "counter\n") + 8;
        if (strcmp(line, cases[i].sample) != 0)
            fail_msg("\"%s\" became %s", cases[i].name, line);
    }
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    char name[1000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    td_prom_gauge(&prom, name, "", NULL, 1);
    name[TD_PROM_MAX_NAME] = '\0';
    const char *line = strstr(written(), "gauge\n") + 6;
    assert_memory_equal(line, name, TD_PROM_MAX_NAME);
    assert_string_equal(line + TD_PROM_MAX_NAME, " 1\n");
}

static void values_and_help_are_escaped(void **state)
{
    (void)state;
    td_prom_label labels[] = {{"v", "a\"b\\c\nd{e}=\xc3\xa4"}, {0}};
    td_prom_counter(&prom, "n", "a\"b\\c\nd", labels, 0);
    assert_string_equal(written(), "# HELP n a\"b\\\\c\\nd\n"
                                   "# TYPE n counter\n"
                                   "n{v=\"a\\\"b\\\\c\\nd{e}=\xc3\xa4\"} 0\n");
}

static void a_gauge_may_be_any_number(void **state)
{
    static const struct {
        double value;
        const char *sample;
    } cases[] = {
        {0, "n 0\n"},
        {-1.5, "n -1.5\n"},
        {0.1, "n 0.1\n"},
        {123456789012345, "n 123456789012345\n"},
        {NAN, "n NaN\n"},
        {INFINITY, "n +Inf\n"},
        {-INFINITY, "n -Inf\n"},
        {1e300, "n 1e+300\n"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++)
        td_prom_gauge(&prom, "n", "", NULL, cases[i].value);
    const char *line = strstr(written(), "gauge\n") + 6;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        size_t length = strlen(cases[i].sample);
        assert_memory_equal(line, cases[i].sample, length);
        line += length;
    }
}

// The value of the sample that begins so, or UINT64_MAX.
static uint64_t sample(const char *from, const char *name)
{
    const char *at = strstr(from, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}

static void buckets_hold_all_up_to_their_bound_in_seconds(void **state)
{
    (void)state;
    td_hist_record(&hist, 10 * TD_NS_PER_US);
    td_hist_record(&hist, 11 * TD_NS_PER_US);
    td_hist_record(&hist, 30 * TD_NS_PER_MS);
    td_hist_record(&hist, 12 * TD_NS_PER_S + 7);
    td_prom_histogram(&prom, "t_seconds", "Time.",
                      (td_prom_label[]){{"k", "v"}, {0}}, &hist);

    const char *all = written();
    assert_non_null(strstr(all, "# TYPE t_seconds histogram\n"));
    static const struct {
        const char *name;
        uint64_t count;
    } want[] = {
        {"t_seconds_bucket{k=\"v\",le=\"0.00001\"} ", 1},
        {"t_seconds_bucket{k=\"v\",le=\"0.000025\"} ", 2},
        {"t_seconds_bucket{k=\"v\",le=\"0.025\"} ", 2},
        {"t_seconds_bucket{k=\"v\",le=\"0.05\"} ", 3},
        {"t_seconds_bucket{k=\"v\",le=\"10\"} ", 3},
        {"t_seconds_bucket{k=\"v\",le=\"+Inf\"} ", 4},
        {"t_seconds_count{k=\"v\"} ", 4},
    };
    for (size_t i = 0; i < TD_COUNT_OF(want); i++)
        if (sample(all, want[i].name) != want[i].count)
            fail_msg("%s is not %" PRIu64, want[i].name, want[i].count);
    assert_non_null(strstr(all, "t_seconds_sum{k=\"v\"} 12.030021007\n"));
}

// Of a value at the bound and one two per cent above it, one is counted.
static void check_bound(const char *bound)
{
    td_hist_init(&hist);
    td_hist_record(&hist, llround(strtod(bound, NULL) * 1e9));
    td_hist_record(&hist, llround(strtod(bound, NULL) * 1.02e9));
    begin();
    td_prom_histogram(&prom, "t", "", NULL, &hist);
    char name[64];
    snprintf(name, sizeof name, "le=\"%.15s\"} ", bound);
    assert_int_equal(sample(written(), name), 1);
}

static void every_bound_is_the_number_it_says(void **state)
{
    (void)state;
    td_prom_histogram(&prom, "t", "", NULL, &hist);
    char bounds[32][16];
    size_t count = 0;
    for (const char *at = written(); (at = strstr(at, "le=\"")); at++) {
        assert_true(count < TD_COUNT_OF(bounds));
        assert_int_equal(sscanf(at, "le=\"%15[^\"]", bounds[count++]), 1);
    }

    assert_int_equal(count, 20);
    assert_string_equal(bounds[--count], "+Inf");
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 ||
                    strtod(bounds[i], NULL) > strtod(bounds[i - 1], NULL));
        check_bound(bounds[i]);
    }
}

static void record_many(void *user)
{
    for (int64_t i = 0; i < CONCURRENT_VALUES; i++)
        td_hist_record(user, i % 200 * TD_NS_PER_MS);
}

// Whether no bucket is below the one before it, and the last is the count.
static bool is_cumulative(const char *all)
{
    uint64_t before = 0;
    for (const char *at = all; (at = strstr(at, "\"} "));) {
        at += 3;
        uint64_t count = strtoull(at, NULL, 10);
        if (count < before) return false;
        before = count;
    }
    return sample(all, "t_count ") == before;
}

static void buckets_agree_while_another_thread_records(void **state)
{
    (void)state;
    fclose(prom.out);
    const td_thread_config config = {.name = "writer", .cpu = -1};
    td_thread *thread = NULL;
    assert_int_equal(
        td_thread_start(&config, record_many, &hist, &thread, NULL), TD_OK);

    bool agree = true;
    uint64_t count = 0;
    while (agree && count < CONCURRENT_VALUES) {
        begin();
        td_prom_histogram(&prom, "t", "", NULL, &hist);
        agree = is_cumulative(written());
        count = sample(text, "t_count ");
    }
    td_thread_join(thread);
    assert_true(agree);
}

static void a_family_may_be_empty(void **state)
{
    (void)state;
    td_prom_family(&prom, "a_total", "A.", TD_PROM_COUNTER);
    td_prom_family(&prom, "b", "B.", TD_PROM_GAUGE);
    td_prom_gauge(&prom, "b", "B.", NULL, 1);
    td_prom_counter_of(&prom, "c_total", "C.", NULL, 0.25);
    assert_string_equal(written(), "# HELP a_total A.\n"
                                   "# TYPE a_total counter\n"
                                   "# HELP b B.\n"
                                   "# TYPE b gauge\n"
                                   "b 1\n"
                                   "# HELP c_total C.\n"
                                   "# TYPE c_total counter\n"
                                   "c_total 0.25\n");
}

static void counts_that_the_caller_keeps_add_up(void **state)
{
    static const double bounds[] = {0.001, 2.5};
    static const uint64_t counts[] = {1, 2, 4};
    (void)state;
    const td_prom_buckets buckets = {bounds, counts, TD_COUNT_OF(bounds), 7.5};
    td_prom_histogram_of(&prom, "h", "H.",
                         (td_prom_label[]){{"who", "me"}, {0}}, &buckets);
    assert_string_equal(written(), "# HELP h H.\n"
                                   "# TYPE h histogram\n"
                                   "h_bucket{who=\"me\",le=\"0.001\"} 1\n"
                                   "h_bucket{who=\"me\",le=\"2.5\"} 3\n"
                                   "h_bucket{who=\"me\",le=\"+Inf\"} 7\n"
                                   "h_sum{who=\"me\"} 7.5\n"
                                   "h_count{who=\"me\"} 7\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_family_may_be_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(counts_that_the_caller_keeps_add_up,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_family_is_introduced_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_keep_to_what_is_allowed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_long_name_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(values_and_help_are_escaped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_gauge_may_be_any_number, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            buckets_hold_all_up_to_their_bound_in_seconds, setup, teardown),
        cmocka_unit_test_setup_teardown(every_bound_is_the_number_it_says,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            buckets_agree_while_another_thread_records, setup, teardown),
    };
    return cmocka_run_group_tests_name("base/prom", tests, NULL, NULL);
}
