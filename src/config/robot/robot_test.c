// SPDX-License-Identifier: Apache-2.0
#include "config/robot/robot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAMES                                                                  \
    "cluster_uuid: jupiter\n"                                                  \
    "experiment_tag: fabio2\n"                                                 \
    "model_id: pi0\n"                                                          \
    "model_version: v1\n"                                                      \
    "application_tag: cookie\n"                                                \
    "client_uuid: cookie-worker-4269\n"
#define PLACE "endpoint: tcp/192.168.1.50:7447\n"
#define ROBOT "robot: {kind: synthetic}\n"
#define JOINTS "robot: {kind: synthetic, joints: "
#define Q ": {kind: quaternion}"
#define TURNED "a: {kind: quaternion, initial: 1}, b" Q ", c" Q ", d" Q
#define WHOLE NAMES PLACE ROBOT // and then line 9

static td_config_robot *parsed(const char *text)
{
    td_config_robot *robot = NULL;
    td_errinfo info = {""};
    td_err err =
        td_config_robot_parse("robot.yaml", text, strlen(text), &robot, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return robot;
}

static void the_rest_has_the_references_defaults(void **state)
{
    (void)state;
    setenv("XDG_STATE_HOME", "/state", 1);
    TD_AUTO(td_config_robot) *robot = parsed(WHOLE);
    assert_string_equal(robot->client_uuid, "cookie-worker-4269");
    assert_string_equal(robot->endpoint, "tcp/192.168.1.50:7447");
    assert_int_equal(robot->mode, TD_CONFIG_ROBOT_CLIENT);
    assert_true(robot->shared_memory);
    assert_int_equal(robot->robot.kind, TD_CONFIG_ROBOT_SYNTHETIC);
    assert_int_equal(robot->robot.joint_count, 6);
    assert_string_equal(robot->robot.joints[0].name, "joint_0");
    assert_true(robot->robot.joints[0].initial == 0);
    assert_true(robot->robot.joints[0].speed_limit == 10);
    assert_int_equal(robot->robot.camera_count, 0);
    assert_true(robot->robot.time_constant_s == 0.05);
    assert_int_equal(robot->fps, 30);
    assert_int_equal(robot->control_hz, 30);
    assert_int_equal(robot->observe, TD_CONFIG_OBSERVE_THRESHOLD);
    assert_int_equal(robot->max_unanswered, 1);
    assert_false(robot->similarity.enabled);
    assert_int_equal(robot->failsafe, TD_CONFIG_FAILSAFE_HOLD);
    assert_int_equal(robot->robot.joints[0].failsafe,
                     TD_CONFIG_FAILSAFE_AS_ROBOT);
    assert_int_equal(robot->actions_per_chunk, 50);
    assert_int_equal(robot->aggregate_fn_name, TD_CONFIG_WEIGHTED_AVERAGE);
    assert_true(robot->chunk_size_threshold == 0.5);
    assert_true(robot->buffer_time_s == 0);
    assert_int_equal(robot->trim, TD_CONFIG_TRIM_STEPS);
    assert_true(robot->max_action_age_s == 3);
    assert_int_equal(robot->image_codec, TD_CONFIG_JPEG);
    assert_int_equal(robot->jpeg_quality, 90);
    assert_int_equal(robot->max_empty_cycles_before_warning, 10);
    assert_string_equal(robot->task, "");
    assert_int_equal(robot->realtime.priority, 80);
    assert_int_equal(robot->realtime.cpu, -1);
    assert_int_equal(robot->realtime.wake_us, 50);
    assert_true(robot->realtime.lock_memory);
    assert_true(robot->metrics_hz == 2);
    assert_string_equal(robot->boot_file,
                        "/state/tendon/cookie-worker-4269.boot");
}

static void the_boot_file_falls_back_to_the_home_folder(void **state)
{
    (void)state;
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/someone", 1);
    TD_AUTO(td_config_robot) *robot = parsed(WHOLE);
    assert_string_equal(
        robot->boot_file,
        "/home/someone/.local/state/tendon/cookie-worker-4269.boot");
    TD_AUTO(td_config_robot) *named = parsed(WHOLE "boot_file: /b\n");
    assert_string_equal(named->boot_file, "/b");
}

static const char everything[] =
    NAMES PLACE "robot:\n"
                "  kind: synthetic\n"
                "  joints:\n"
                "    shoulder: {kind: angle, initial: -0.5, speed_limit: 2, "
                "min: -2, max: 2, max_speed: 1.5, max_acceleration: 8, "
                "failsafe: safe_pose, safe: 0.25}\n"
                "    gripper: {kind: hold}\n"
                "  cameras: [front, wrist]\n"
                "  time_constant_s: 0.2\n"
                "mode: peer\n"
                "shared_memory: false\n"
                "fps: 100\n"
                "control_hz: 1000\n"
                "max_unanswered: 4\n"
                "priority: 0\nurgency: 0.5\n"
                "rate: {hz: 12.5, phase: 0.25}\n"
                "similarity: {enabled: true, state: 0.1, image: 3}\n"
                "jpeg_chroma: \"4:4:4\"\n"
                "failsafe: repeat\n"
                "max_limit_hits: 5\n"
                "watchdog_s: 2\n"
                "prometheus_port: 9464\n"
                "actions_per_chunk: 20\n"
                "aggregate_fn_name: conservative\n"
                "buffer_time_s: 0.4\n"
                "trim: time\n"
                "max_action_age_s: 1.5\n"
                "image_codec: raw\n"
                "jpeg_quality: 60\n"
                "max_empty_cycles_before_warning: 3\n"
                "task: \"put the cookie in the box\"\n"
                "realtime: {priority: 0, cpu: 1, wake_us: 0, lock_memory: "
                "false}\n"
                "metrics_hz: 0\n"
                "dataset_repo_id: me/cookies\n"
                "record: {dir: /data/cookies, codec: h264, begin: command}\n";

static void a_robot_with_everything_is_read(void **state)
{
    (void)state;
    TD_AUTO(td_config_robot) *robot = parsed(everything);
    assert_int_equal(robot->robot.joint_count, 2);
    assert_int_equal(robot->robot.joints[0].kind, TD_CONFIG_ANGLE);
    assert_true(robot->robot.joints[0].initial == -0.5);
    assert_true(robot->robot.joints[0].speed_limit == 2);
    assert_int_equal(robot->robot.joints[1].kind, TD_CONFIG_HOLD);
    assert_int_equal(robot->robot.camera_count, 2);
    assert_int_equal(robot->robot.cameras[1].width, 640);
    assert_true(robot->robot.time_constant_s == 0.2);
    assert_int_equal(robot->mode, TD_CONFIG_ROBOT_PEER);
    assert_false(robot->shared_memory);
    assert_true(robot->robot.joints[0].min == -2);
    assert_true(robot->robot.joints[0].max_acceleration == 8);
    assert_int_equal(robot->robot.joints[0].failsafe,
                     TD_CONFIG_FAILSAFE_SAFE_POSE);
    assert_true(robot->robot.joints[0].safe == 0.25);
    assert_int_equal(robot->robot.cameras[1].fps, 30);
    assert_int_equal(robot->control_hz, 1000);
    assert_int_equal(robot->observe, TD_CONFIG_OBSERVE_TIME);
    assert_int_equal(robot->max_unanswered, 4);
    assert_true(robot->priority == 0 && robot->urgency == 0.5);
    assert_true(robot->rate.hz == 12.5 && robot->rate.phase == 0.25);
    assert_true(robot->similarity.enabled && robot->similarity.image == 3);
    assert_int_equal(robot->jpeg_chroma, TD_CONFIG_CHROMA_444);
    assert_int_equal(robot->failsafe, TD_CONFIG_FAILSAFE_REPEAT);
    assert_int_equal(robot->max_limit_hits, 5);
    assert_true(robot->watchdog_s == 2);
    assert_int_equal(robot->prometheus_port, 9464);
}

static void the_rest_of_it_is_read_too(void **state)
{
    (void)state;
    TD_AUTO(td_config_robot) *robot = parsed(everything);
    assert_int_equal(robot->fps, 100);
    assert_int_equal(robot->actions_per_chunk, 20);
    assert_int_equal(robot->aggregate_fn_name, TD_CONFIG_CONSERVATIVE);
    assert_true(robot->buffer_time_s == 0.4);
    assert_int_equal(robot->trim, TD_CONFIG_TRIM_TIME);
    assert_true(robot->max_action_age_s == 1.5);
    assert_int_equal(robot->image_codec, TD_CONFIG_RAW);
    assert_int_equal(robot->jpeg_quality, 60);
    assert_int_equal(robot->max_empty_cycles_before_warning, 3);
    assert_string_equal(robot->task, "put the cookie in the box");
    assert_int_equal(robot->realtime.priority, 0);
    assert_int_equal(robot->realtime.cpu, 1);
    assert_int_equal(robot->realtime.wake_us, 0);
    assert_false(robot->realtime.lock_memory);
    assert_true(robot->metrics_hz == 0);
    assert_string_equal(robot->dataset_repo_id, "me/cookies");
    assert_string_equal(robot->record.dir, "/data/cookies");
    assert_int_equal(robot->record.codec, TD_CONFIG_H264);
    assert_int_equal(robot->record.begin, TD_CONFIG_RECORD_BY_COMMAND);
}

static void a_dataset_of_a_name_lies_where_lerobot_looks(void **state)
{
    static const struct {
        const char *name, *lerobot_home, *hf_home, *folder;
    } cases[] = {
        {"its own home", "/lr", "/hf", "/lr/me/cookies"},
        {"the Hub's", NULL, "/hf", "/hf/lerobot/me/cookies"},
        {"no absolute path", "lr", "/hf", "/hf/lerobot/me/cookies"},
    };
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        if (cases[i].lerobot_home)
            setenv("HF_LEROBOT_HOME", cases[i].lerobot_home, 1);
        else
            unsetenv("HF_LEROBOT_HOME");
        setenv("HF_HOME", cases[i].hf_home, 1);
        TD_AUTO(td_config_robot) *robot =
            parsed(WHOLE "dataset_repo_id: me/cookies\n");
        if (strcmp(robot->record.dir, cases[i].folder) != 0)
            fail_msg("%s: %s", cases[i].name, robot->record.dir);
    }
    unsetenv("HF_LEROBOT_HOME");
    unsetenv("HF_HOME");
}

static void nothing_is_recorded_unless_it_is_asked_for(void **state)
{
    (void)state;
    TD_AUTO(td_config_robot) *robot = parsed(WHOLE "dataset_repo_id: null\n");
    assert_string_equal(robot->record.dir, "");
}

static const struct {
    const char *name, *text, *error; // after "robot.yaml:"
} broken[] = {
    {"a dataset's name that climbs", WHOLE "dataset_repo_id: ../cookies\n",
     "9: dataset_repo_id: must be NAME or OWNER/NAME, each of A-Z a-z 0-9 . _ "
     "- and not starting with '.' or '-', got ../cookies"},
    {"a dataset's name of three", WHOLE "dataset_repo_id: me/my/cookies\n",
     "9: dataset_repo_id: must be NAME or OWNER/NAME, each of A-Z a-z 0-9 . _ "
     "- and not starting with '.' or '-', got me/my/cookies"},
    {"a codec that is not known", WHOLE "record: {codec: vp9}\n",
     "9: record.codec: must be av1, h264, got vp9"},
    {"no robot", NAMES PLACE, "1: robot: is missing, must be a map of fields"},
    {"a robot that is not known", NAMES PLACE "robot: {kind: so101}\n",
     "8: robot.kind: must be synthetic, callback, replay, "
     "got so101"},
    {"quality 0", WHOLE "jpeg_quality: 0\n",
     "9: jpeg_quality: must be 1 to 100, got 0"},
    {"a blend that is not known", WHOLE "aggregate_fn_name: median\n",
     "9: aggregate_fn_name: must be weighted_average, latest_only, "
     "average, conservative, temporal, got median"},
    {"two thresholds", WHOLE "chunk_size_threshold: 0.5\nbuffer_time_s: 0.4\n",
     "10: buffer_time_s: stands instead of chunk_size_threshold, give "
     "only one of them"},
    {"a time that is not used", WHOLE "observe: auto\nbuffer_time_s: 0.4\n",
     "10: observe: time needs buffer_time_s above 0, and buffer_time_s "
     "needs time"},
    {"a time that is not given", WHOLE "observe: time\n",
     "9: observe: time needs buffer_time_s above 0, and buffer_time_s "
     "needs time"},
    {"auto with a threshold",
     WHOLE "observe: auto\nchunk_size_threshold: 0.5\n",
     "10: chunk_size_threshold: is not used with observe: auto, leave it "
     "out"},
    {"a control rate between", WHOLE "control_hz: 100\n",
     "9: control_hz: must be a multiple of fps, 30, got 100"},
    {"limits the wrong way round",
     NAMES PLACE "robot: {kind: synthetic, joints: {arm: {min: 1, max: "
                 "-1}}}\n",
     "8: robot.joints.arm.min: must be at most max, -1, got 1"},
    {"a safe pose that is not allowed",
     NAMES PLACE "robot: {kind: synthetic, joints: {arm: {min: 1, max: "
                 "2}}}\n",
     "8: robot.joints.arm.safe: must be within min and max, 1 to 2, got "
     "0"},
    {"limits that no float32 is between",
     NAMES PLACE JOINTS "{arm: {min: 0.1, max: 0.1, safe: 0.1}}}\n",
     "8: robot.joints.arm.min: leaves no float32 up to max, "
     "0.10000000000000001, got 0.10000000000000001"},
    {"a limit that is hardly one",
     NAMES PLACE JOINTS "{arm: {max_speed: 1e-9}}}\n",
     "8: robot.joints.arm.max_speed: must be 0 for no limit or at least "
     "1e-06, got 1e-09"},
    {"an acceleration that is hardly one",
     NAMES PLACE JOINTS "{arm: {max_acceleration: 1e-300}}}\n",
     "8: robot.joints.arm.max_acceleration: must be 0 for no limit or at "
     "least 1e-06, got 1e-300"},
    {"a quaternion that is no orientation",
     NAMES PLACE JOINTS "{a" Q ", b" Q ", c" Q ", d" Q "}}\n",
     "8: robot.joints.a.initial: the four of a quaternion must be of "
     "length 1, are of 0"},
    {"a quaternion with limits",
     NAMES PLACE JOINTS "{a: {kind: quaternion, max: 1}}}\n",
     "8: robot.joints.a.min: and max are not for a quaternion, leave them "
     "out"},
    {"a quaternion without a safe pose",
     NAMES PLACE JOINTS "{" TURNED "}}\nfailsafe: safe_pose\n",
     "8: robot.joints.a.safe: the four of a quaternion must be of length "
     "1, are of 0"},
    {"a rotation without a speed",
     NAMES PLACE JOINTS "{arm: {kind: angle, failsafe: "
                        "zero_velocity}}}\n",
     "8: robot.joints.arm.failsafe: zero_velocity is not for a rotation"},
    {"a robot of rotations without a speed",
     NAMES PLACE JOINTS "{" TURNED "}}\nfailsafe: zero_velocity\n",
     "9: failsafe: zero_velocity is not for a rotation, as a is"},
    {"a joint that may not stand still",
     NAMES PLACE JOINTS "{arm: {min: 1, safe: 1}}}\n"
                        "failsafe: zero_velocity\n",
     "9: failsafe: zero_velocity is not for limits without 0, as arm is"},
    {"metrics once in a century", WHOLE "metrics_hz: 1e-9\n",
     "9: metrics_hz: must be 0 or at least 0.001, got 1e-09"},
    {"priority 100", WHOLE "realtime:\n  priority: 100\n",
     "10: realtime.priority: must be 0 to 99, got 100"},
    {"a joint that cannot move",
     NAMES PLACE "robot:\n  kind: synthetic\n  joints:\n"
                 "    arm: {speed_limit: 0}\n",
     "11: robot.joints.arm.speed_limit: must be 0.001 to 10000, got 0"},
    {"five parts of a quaternion",
     NAMES PLACE
     "robot:\n  kind: synthetic\n  joints: {a: {kind: quaternion}, b: "
     "{kind: quaternion}, c: {kind: quaternion}, d: {kind: quaternion}, "
     "e: {kind: quaternion}}\n",
     "10: robot.joints: a quaternion is four joints in a row, e begins "
     "fewer"},
    {"half a quaternion as a state",
     NAMES PLACE "robot:\n  kind: callback\n  states: {a: {kind: "
                 "quaternion}, b: {kind: quaternion}}\n",
     "10: robot.states: a quaternion is four states in a row, a begins "
     "fewer"},
    {"a misspelt field", WHOLE "aggregate_fn: average\n",
     "9: aggregate_fn: no such field, did you mean aggregate_fn_name?"},
    {"a server's mode", WHOLE "mode: router\n",
     "9: mode: must be client, peer, got router"},
};

static void a_broken_file_is_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(broken); i++) {
        td_config_robot *robot = NULL;
        td_errinfo info = {""};
        char error[512];
        snprintf(error, sizeof error, "robot.yaml:%s", broken[i].error);
        td_err err =
            td_config_robot_parse("robot.yaml", broken[i].text,
                                  strlen(broken[i].text), &robot, &info);
        if (err != TD_ERR_INVALID || robot || strcmp(info.text, error) != 0)
            fail_msg("%s:\n got  %s\n want %s", broken[i].name, info.text,
                     error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_has_the_references_defaults),
        cmocka_unit_test(the_boot_file_falls_back_to_the_home_folder),
        cmocka_unit_test(a_robot_with_everything_is_read),
        cmocka_unit_test(the_rest_of_it_is_read_too),
        cmocka_unit_test(a_dataset_of_a_name_lies_where_lerobot_looks),
        cmocka_unit_test(nothing_is_recorded_unless_it_is_asked_for),
        cmocka_unit_test(a_broken_file_is_refused_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
