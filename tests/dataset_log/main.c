// SPDX-License-Identifier: Apache-2.0
// Records episodes whose every value follows from a seed, as fast as it can,
// and reads them back: what tests/test_dataset_kills.py kills and fails.
//
//   dataset_log record DIR SEED EPISODES FRAMES CAMERAS CODEC [noisy|wide]
//       prints "finished NUMBER SEED ORDINAL FRAMES" when an episode is
//       finished, and "failed NAME: why" and exits with 3 when recording ends
//   dataset_log read DIR
//       prints "episode NUMBER SEED ORDINAL FRAMES" for each episode in DIR,
//       whose rows are all as the seed says, and "unfinished COUNT"; fails
//       where `tendon dataset verify` would

#include "base/rand.h"
#include "dataset/disk/staging.h"
#include "dataset/read/reader.h"
#include "dataset/verify/verify.h"
#include "dataset/write/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 64
#define FPS 30
#define RESERVE_BYTES (1u << 20)
enum { FEW = 4, MANY = 1000, MAX_CAMERAS = 2, MAX_FRAMES = 100000 };

static const td_dataset_camera cameras[MAX_CAMERAS] = {{"front", SIDE, SIDE},
                                                       {"wrist", SIDE, SIDE}};

typedef struct run {
    td_dataset_writer *writer;
    uint32_t seed;
    uint32_t frames; // at most, an episode
    uint32_t camera_count;
    bool noisy; // pictures that make large videos
    bool wide;  // many channels, which make large statistics
} run;

static uint32_t hash(uint32_t seed, uint32_t ordinal, uint32_t frame)
{
    td_rand rand;
    td_rand_init(&rand,
                 ((uint64_t)seed << 40) ^ ((uint64_t)ordinal << 20) ^ frame);
    return (uint32_t)(td_rand_u64(&rand) >> 40);
}

static uint32_t frames_of(const run *of, uint32_t ordinal)
{
    return 1 + hash(of->seed, ordinal, MAX_FRAMES) % of->frames;
}

static const char *task_of(uint32_t ordinal)
{
    return ordinal % 2 ? "put it down" : "pick it up";
}

static const char *const *names_of(uint32_t count)
{
    static char texts[MANY][24];
    static const char *names[MANY] = {"seed", "ordinal", "frame", "noise"};
    for (uint32_t i = FEW; i < count; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "noise-%u", i);
        names[i] = texts[i];
    }
    return names;
}

static void fill(uint32_t seed, uint32_t ordinal, uint32_t frame,
                 uint32_t count, float *state, float *action)
{
    td_rand rand;
    uint32_t noise = hash(seed, ordinal, frame);
    td_rand_init(&rand, noise);
    for (uint32_t i = 0; i < count; i++) {
        const float known[FEW] = {(float)seed, (float)ordinal, (float)frame,
                                  (float)noise};
        state[i] = i < FEW ? known[i] : (float)(td_rand_u64(&rand) >> 40);
        action[i] = -state[i];
    }
}

// One grey, or noise about it.
static void paint(const run *of, uint32_t grey, uint8_t *rgb, size_t size)
{
    td_rand rand;
    td_rand_init(&rand, grey);
    memset(rgb, (int)(grey & 0xff), size);
    for (size_t i = 0; of->noisy && i < size; i += 3)
        memset(rgb + i, (int)(rgb[i] / 2 + td_rand_u64(&rand) % 128), 3);
}

static td_err add(const run *of, uint32_t ordinal, uint32_t number,
                  td_errinfo *info)
{
    static uint8_t rgb[SIDE * SIDE * 3];
    float state[MANY];
    float action[MANY];
    td_dataset_image images[MAX_CAMERAS];
    fill(of->seed, ordinal, number, of->wide ? MANY : FEW, state, action);
    paint(of, hash(of->seed, ordinal, number), rgb, sizeof rgb);
    for (uint32_t i = 0; i < of->camera_count; i++)
        images[i] = (td_dataset_image){TD_DATASET_IMAGE_RGB, {rgb, sizeof rgb}};
    const td_dataset_frame frame = {
        .task = task_of(ordinal),
        .state = state,
        .action = action,
        .images = images,
        .done = {.age_s = 0.1f, .chunk = ordinal, .step = number},
    };
    return td_dataset_writer_add(of->writer, &frame, info);
}

// An episode that the disk has no room for ends early.
static td_err record_episode(const run *of, uint32_t ordinal, td_errinfo *info)
{
    uint32_t number = 0;
    uint32_t frames = 0;
    td_errinfo end_info = {""};
    td_err err = td_dataset_writer_begin(of->writer, info);
    while (err == TD_OK && frames < frames_of(of, ordinal)) {
        err = add(of, ordinal, frames, info);
        frames += err == TD_OK;
    }
    if (err != TD_OK && err != TD_ERR_FULL) return err;
    if (td_dataset_writer_end(of->writer, &number, &end_info) == TD_OK) {
        (void)printf("finished %u %u %u %u\n", number, of->seed, ordinal,
                     frames);
        (void)fflush(stdout);
        return err;
    }
    if (err == TD_OK) *info = end_info;
    return err == TD_OK ? td_dataset_writer_report(of->writer).stopped : err;
}

static td_err record(const char *folder, run *of, uint32_t episodes,
                     td_media_codec codec, td_errinfo *info)
{
    TD_AUTO(td_dataset_writer) *writer = NULL;
    uint32_t channels = of->wide ? MANY : FEW;
    const td_dataset_writer_config config = {
        .folder = folder,
        .schema = {.fps = FPS,
                   .robot_type = "seeded",
                   .codec = codec,
                   .state = names_of(channels),
                   .state_count = channels,
                   .action = names_of(channels),
                   .action_count = channels,
                   .cameras = cameras,
                   .camera_count = of->camera_count},
        .reserve_bytes = RESERVE_BYTES,
    };
    TD_TRY(td_dataset_writer_open(&config, &writer, info));
    of->writer = writer;
    (void)printf("open\n");
    (void)fflush(stdout);
    for (uint32_t i = 0; i < episodes; i++)
        TD_TRY(record_episode(of, i, info));
    return TD_OK;
}

static bool is_equal(const float *one, const float *other, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (one[i] != other[i]) return false;
    return true;
}

static uint32_t channels_of(const td_dataset_reader *reader)
{
    const td_dataset_feature *state = td_dataset_info_find(
        td_dataset_reader_info(reader), "observation.state");
    return state && td_dataset_feature_size(state) == MANY ? MANY : FEW;
}

static td_err check_row(td_dataset_reader *reader, uint32_t seed,
                        uint32_t ordinal, uint32_t frame, td_errinfo *info)
{
    float state[MANY];
    float action[MANY];
    float there[MANY];
    uint32_t count = channels_of(reader);
    fill(seed, ordinal, frame, count, state, action);
    TD_TRY(td_dataset_reader_floats(reader, "observation.state", count, there));
    if (!is_equal(there, state, count))
        return td_fail(info, TD_ERR_MISMATCH, "observation.state");
    TD_TRY(td_dataset_reader_floats(reader, "action", count, there));
    if (!is_equal(there, action, count))
        return td_fail(info, TD_ERR_MISMATCH, "action");
    return TD_OK;
}

static td_err read_episode(td_dataset_reader *reader, size_t number,
                           td_errinfo *info)
{
    const td_dataset_episode *episode =
        &td_dataset_reader_episodes(reader)->items[number];
    float head[MANY] = {0};
    td_dataset_reading at;
    for (uint64_t i = 0; i < episode->length; i++) {
        TD_TRY(td_dataset_reader_seek(reader, episode->from + i, &at, info));
        if (i == 0)
            TD_TRY(td_dataset_reader_floats(reader, "observation.state",
                                            channels_of(reader), head));
        TD_TRY(check_row(reader, (uint32_t)head[0], (uint32_t)head[1],
                         (uint32_t)i, info));
        if (at.episode != number || at.frame != i ||
            strcmp(at.task, task_of((uint32_t)head[1])) != 0)
            return td_fail(info, TD_ERR_MISMATCH, "episode, frame or task");
    }
    (void)printf("episode %zu %.0f %.0f %" PRIu64 "\n", number, (double)head[0],
                 (double)head[1], episode->length);
    return TD_OK;
}

static void on_fault(void *user, const td_dataset_fault *fault)
{
    (void)user;
    (void)printf("fault %s: %s\n", fault->file, fault->what);
}

static td_err read_all(const char *folder, td_errinfo *info)
{
    uint32_t faults = 0;
    TD_AUTO(td_dataset_reader) *reader = NULL;
    const td_dataset_verify_hooks hooks = {.fault = on_fault};
    TD_TRY(td_dataset_verify(folder, &hooks, &faults, info));
    if (faults > 0) return td_fail(info, TD_ERR_FORMAT, "%u faults", faults);
    (void)printf("unfinished %u\n", td_dataset_staging_unfinished(folder));
    TD_TRY(td_dataset_reader_open(folder, &reader, info));
    for (size_t i = 0; i < td_dataset_reader_episodes(reader)->count; i++)
        TD_TRY(read_episode(reader, i, info));
    return TD_OK;
}

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: dataset_log record DIR SEED EPISODES FRAMES CAMERAS "
                  "CODEC [noisy|wide]\n       dataset_log read DIR\n");
    return 2;
}

static uint32_t whole(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
    td_errinfo info = {""};
    td_err err = TD_OK;
    td_media_codec codec = TD_MEDIA_CODEC_AV1;
    if (argc == 3 && strcmp(argv[1], "read") == 0) {
        err = read_all(argv[2], &info);
    } else if ((argc == 8 || argc == 9) && strcmp(argv[1], "record") == 0 &&
               td_media_codec_find(argv[7], &codec) == TD_OK &&
               whole(argv[6]) <= MAX_CAMERAS && whole(argv[5]) > 0) {
        run of = {.seed = whole(argv[3]),
                  .frames = whole(argv[5]),
                  .camera_count = whole(argv[6]),
                  .noisy = argc == 9 && strcmp(argv[8], "noisy") == 0,
                  .wide = argc == 9 && strcmp(argv[8], "wide") == 0};
        err = record(argv[2], &of, whole(argv[4]), codec, &info);
    } else {
        return usage();
    }
    if (err == TD_OK) return 0;
    (void)printf("failed %s: %s\n", td_err_name(err), info.text);
    return 3;
}
