// SPDX-License-Identifier: Apache-2.0
#include "wire/golden.h"

#define TEXT(text) {(text), sizeof(text) - 1}
#define ARRAY(type_, array)                                                    \
    .dtype = (type_), .data = (array), .size = sizeof(array)

#define OCTET(n)                                                               \
    (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7
#define RAMP_64(n)                                                             \
    OCTET(n), OCTET((n) + 8), OCTET((n) + 16), OCTET((n) + 24),                \
        OCTET((n) + 32), OCTET((n) + 40), OCTET((n) + 48), OCTET((n) + 56)
#define RAMP_256 RAMP_64(0), RAMP_64(64), RAMP_64(128), RAMP_64(192)

static const uint8_t jpeg[] = {0xff, 0xd8, RAMP_256, RAMP_256, RAMP_256};

static const float six[] = {0, 0.5F, -1.25F, 3, 1e-3F, -1e6F};
static const float ramp[] = {0, 1, 2, 3, 4, 5};
static const float zero[] = {0};
static const double force[] = {0.1, -9.81};
static const uint16_t half[] = {0x3800, 0xc000};
static const uint16_t brain[] = {0x3f80, 0xc000};
static const uint8_t u8[] = {0, 255};
static const int8_t i8[] = {INT8_MIN, INT8_MAX};
static const int16_t i16[] = {INT16_MIN, INT16_MAX};
static const int32_t i32[] = {INT32_MIN, INT32_MAX};
static const int64_t i64[] = {INT64_MIN, INT64_MAX};
static const bool mask[] = {true, false, false, true};
static const double value[] = {0.75};

const td_wire_obs td_wire_golden_obs_full = {
    .ident = {.boot = 3, .route = 2, .episode = 5, .seq = (1LL << 40) + 7},
    .client = TEXT("robot-1"),
    .state = {ARRAY(TD_WIRE_F32, six), .rank = 1, .shape = {6}, .has_age = true,
              .age_us = 800},
    .images = {{TEXT("left"), TD_WIRE_JPEG, {0}, jpeg, sizeof jpeg},
               {TEXT("right"), TD_WIRE_PNG, {480, 640, 3}, "\x89PNG", 4},
               {TEXT("depth"), TD_WIRE_RAW, {2, 3, 1}, "abcdef", 6}},
    .image_count = 3,
    .task = TEXT("pick up the caf\xc3\xa9 cup"),
    .cursor = 70000,
    .urgency = 0.25F,
    .priority = 0,
    .has_steps_remaining = true,
    .steps_remaining = 12,
    .must_go = true,
    .has_budget = true,
    .budget_us = -1500,
    .has_again = true,
    .again = 41,
    .anew = true,
    .has_rtc = true,
    .rtc_base_chunk = 9,
    .rtc_delay_steps = 4,
    .rtc_prefix = {ARRAY(TD_WIRE_F32, ramp), .rank = 2, .shape = {2, 3}},
    .tensors =
        {
            {TEXT("force.left"),
             {ARRAY(TD_WIRE_F64, force), .rank = 2, .shape = {1, 2},
              .has_age = true, .age_us = 1500}},
            {TEXT("half"), {ARRAY(TD_WIRE_F16, half), .rank = 1, .shape = {2}}},
            {TEXT("brain"),
             {ARRAY(TD_WIRE_BF16, brain), .rank = 1, .shape = {2}}},
            {TEXT("u8"), {ARRAY(TD_WIRE_U8, u8), .rank = 1, .shape = {2}}},
            {TEXT("i8"), {ARRAY(TD_WIRE_I8, i8), .rank = 1, .shape = {2}}},
            {TEXT("i16"), {ARRAY(TD_WIRE_I16, i16), .rank = 1, .shape = {2}}},
            {TEXT("i32"), {ARRAY(TD_WIRE_I32, i32), .rank = 1, .shape = {2}}},
            {TEXT("i64"), {ARRAY(TD_WIRE_I64, i64), .rank = 1, .shape = {2}}},
            {TEXT("mask"),
             {ARRAY(TD_WIRE_BOOL, mask), .rank = 2, .shape = {2, 2}}},
            {TEXT("none"), {.dtype = TD_WIRE_F32, .rank = 2, .shape = {0, 7}}},
        },
    .tensor_count = 10,
    .metadata = {{TEXT("operator"), TEXT("Ada")}, {TEXT("note"), TEXT("")}},
    .metadata_count = 2,
};

const td_wire_obs td_wire_golden_obs_least = {
    .client = TEXT("r"),
    .priority = 1,
    .state = {ARRAY(TD_WIRE_F32, zero), .rank = 1, .shape = {1}},
};

const td_wire_action td_wire_golden_action_full = {
    .ident = {.boot = 3, .route = 2, .episode = 5, .seq = (1LL << 40) + 7},
    .inference_time_ms = 38.5F,
    .queue_time_ms = 1.25F,
    .actions = {ARRAY(TD_WIRE_F32, six), .rank = 2, .shape = {2, 3}},
    .text = TEXT("approach, then grasp"),
    .server = TEXT("gpu-0"),
    .chunk_id = 10,
    .has_continues = true,
    .continues = 9,
    .superseded = {5, 1LL << 32},
    .superseded_count = 2,
    .results = {{TEXT("value"),
                 {ARRAY(TD_WIRE_F64, value), .rank = 1, .shape = {1}}}},
    .result_count = 1,
};

const td_wire_action td_wire_golden_action_verdict = {
    .ident = {.seq = 8},
    .kind = TD_WIRE_VERDICT,
    .inference_time_ms = 12,
    .unsafe = true,
    .text = TEXT("a hand is in the way"),
};

const td_wire_action td_wire_golden_action_error = {
    .ident = {.seq = 8},
    .error_code = TEXT("FORMAT"),
    .error_text = TEXT("obs: state is missing"),
};

const td_wire_action td_wire_golden_action_least = {
    .actions = {ARRAY(TD_WIRE_F32, zero), .rank = 2, .shape = {1, 1}},
};

const td_wire_status td_wire_golden_status_full = {
    .model_id = TEXT("smolvla"),
    .model_version = TEXT("v1.2"),
    .server = TEXT("gpu-0"),
    .server_boot = 4,
    .state = TD_WIRE_READY,
    .cameras = {{TEXT("left"), 96, 128}, {TEXT("right"), 480, 640}},
    .camera_count = 2,
    .action_dim = 3,
    .max_actions_per_chunk = 50,
    .features = {{TEXT("state"), TD_WIRE_F32, 1, {6}},
                 {TEXT("force.left"), TD_WIRE_F64, 2, {1, 2}}},
    .feature_count = 2,
    .actions = {{TEXT("shoulder.pos"), TD_WIRE_LINEAR},
                {TEXT("elbow.pos"), TD_WIRE_ANGLE},
                {TEXT("gripper.pos"), TD_WIRE_HOLD}},
    .action_count = 3,
    .states = {{TEXT("q.x"), TD_WIRE_QUATERNION},
               {TEXT("q.y"), TD_WIRE_QUATERNION},
               {TEXT("q.z"), TD_WIRE_QUATERNION},
               {TEXT("q.w"), TD_WIRE_QUATERNION}},
    .state_count = 4,
    .step_period_us = 33333,
    .rtc = true,
    .capacity = 32,
    .clients = 4,
    .load = 0.125F,
    .has_attach = true,
    .attach_reason = TEXT("full: 32 of 32 clients"),
};

const td_wire_status td_wire_golden_status_least = {
    .model_id = TEXT("m"),
    .model_version = TEXT("1"),
};

const td_wire_attach td_wire_golden_attach_full = {
    .client = TEXT("robot-1"),
    .server = TEXT("gpu-0"),
    .server_boot = 12,
    .boot = 3,
    .route = 2,
    .leave = true,
};

const td_wire_attach td_wire_golden_attach_least = {
    .client = TEXT("r"),
    .server = TEXT("s"),
};

const td_wire_reset td_wire_golden_reset_full = {
    .client = TEXT("robot-1"),
    .boot = 3,
    .route = 2,
    .episode = 6,
    .reason = TEXT("operator"),
};

const td_wire_reset td_wire_golden_reset_least = {.client = TEXT("r")};

const td_wire_grant td_wire_golden_grant_full = {
    .client = TEXT("robot-1"),
    .generation = 7,
    .components =
        {
            {.name = TEXT("system1"),
             .server = TEXT("gpu-0"),
             .standby = TEXT("gpu-1"),
             .model_id = TEXT("smolvla"),
             .model_version = TEXT("v1.2"),
             .application = TEXT("pick"),
             .route = 2,
             .rate_hz = 12.5,
             .phase_us = 4000,
             .deadline_us = 80000},
            {.name = TEXT("system2"), .server = TEXT("gpu-2")},
        },
    .component_count = 2,
};

const td_wire_grant td_wire_golden_grant_least = {.client = TEXT("r")};

const td_wire_metrics td_wire_golden_metrics_full = {
    .source = TEXT("robot-1"),
    .boot = 3,
    .uptime_us = 60000000,
    .state = TEXT("STREAMING"),
    .counters = {{TEXT("obs.sent"), 1800}, {TEXT("chunks.stale"), 0}},
    .counter_count = 2,
    .gauges = {{TEXT("buffer.steps"), 31}, {TEXT("load"), 0.1}},
    .gauge_count = 2,
    .quantiles = {{TEXT("round_trip_us"), 1799, 310, 9120.5, 402.25, 388, 512,
                   1024, 8192}},
    .quantiles_count = 1,
};

const td_wire_metrics td_wire_golden_metrics_least = {.source = TEXT("r")};
