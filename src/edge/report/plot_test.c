// SPDX-License-Identifier: Apache-2.0
#include "edge/report/plot.h"

#include "base/chart/wellformed.h"
#include "base/rand.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    HZ = 30,
    CHUNK = 50,
    ASK_BELOW = 25,
    CHANNELS = 6,
};

static const char *const files[] = {"queue.svg", "select.svg", "overlaps.svg",
                                    "roundtrip.svg", "trajectory.svg"};

static const char *const names[CHANNELS] = {"shoulder_pan", "shoulder_lift",
                                            "elbow",        "wrist <flex>",
                                            "wrist_roll",   "gripper & jaw"};

// A robot at 30 Hz whose answers take some 300 ms, and twice far longer.
struct recorded_run {
    td_edge_trace *trace;
    bool quick; // never far longer
    td_rand rand;
    uint64_t cursor, end; // end: of the steps known
    uint64_t asked_seq;
    int64_t due_tick; // of the answer under way; -1: none
    int64_t asked_tick;
    uint64_t asked_cursor;
    float last[CHANNELS];
};

static int64_t ns_of(int64_t tick)
{
    return INT64_C(5000000000) + tick * (INT64_C(1000000000) / HZ);
}

static void answer(struct recorded_run *recorded_run, int64_t tick)
{
    if (tick != recorded_run->due_tick) return;
    recorded_run->due_tick = -1;
    int64_t felt_ns = ns_of(tick) - ns_of(recorded_run->asked_tick);
    uint64_t end = recorded_run->asked_cursor + CHUNK;
    td_edge_trace_merge(recorded_run->trace,
                        &(td_edge_traced_merge){
                            .installed_ns = ns_of(tick) - 1000000,
                            .seq = recorded_run->asked_seq,
                            .first = recorded_run->cursor,
                            .rows = (uint32_t)(end - recorded_run->cursor),
                            .overlap_rows = (uint32_t)(recorded_run->end -
                                                       recorded_run->cursor),
                            .round_trip_ns = felt_ns - 9000000,
                            .felt_ns = felt_ns - 1000000,
                        });
    recorded_run->end = end;
}

static void play(struct recorded_run *recorded_run, td_edge_traced_tick *tick)
{
    tick->fresh = recorded_run->cursor < recorded_run->end;
    tick->starved = tick->held = !tick->fresh && recorded_run->cursor > 0;
    for (int c = 0; c < CHANNELS; c++) {
        float wanted =
            (float)sin((double)recorded_run->cursor / (20.0 + 9 * c));
        float limit = c == 2 ? 0.8f : 2;
        tick->wanted[c] = tick->fresh ? wanted : NAN;
        if (tick->fresh) {
            recorded_run->last[c] = fminf(fmaxf(wanted, -limit), limit);
            if (recorded_run->last[c] != wanted)
                tick->limited |= (uint8_t)(1 << c);
        }
        tick->commanded[c] = recorded_run->last[c];
    }
    tick->clamped = tick->limited != 0;
    recorded_run->cursor += tick->fresh;
    tick->cursor = recorded_run->cursor;
    tick->left = (uint32_t)(recorded_run->end - recorded_run->cursor);
}

static void ask(struct recorded_run *recorded_run, td_edge_traced_tick *tick,
                int64_t number)
{
    if (tick->left > ASK_BELOW || recorded_run->due_tick >= 0) return;
    bool slow = !recorded_run->quick && (recorded_run->asked_seq == 12 ||
                                         recorded_run->asked_seq == 13);
    tick->asked = true;
    tick->asked_seq = ++recorded_run->asked_seq;
    recorded_run->asked_tick = number;
    recorded_run->asked_cursor = recorded_run->cursor;
    recorded_run->due_tick = number + 7 +
                             (int64_t)(4 * td_rand_unit(&recorded_run->rand)) +
                             (slow ? 40 : 0);
}

static void run_tick(struct recorded_run *recorded_run, int64_t number)
{
    answer(recorded_run, number);
    double spike = td_rand_unit(&recorded_run->rand) < 0.01 ? 20 : 1;
    td_edge_traced_tick tick = {
        .now_ns = ns_of(number),
        .lateness_ns = (int64_t)(60000 * td_rand_unit(&recorded_run->rand)),
        .select_ns = (int64_t)(900 * spike *
                               exp(0.3 * td_rand_normal(&recorded_run->rand))),
    };
    play(recorded_run, &tick);
    ask(recorded_run, &tick, number);
    td_edge_trace_tick(recorded_run->trace, &tick);
    td_edge_trace_drain(recorded_run->trace);
}

static td_edge_trace *new_trace(size_t max_ticks)
{
    td_edge_trace_config config = td_edge_trace_defaults;
    config.max_ticks = max_ticks;
    config.channels = CHANNELS;
    config.names = names;
    td_edge_trace *trace = NULL;
    assert_int_equal(td_edge_trace_new(&config, &trace), TD_OK);
    return trace;
}

static td_edge_trace *traced_recording(struct recorded_run recorded_run,
                                       int64_t ticks, size_t max_ticks)
{
    recorded_run.trace = new_trace(max_ticks);
    recorded_run.due_tick = -1;
    td_rand_init(&recorded_run.rand, 7);
    for (int64_t i = 0; i < ticks; i++)
        run_tick(&recorded_run, i);
    return recorded_run.trace;
}

static td_edge_trace *traced_run(int64_t ticks, size_t max_ticks)
{
    return traced_recording((struct recorded_run){0}, ticks, max_ticks);
}

// A folder of the test's own, as cmocka's state.
static int make_dir(void **state)
{
    char *dir = strdup("/tmp/tendon-plot-XXXXXX");
    if (!dir || !mkdtemp(dir)) return -1;
    *state = dir;
    return 0;
}

static int remove_dir(void **state)
{
    char *dir = *state;
    char path[PATH_MAX];
    for (size_t i = 0; i < TD_COUNT_OF(files); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    int failed = rmdir(dir);
    free(dir);
    return failed;
}

// The file's text, well formed and below a megabyte. Owned by the caller.
static char *load(const char *dir, const char *file)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    size_t size = 0;
    char *text = td_chart_wellformed_load(path, &size);
    if (!text) fail_msg("%s: not there", path);
    const char *wrong = td_chart_wellformed(text);
    if (wrong) fail_msg("%s: %s", path, wrong);
    assert_in_range(size, 1000, 1000000);
    return text;
}

static void expect_charts(const char *dir, const char *text)
{
    for (size_t i = 0; i < TD_COUNT_OF(files); i++) {
        char *chart = load(dir, files[i]);
        if (!strstr(chart, text)) fail_msg("%s: %s", files[i], chart);
        free(chart);
    }
}

static void run_becomes_five_charts(void **state)
{
    TD_AUTO(td_edge_trace) *trace = traced_run(1200, 5000);
    td_errinfo info = {.text = ""};
    assert_int_equal(td_edge_plot(trace, *state, &info), TD_OK);
    expect_charts(*state, "</svg>");
}

// The bands of a chart of one panel: its second path of that look, for the
// first is the legend's sample. "" when there are none. Owned by the caller.
static char *bands_of(const char *dir, const char *file)
{
    static const char look[] = "opacity=\".25\" d=\"";
    char *text = load(dir, file);
    const char *at = strstr(text, look);
    assert_non_null(at);
    at = strstr(at + 1, look);
    at = at ? at + strlen(look) : "";
    char *bands = strndup(at, strcspn(at, "\""));
    free(text);
    return bands;
}

// Every run of ticks without an action, as the chart draws it: from 76 to 936
// pixels, the last tick at the right.
static void queue_shows_when_the_robot_was_idle(void **state)
{
    enum { TICKS = 1200, LEFT_PX = 76, WIDTH_PX = 860 };
    TD_AUTO(td_edge_trace) *trace = traced_run(TICKS, 5000);
    assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
    char *bands = bands_of(*state, "queue.svg");
    const char *at = bands;
    td_edge_traced traced = td_edge_trace_read(trace);
    size_t idle = 0;
    for (size_t i = 0; i < TICKS; i++) {
        if (!traced.ticks[i].starved) continue;
        size_t first = i;
        while (traced.ticks[i].starved)
            i++;
        double left, top, right;
        assert_int_equal(sscanf(at, "M%lf %lfH%lf", &left, &top, &right), 3);
        double px = (double)WIDTH_PX / (TICKS - 1);
        assert_float_equal(left, LEFT_PX + (double)first * px, 0.06);
        assert_float_equal(right, LEFT_PX + (double)i * px, 0.06);
        at = strchr(at, 'z') + 1;
        idle++;
    }
    assert_int_equal(idle, 2); // as the story has it
    assert_string_equal(at, "");
    free(bands);
}

static void queue_shows_no_idle_time_where_there_was_none(void **state)
{
    TD_AUTO(td_edge_trace) *trace =
        traced_recording((struct recorded_run){.quick = true}, 1200, 5000);
    assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
    char *bands = bands_of(*state, "queue.svg");
    assert_string_equal(bands, "");
    free(bands);
}

static void trajectory_names_its_channels(void **state)
{
    TD_AUTO(td_edge_trace) *trace = traced_run(300, 5000);
    assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
    char *text = load(*state, "trajectory.svg");
    assert_non_null(strstr(text, "wrist &lt;flex&gt;"));
    assert_non_null(strstr(text, "gripper &amp; jaw"));
    free(text);
}

static void empty_run_becomes_five_charts(void **state)
{
    TD_AUTO(td_edge_trace) *trace = new_trace(10);
    assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
    expect_charts(*state, "nothing to show");
}

static void what_the_trace_lost_is_said(void **state)
{
    TD_AUTO(td_edge_trace) *trace = traced_run(500, 100);
    assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
    expect_charts(*state, "Not shown, for want of room: 400 ticks");
}

static void long_run_is_shown_from_close_by_too(void **state)
{
    static const struct {
        int64_t ticks;
        bool close_up;
    } runs[] = {{30 * HZ, false}, {90 * HZ, true}};
    for (size_t i = 0; i < TD_COUNT_OF(runs); i++) {
        TD_AUTO(td_edge_trace) *trace = traced_run(runs[i].ticks, 5000);
        assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
        char *text = load(*state, "queue.svg");
        assert_int_equal(strstr(text, "The last 40 seconds") != NULL,
                         runs[i].close_up);
        free(text);
    }
}

static void long_run_makes_small_files(void **state)
{
    TD_AUTO(td_edge_trace) *trace = traced_run(100000, 100000);
    assert_int_equal(td_edge_plot(trace, *state, NULL), TD_OK);
    expect_charts(*state, "</svg>");
}

static void folder_is_made_when_it_is_not_there(void **state)
{
    char dir[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%s/new", (const char *)*state);
    TD_AUTO(td_edge_trace) *trace = traced_run(50, 100);
    assert_int_equal(td_edge_plot(trace, dir, NULL), TD_OK);
    expect_charts(dir, "</svg>");
    void *made = strdup(dir);
    assert_int_equal(remove_dir(&made), 0);
}

static const struct {
    const char *name;
    const char *dir;
    const char *path; // named in the error
    int number;
} unwritable[] = {
    {"not a folder", "/dev/null", "/dev/null/queue.svg: ", ENOTDIR},
    {"folder above missing", "/tmp/tendon-none/a",
     "/tmp/tendon-none/a: ", ENOENT},
    {"no name", "", ": ", ENOENT},
};

static void unwritable_folder_is_named(void **state)
{
    (void)state;
    TD_AUTO(td_edge_trace) *trace = traced_run(50, 100);
    for (size_t i = 0; i < TD_COUNT_OF(unwritable); i++) {
        char want[sizeof(td_errinfo)];
        (void)snprintf(want, sizeof want, "%s%s", unwritable[i].path,
                       strerror(unwritable[i].number));
        td_errinfo info = {.text = ""};
        td_err err = td_edge_plot(trace, unwritable[i].dir, &info);
        if (err != TD_ERR_IO || strcmp(info.text, want) != 0)
            fail_msg("%s: %s: %s", unwritable[i].name, td_err_name(err),
                     info.text);
    }
}

static void full_disk_leaves_no_half_file(void **state)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/queue.svg", (const char *)*state);
    if (symlink("/dev/full", path) != 0) skip();
    TD_AUTO(td_edge_trace) *trace = traced_run(50, 100);
    td_errinfo info = {.text = ""};
    assert_int_equal(td_edge_plot(trace, *state, &info), TD_ERR_IO);
    assert_non_null(strstr(info.text, path));
    assert_non_null(strstr(info.text, strerror(ENOSPC)));
    assert_int_equal(access(path, F_OK), -1);
}

#define IN_A_FOLDER(test)                                                      \
    cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(run_becomes_five_charts),
        IN_A_FOLDER(queue_shows_when_the_robot_was_idle),
        IN_A_FOLDER(queue_shows_no_idle_time_where_there_was_none),
        IN_A_FOLDER(trajectory_names_its_channels),
        IN_A_FOLDER(empty_run_becomes_five_charts),
        IN_A_FOLDER(what_the_trace_lost_is_said),
        IN_A_FOLDER(long_run_is_shown_from_close_by_too),
        IN_A_FOLDER(long_run_makes_small_files),
        IN_A_FOLDER(folder_is_made_when_it_is_not_there),
        cmocka_unit_test(unwritable_folder_is_named),
        IN_A_FOLDER(full_disk_leaves_no_half_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
