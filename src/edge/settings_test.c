// SPDX-License-Identifier: Apache-2.0
#include "edge/settings.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NAMES                                                                  \
    "cluster_uuid: jupiter\n"                                                  \
    "experiment_tag: trial\n"                                                  \
    "model_id: pi0\n"                                                          \
    "model_version: v3\n"                                                      \
    "application_tag: cookie\n"                                                \
    "client_uuid: arm-9\n"                                                     \
    "endpoint: tcp/127.0.0.1:7447\n"

static const char head[] =
    NAMES "robot:\n"
          "  kind: synthetic\n"
          "  time_constant_s: 0.25\n"
          "  joints:\n"
          "    lift: {initial: 0.5, speed_limit: 2, min: -1, "
          "max: 0.1, safe: 0.1, max_speed: 5, "
          "max_acceleration: 8}\n"
          "    wrist: {kind: angle}\n"
          "    grip: {kind: hold}\n"
          "  cameras:\n"
          "    top: {height: 48, width: 64, fps: 25}\n";

typedef struct settled {
    td_config_robot *file; // what the others borrow from
    td_edge_config edge;
    td_robot_config robot;
} settled;

static settled settle_text(const char *text)
{
    td_errinfo info = {.text = ""};
    settled s = {0};
    if (td_config_robot_parse("robot.yaml", text, strlen(text), &s.file,
                              &info) != TD_OK)
        fail_msg("%s", info.text);
    td_edge_settings_from(s.file, 77, &s.edge);
    td_edge_settings_robot(s.file, &s.robot);
    return s;
}

// The settings of that robot with `lines` more in its file.
static settled settle(const char *lines)
{
    char text[1024];
    strcpy(text, head);
    strcat(text, lines);
    return settle_text(text);
}

static void names_arrive(void **state)
{
    (void)state;
    settled s = settle("task: \"bake\"\n");
    assert_string_equal(s.edge.route.cluster, "jupiter");
    assert_string_equal(s.edge.route.experiment, "trial");
    assert_string_equal(s.edge.route.model, "pi0");
    assert_string_equal(s.edge.route.version, "v3");
    assert_string_equal(s.edge.route.application, "cookie");
    assert_string_equal(s.edge.client, "arm-9");
    assert_string_equal(s.edge.task, "bake");
    assert_string_equal(s.edge.profile.model_id, "pi0");
    assert_string_equal(s.edge.profile.model_version, "v3");
    assert_int_equal(s.edge.core.boot, 77);
    assert_int_equal(s.edge.core.episode, 1);
    td_config_robot_free(s.file);
}

static void joints_and_cameras_arrive_in_order(void **state)
{
    static const struct {
        const char *name;
        td_wire_channel_kind kind;
        td_robot_kind robot_kind;
        double initial, speed_limit;
    } joints[] = {
        {"lift", TD_WIRE_LINEAR, TD_ROBOT_LINEAR, 0.5, 2},
        {"wrist", TD_WIRE_ANGLE, TD_ROBOT_ANGLE, 0, 10},
        {"grip", TD_WIRE_HOLD, TD_ROBOT_HOLD, 0, 10},
    };
    (void)state;
    settled s = settle("");
    const td_edge_profile *profile = &s.edge.profile;
    assert_int_equal(profile->action_count, TD_COUNT_OF(joints));
    assert_int_equal(profile->state_count, TD_COUNT_OF(joints));
    assert_int_equal(s.edge.core.channels, TD_COUNT_OF(joints));
    assert_int_equal(s.robot.joint_count, TD_COUNT_OF(joints));
    for (size_t i = 0; i < TD_COUNT_OF(joints); i++) {
        print_message("%s\n", joints[i].name);
        assert_true(td_wire_text_is(profile->actions[i].name, joints[i].name));
        assert_true(td_wire_text_is(profile->states[i].name, joints[i].name));
        assert_int_equal(profile->actions[i].kind, joints[i].kind);
        assert_int_equal(profile->states[i].kind, joints[i].kind);
        assert_int_equal(s.edge.core.kinds[i], joints[i].kind);
        assert_string_equal(s.robot.joints[i].name, joints[i].name);
        assert_int_equal(s.robot.joints[i].kind, joints[i].robot_kind);
        assert_true(s.robot.joints[i].initial == joints[i].initial);
        assert_true(s.robot.joints[i].speed_limit == joints[i].speed_limit);
    }
    assert_true(s.robot.time_constant_s == 0.25);
    assert_int_equal(profile->camera_count, 1);
    assert_true(td_wire_text_is(profile->cameras[0].name, "top"));
    assert_int_equal(profile->cameras[0].height, 48);
    assert_int_equal(profile->cameras[0].width, 64);
    assert_int_equal(s.robot.camera_count, 1);
    assert_string_equal(s.robot.cameras[0].name, "top");
    assert_int_equal(s.robot.cameras[0].height, 48);
    assert_int_equal(s.robot.cameras[0].width, 64);
    td_config_robot_free(s.file);
}

static void the_policys_state_is_what_the_file_says(void **state)
{
    (void)state;
    settled s = settle_text(NAMES "robot: {kind: callback, joints: [lift], "
                                  "states: {force: {}, tip: {kind: angle}}}\n");
    const td_edge_profile *profile = &s.edge.profile;
    assert_int_equal(s.edge.core.channels, 1);
    assert_int_equal(s.edge.core.policy_states, 2);
    assert_int_equal(profile->action_count, 1);
    assert_int_equal(profile->state_count, 2);
    assert_true(td_wire_text_is(profile->states[0].name, "force"));
    assert_true(td_wire_text_is(profile->states[1].name, "tip"));
    assert_int_equal(profile->states[1].kind, TD_WIRE_ANGLE);
    td_config_robot_free(s.file);
}

#define AT(member) offsetof(td_edge_config, member)
#define SIZE(member) sizeof(((td_edge_config *)0)->member)
#define FIELD(member) AT(member), SIZE(member)

static int64_t number_at(const td_edge_config *config, size_t at, size_t size)
{
    int64_t wide = 0;
    int32_t narrow = 0;
    if (size == sizeof wide) {
        memcpy(&wide, (const char *)config + at, size);
        return wide;
    }
    memcpy(&narrow, (const char *)config + at, size);
    return narrow;
}

static void numbers_arrive(void **state)
{
    static const struct {
        const char *lines;
        size_t at, size;
        int64_t value;
    } cases[] = {
        {"fps: 50", FIELD(core.period_ns), 20 * TD_NS_PER_MS},
        {"fps: 50", FIELD(profile.step_period_us), 20000},
        {"actions_per_chunk: 8", FIELD(core.actions_per_chunk), 8},
        {"actions_per_chunk: 8", FIELD(profile.actions_per_chunk), 8},
        {"aggregate_fn_name: latest_only", FIELD(core.aggregate),
         TD_EDGE_LATEST_ONLY},
        {"aggregate_fn_name: conservative", FIELD(core.aggregate),
         TD_EDGE_CONSERVATIVE},
        {"trim: time", FIELD(core.trim), TD_EDGE_TRIM_TIME},
        {"control_hz: 1000\nfps: 50", FIELD(core.substeps), 20},
        {"aggregate_fn_name: temporal", FIELD(core.aggregate),
         TD_EDGE_TEMPORAL},
        {"chunk_size_threshold: 0.25", FIELD(core.ask.mode),
         TD_EDGE_ASK_THRESHOLD},
        {"buffer_time_s: 0.4", FIELD(core.ask.mode), TD_EDGE_ASK_TIME},
        {"buffer_time_s: 0.4", FIELD(core.ask.buffer_time_ns),
         400 * TD_NS_PER_MS},
        {"observe: auto", FIELD(core.ask.mode), TD_EDGE_ASK_AUTO},
        {"max_unanswered: 3", FIELD(core.ask.max_unanswered), 3},
        {"", FIELD(core.ask.again), false},
        {"ask_again: true", FIELD(core.ask.again), true},
        {"priority: 3", FIELD(core.priority), 3},
        {"", FIELD(core.priority), 1},
        {"max_limit_hits: 7", FIELD(core.max_limit_hits), 7},
        {"failsafe: safe_pose", FIELD(core.failsafe[0].mode),
         TD_EDGE_FAILSAFE_SAFE_POSE},
        {"watchdog_s: 0.5", FIELD(watchdog_ns), 500 * TD_NS_PER_MS},
        {"driver_limit_s: 0.25", FIELD(driver_limit_ns), 250 * TD_NS_PER_MS},
        {"max_action_age_s: 1.5", FIELD(core.max_action_age_ns),
         1500 * TD_NS_PER_MS},
        {"max_action_age_s: 1.5", FIELD(core.ask.resend_max_ns),
         1500 * TD_NS_PER_MS},
        {"max_empty_cycles_before_warning: 4",
         FIELD(core.warn_after_empty_ticks), 4},
        {"image_codec: raw", FIELD(codec), TD_EDGE_CODEC_RAW},
        {"image_codec: auto", FIELD(codec), TD_EDGE_CODEC_AUTO},
        {"", FIELD(codec), TD_EDGE_CODEC_JPEG},
        {"jpeg_quality: 42", FIELD(jpeg_quality), 42},
        {"jpeg_chroma: \"4:4:4\"", FIELD(jpeg_chroma), TD_MEDIA_CHROMA_444},
        {"", FIELD(camera_period_ns[0]), TD_NS_PER_S / 25},
        {"realtime: {priority: 12}", FIELD(realtime_priority), 12},
        {"realtime: {cpu: 1}", FIELD(cpu), 1},
        {"metrics_hz: 4", FIELD(metrics_period_ns), 250 * TD_NS_PER_MS},
        {"metrics_hz: 0", FIELD(metrics_period_ns), 0},
        {"", FIELD(refused_for_ns), 5 * TD_NS_PER_S},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].lines);
        settled s = settle(cases[i].lines);
        assert_int_equal(number_at(&s.edge, cases[i].at, cases[i].size),
                         cases[i].value);
        td_config_robot_free(s.file);
    }
}

static void limits_arrive_by_the_control_tick(void **state)
{
    (void)state;
    settled s = settle("fps: 10\ncontrol_hz: 20\nsafe_pose_speed: 4\n");
    const td_edge_gate_channel *lift = &s.edge.core.limits[0];
    const td_edge_gate_channel *wrist = &s.edge.core.limits[1];
    assert_true(lift->min == -1 && lift->max == 0.1);
    assert_true(lift->max_step == 0.25 && lift->max_accel_step == 0.02);
    assert_true(wrist->min == -INFINITY && wrist->max == INFINITY);
    assert_true(wrist->max_step == INFINITY);
    assert_true(s.edge.core.failsafe[0].safe_step == 0.2);
    assert_true(s.edge.core.failsafe[0].safe <= 0.1);
    assert_true(nextafterf(s.edge.core.failsafe[0].safe, 1) > 0.1);
    td_config_robot_free(s.file);
}

static void what_may_be_left_out_arrives(void **state)
{
    (void)state;
    settled usual = settle("");
    assert_false(usual.edge.similar.on);
    assert_true(usual.edge.profile.downscale);
    td_config_robot_free(usual.file);
    settled other = settle("similarity: {enabled: true, state: 0.5, image: 7}\n"
                           "downscale: false\n");
    assert_true(other.edge.similar.on);
    assert_true(other.edge.similar.state_tolerance == 0.5);
    assert_true(other.edge.similar.image_tolerance == 7);
    assert_false(other.edge.profile.downscale);
    td_config_robot_free(other.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_arrive),
        cmocka_unit_test(joints_and_cameras_arrive_in_order),
        cmocka_unit_test(the_policys_state_is_what_the_file_says),
        cmocka_unit_test(numbers_arrive),
        cmocka_unit_test(limits_arrive_by_the_control_tick),
        cmocka_unit_test(what_may_be_left_out_arrives),
    };
    return cmocka_run_group_tests_name("edge/settings", tests, NULL, NULL);
}
