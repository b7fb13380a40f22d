// SPDX-License-Identifier: Apache-2.0
// Ten thousand random files of a robot, made from the table that reads them.
// What is accepted runs: through a core, in virtual time, with answers good and
// bad, and every command is finite and within the file's limits. What is
// refused names its line and a field that was made wrong.
#include "base/rand.h"
#include "edge/settings_random.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef __SANITIZE_THREAD__
#define FILES 1000 // there is one thread, and ThreadSanitizer slows it down
#else
#define FILES 10000
#endif
#define TICKS 150
#define PENDING 4
#define MAX_ROWS 64
#define MAX_VALUES 128 // of an answer, about

static float rows[MAX_ROWS * TD_WIRE_MAX_CHANNELS];

// A robot in virtual time.
typedef struct run {
    const td_config_robot *file;
    td_edge_config config;
    td_edge_core *core;
    td_robot_hardware *robot;
    td_rand rand;
    int64_t now_ns;
    uint64_t pending[PENDING]; // seqs to be answered; 0: none
    float start[TD_WIRE_MAX_CHANNELS];
    double low[TD_WIRE_MAX_CHANNELS]; // of where it may be commanded to
    double high[TD_WIRE_MAX_CHANNELS];
    float last[TD_WIRE_MAX_CHANNELS];
    bool commanded; // `last` is the gate's last command
    bool was_down;  // in the tick before
    uint64_t fresh;
} run;

// Of one step: a float32 is as near as that.
static double rounding(double position)
{
    return 4 * FLT_EPSILON * fmax(fabs(position), FLT_MIN);
}

// A robot that was found outside its limits may stay there or come in.
static void allow(run *r, const float *reading)
{
    for (uint32_t i = 0; i < r->config.core.channels; i++) {
        r->low[i] = fmin(r->low[i], reading[i]);
        r->high[i] = fmax(r->high[i], reading[i]);
    }
}

static void assert_within(const run *r, uint32_t i, float value)
{
    const td_edge_gate_channel *limits = &r->config.core.limits[i];
    double low = r->low[i], high = r->high[i];
    assert_true(isfinite(value));
    assert_true(value >= low - rounding(low) && value <= high + rounding(high));
    if (!r->commanded || r->config.core.kinds[i] == TD_WIRE_QUATERNION) return;
    double from = r->last[i], to = value;
    double most = limits->max_step + rounding(fmax(fabs(from), fabs(to)));
    assert_true(fabs(to - from) <= most);
}

static void assert_orientations(const run *r, const float *command)
{
    const td_edge_core_settings *settings = &r->config.core;
    for (uint32_t i = 0; i < settings->channels; i++) {
        if (settings->kinds[i] != TD_WIRE_QUATERNION) continue;
        double sum = 0;
        for (uint32_t end = i + 4; i < end; i++)
            sum += (double)command[i] * command[i];
        i--;
        assert_float_equal(sum, 1, 1e-4);
    }
}

static void check_command(run *r, const float *command, const float *reading,
                          bool down)
{
    uint32_t channels = r->config.core.channels;
    if (down || r->was_down) { // the gate starts over
        r->commanded = false;
        allow(r, reading);
    }
    r->was_down = down;
    if (!command) return;
    for (uint32_t i = 0; i < channels; i++)
        assert_within(r, i, command[i]);
    assert_orientations(r, command);
    memcpy(r->last, command, channels * sizeof *command);
    r->commanded = true;
}

// Mostly near the robot, sometimes far away, rarely not a number.
static float some_value(run *r, float near)
{
    uint64_t dice = td_rand_u64(&r->rand) % 1000;
    double by = 2 * td_rand_unit(&r->rand) - 1;
    if (dice == 0) return NAN;
    if (dice < 20) return (float)(by * 1e30);
    if (dice < 200) return (float)(by * 1000);
    return near + (float)by;
}

static void answer(run *r, uint64_t seq)
{
    uint32_t channels = r->config.core.channels;
    uint32_t count = 1 + (uint32_t)(td_rand_u64(&r->rand) % MAX_ROWS);
    if (count * channels > MAX_VALUES) count = 1 + MAX_VALUES / channels;
    for (uint32_t i = 0; i < count * channels; i++)
        rows[i] = some_value(r, r->start[i % channels]);
    const td_wire_action action = {
        .ident = {r->config.core.boot, 0, 1, seq},
        .server = td_wire_text_of("gpu-1"),
        .actions =
            {
                .dtype = TD_WIRE_F32,
                .rank = 2,
                .shape = {count, channels},
                .data = rows,
                .size = (size_t)count * channels * sizeof *rows,
            },
    };
    td_edge_answer result;
    assert_int_equal(
        td_edge_core_answer(r->core, r->now_ns, "gpu-1", &action, &result),
        TD_OK);
}

static void send(run *r, uint64_t seq, int64_t captured_ns)
{
    const td_edge_sent sent = {
        .seq = seq,
        .episode = 1,
        .cursor = td_edge_core_cursor(r->core),
        .captured_ns = captured_ns,
        .put_ns = r->now_ns,
    };
    assert_true(td_edge_core_sent(r->core, &sent));
    r->pending[seq % PENDING] = seq; // the one before is lost
}

static void run_tick(run *r)
{
    float reading[TD_WIRE_MAX_CHANNELS];
    bool down = td_rand_u64(&r->rand) % 100 == 0;
    assert_int_equal(td_robot_hardware_read(r->robot, r->now_ns, reading),
                     TD_OK);
    const td_edge_core_input seen = {
        .now_ns = r->now_ns,
        .connection = 1,
        .reading = reading,
        .read_ns = r->now_ns,
        .driver_down = down,
    };
    td_edge_step step = td_edge_core_tick(r->core, &seen);
    check_command(r, step.command, reading, down);
    if (step.command)
        assert_int_equal(
            td_robot_hardware_write(r->robot, r->now_ns, step.command), TD_OK);
    if (step.ask) send(r, step.seq, r->now_ns);
    r->fresh += step.fresh;
    uint64_t *due = &r->pending[td_rand_u64(&r->rand) % PENDING];
    if (*due) answer(r, *due);
    if (td_rand_u64(&r->rand) % 8) *due = 0; // else it comes twice
}

static void assert_sums_agree(const run *r)
{
    td_edge_counts counts;
    td_edge_core_counts(r->core, &counts);
    uint64_t sum = 0;
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        sum += counts.outcomes[i];
    assert_int_equal(sum, counts.sent);
    assert_int_equal(counts.ticks, TICKS);
}

// What the tests' files are accepted with must be enough for all that is made
// from them.
static void run_open(run *r, const char *text)
{
    static td_robot_config robot;
    td_errinfo info = {.text = ""};
    td_edge_settings_from(r->file, 7, &r->config);
    r->config.core.start_ns = r->now_ns;
    td_edge_settings_robot(r->file, &robot);
    robot.camera_count = 0; // they are only held here, and may be large
    if (td_edge_core_new(&r->config.core, &r->core, &info) != TD_OK ||
        td_robot_hardware_open("synthetic", &robot, &r->robot, &info) != TD_OK)
        fail_msg("%s\n%s", info.text, text);
    assert_int_equal(td_robot_hardware_read(r->robot, r->now_ns, r->start),
                     TD_OK);
    for (uint32_t i = 0; i < r->config.core.channels; i++) {
        r->low[i] = r->config.core.limits[i].min;
        r->high[i] = r->config.core.limits[i].max;
    }
    allow(r, r->start);
}

static uint64_t play(const td_config_robot *file, const char *text,
                     uint64_t seed)
{
    static run r;
    r = (run){.file = file, .now_ns = TD_NS_PER_S};
    td_rand_init(&r.rand, seed);
    run_open(&r, text);
    int64_t period_ns = r.config.core.period_ns / r.config.core.substeps;
    for (int i = 0; i < TICKS; i++, r.now_ns += period_ns)
        run_tick(&r);
    assert_sums_agree(&r);
    td_robot_hardware_close(r.robot);
    td_edge_core_free(r.core);
    return r.fresh;
}

static void assert_named(const random_file *made, const char *error)
{
    static const char before[] = "robot.yaml:";
    char *end = NULL;
    size_t size = strlen(before);
    if (strncmp(error, before, size) == 0 &&
        strtol(error + size, &end, 10) > 0 && strncmp(end, ": ", 2) == 0 &&
        random_file_expects(made, end + 2))
        return;
    fail_msg("%s\nnames none of the fields that were made wrong in\n%s", error,
             made->text);
}

static void accepted_files_run_and_refused_ones_name_the_field(void **state)
{
    uint64_t accepted = 0, fresh = 0;
    (void)state;
    for (uint64_t seed = 0; seed < FILES; seed++) {
        td_errinfo info = {.text = ""};
        td_config_robot *file = NULL;
        random_file made;
        random_file_make(seed, &made);
        if (td_config_robot_parse("robot.yaml", made.text, made.size, &file,
                                  &info) == TD_OK) {
            if (made.wrong_count > 0)
                fail_msg("%s is wrong and was accepted in\n%s", made.wrong[0],
                         made.text);
            accepted++;
            fresh += play(file, made.text, seed);
            td_config_robot_free(file);
        } else {
            assert_named(&made, info.text);
        }
        random_file_free(&made);
    }
    print_message("%llu accepted, %llu commands of the policy\n",
                  (unsigned long long)accepted, (unsigned long long)fresh);
    assert_true(accepted > FILES / 4 && accepted < FILES * 3 / 4);
    assert_true(fresh > accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_files_run_and_refused_ones_name_the_field),
    };
    return cmocka_run_group_tests_name("edge/settings_random", tests, NULL,
                                       NULL);
}
