// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_ROBOT_ROBOT_H
#define TD_CONFIG_ROBOT_ROBOT_H

// The file that `tendon robot` reads: one robot, the policy it follows and how
// it plays the chunks.
//
// Every field has been checked and every absent one holds its default. Errors
// read "robot.yaml:7: fps: must be 1 to 1000, got 0".

#include "config/manifest/channels.h"

#include <stdbool.h>

// Joints are between this and its negative; as a limit it means none.
#define TD_CONFIG_POSITION 10000

typedef enum td_config_robot_mode {
    TD_CONFIG_ROBOT_CLIENT,
    TD_CONFIG_ROBOT_PEER,
} td_config_robot_mode;

typedef enum td_config_robot_kind {
    TD_CONFIG_ROBOT_SYNTHETIC,
    TD_CONFIG_ROBOT_CALLBACK, // hardware of a program that uses the C API
    TD_CONFIG_ROBOT_REPLAY,   // a recorded session
} td_config_robot_kind;

typedef enum td_config_aggregate {
    TD_CONFIG_WEIGHTED_AVERAGE,
    TD_CONFIG_LATEST_ONLY,
    TD_CONFIG_AVERAGE,
    TD_CONFIG_CONSERVATIVE,
    TD_CONFIG_TEMPORAL,
} td_config_aggregate;

typedef enum td_config_observe {
    TD_CONFIG_OBSERVE_THRESHOLD,
    TD_CONFIG_OBSERVE_TIME,
    TD_CONFIG_OBSERVE_AUTO,
} td_config_observe;

// What is commanded when there is nothing to play.
typedef enum td_config_failsafe {
    TD_CONFIG_FAILSAFE_HOLD,
    TD_CONFIG_FAILSAFE_ZERO_VELOCITY,
    TD_CONFIG_FAILSAFE_SAFE_POSE,
    TD_CONFIG_FAILSAFE_REPEAT,
    TD_CONFIG_FAILSAFE_AS_ROBOT, // a joint's: what the robot's is
} td_config_failsafe;

// In the order of td_edge_codec.
typedef enum td_config_image_codec {
    TD_CONFIG_JPEG,
    TD_CONFIG_RAW,
    TD_CONFIG_CODEC_AUTO,
} td_config_image_codec;

// In the order of td_media_chroma.
typedef enum td_config_chroma {
    TD_CONFIG_CHROMA_420,
    TD_CONFIG_CHROMA_422,
    TD_CONFIG_CHROMA_444,
} td_config_chroma;

typedef enum td_config_trim {
    TD_CONFIG_TRIM_STEPS,
    TD_CONFIG_TRIM_TIME,
} td_config_trim;

typedef struct td_config_joint {
    const char *name;
    td_config_channel_kind kind;
    double initial;
    double speed_limit; // units a second
    // Of every command; speed and acceleration 0: no limit.
    double min, max, max_speed, max_acceleration;
    td_config_failsafe failsafe;
    double safe; // its place in the safe pose
} td_config_joint;

typedef struct td_config_robot_camera {
    const char *name;
    int64_t height, width;
    int64_t fps;
} td_config_robot_camera;

typedef struct td_config_robot_device {
    td_config_robot_kind kind;
    td_config_joint *joints; // in order
    size_t joint_count;
    td_config_channel *states; // what the policy sees; none: the joints
    size_t state_count;
    td_config_robot_camera *cameras;
    size_t camera_count;
    double time_constant_s; // how fast a joint follows
    const char *dataset;    // of a replay; empty: none
    int64_t episode;        // -1: all
    double speed;
} td_config_robot_device;

typedef struct td_config_realtime {
    int64_t priority; // SCHED_FIFO 1 to 99; 0: ordinary
    int64_t cpu;      // -1: any
    int64_t wake_us;  // the CPUs' longest way out of sleep; -1: any
    bool lock_memory;
} td_config_realtime;

typedef struct td_config_similarity {
    bool enabled;
    double state; // distance, units of the joints
    double image; // mean difference of a pixel, of 255
} td_config_similarity;

// In the order of td_media_codec.
typedef enum td_config_video_codec {
    TD_CONFIG_AV1,
    TD_CONFIG_H264,
} td_config_video_codec;

typedef enum td_config_record_begin {
    TD_CONFIG_RECORD_AT_START,
    TD_CONFIG_RECORD_BY_COMMAND,
} td_config_record_begin;

typedef struct td_config_record {
    const char *dir; // empty: nothing is recorded
    td_config_video_codec codec;
    td_config_record_begin begin;
} td_config_record;

typedef struct td_config_rate {
    double hz; // 0: no limit
    double phase;
} td_config_rate;

typedef struct td_config_robot {
    const char *cluster_uuid, *experiment_tag;
    const char *model_id, *model_version, *application_tag;
    const char *client_uuid;
    const char *endpoint;
    td_config_robot_mode mode;
    bool shared_memory;
    td_config_robot_device robot;
    int64_t fps;
    int64_t control_hz; // a multiple of fps
    int64_t actions_per_chunk;
    td_config_aggregate aggregate_fn_name;
    double chunk_size_threshold; // ask below this part of a full buffer
    double buffer_time_s; // ask below this much time instead; 0: not given
    td_config_observe observe;
    double starve_target;
    int64_t max_unanswered;
    bool ask_again;
    int64_t priority; // 0 is the highest
    double urgency;
    td_config_rate rate;
    td_config_similarity similarity;
    td_config_trim trim;
    double max_action_age_s;
    td_config_image_codec image_codec;
    int64_t jpeg_quality;
    td_config_chroma jpeg_chroma;
    bool downscale;
    int64_t max_empty_cycles_before_warning;
    td_config_failsafe failsafe;
    double safe_pose_speed; // units a second
    int64_t max_limit_hits;
    double watchdog_s;
    double driver_limit_s;
    const char *task;
    td_config_realtime realtime;
    const char *boot_file;       // where the boot number is kept
    double metrics_hz;           // 0: none
    int64_t prometheus_port;     // 0: none
    const char *dataset_repo_id; // empty: none
    td_config_record record;
} td_config_robot;

// Reads and checks a robot's file. Owned by the caller, with everything it
// points to. Blocks on the file. IO, FORMAT (not YAML), LIMIT, INVALID (a
// field), with the line in `info`.
TD_NODISCARD td_err td_config_robot_load(const char *path,
                                         td_config_robot **ret_robot,
                                         td_errinfo *info);

// The same from memory; `path` is what errors call it.
TD_NODISCARD td_err td_config_robot_parse(const char *path, const void *data,
                                          size_t size,
                                          td_config_robot **ret_robot,
                                          td_errinfo *info);

// As in the file: "synthetic".
const char *td_config_robot_kind_name(td_config_robot_kind kind);

void td_config_robot_free(td_config_robot *robot);
TD_AUTO_FREE(td_config_robot, td_config_robot_free)

// What a joint does when there is nothing to play.
td_config_failsafe td_config_robot_failsafe(const td_config_robot *robot,
                                            const td_config_joint *joint);

// Every field, for help and docs.
extern const struct td_config_table td_config_robot_table;

#endif
