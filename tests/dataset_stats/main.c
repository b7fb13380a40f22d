// SPDX-License-Identifier: Apache-2.0
// dataset_stats column f32|f64|i64|bool CHANNELS ROWS...   an episode each
//               pictures PIXELS COUNT                      looked-at pixels,
//               RGB samples LENGTH                             frames looked at
//               step HEIGHT WIDTH
// Values come in as they are in memory; a line a statistic goes out.
// tests/lerobot/test_dataset_stats.py holds them against LeRobot's own.
#include "dataset/stats/pictures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    td_dataset_stats_type type;
    size_t size;
} types[] = {
    {"f32", TD_DATASET_STATS_F32, sizeof(float)},
    {"f64", TD_DATASET_STATS_F64, sizeof(double)},
    {"i64", TD_DATASET_STATS_I64, sizeof(int64_t)},
    {"bool", TD_DATASET_STATS_BOOL, sizeof(uint8_t)},
};

static size_t number(const char *text)
{
    return (size_t)strtoull(text, NULL, 10);
}

static void *read_values(size_t count, size_t size)
{
    void *values = calloc(count + 1, size);
    if (!values || fread(values, size, count, stdin) != count) {
        (void)fprintf(stderr, "dataset_stats: %zu values expected\n", count);
        exit(EXIT_FAILURE);
    }
    return values;
}

static int print(const td_dataset_stats *stats)
{
    for (int i = 0; i < TD_DATASET_STAT_COUNT; i++) {
        printf("%s", td_dataset_stat_name((td_dataset_stat)i));
        for (uint32_t k = 0; k < stats->channels; k++)
            printf(" %.17g", stats->values[(uint32_t)i * stats->channels + k]);
        printf("\n");
    }
    printf("count %" PRIu64 "\n", stats->count);
    return EXIT_SUCCESS;
}

static int column(int argc, char **argv)
{
    TD_AUTO(td_dataset_stats) *total = NULL;
    uint32_t channels = (uint32_t)number(argv[3]);
    size_t type = 0;
    while (type < TD_COUNT_OF(types) && strcmp(types[type].name, argv[2]) != 0)
        type++;
    if (type == TD_COUNT_OF(types) ||
        td_dataset_stats_new(channels, &total) != TD_OK)
        return EXIT_FAILURE;
    for (int i = 4; i < argc; i++) {
        TD_AUTO(td_dataset_stats) *episode = NULL;
        size_t rows = number(argv[i]);
        void *values = read_values(rows * channels, types[type].size);
        td_err err = td_dataset_stats_column(types[type].type, values, rows,
                                             channels, &episode);
        free(values);
        if (err != TD_OK || td_dataset_stats_merge(total, episode) != TD_OK)
            return EXIT_FAILURE;
    }
    return print(total);
}

static int pictures(size_t pixels, size_t count)
{
    TD_AUTO(td_dataset_pictures) *seen = NULL;
    TD_AUTO(td_dataset_stats) *stats = NULL;
    if (td_dataset_pictures_new(&seen) != TD_OK) return EXIT_FAILURE;
    for (size_t i = 0; i < count; i++) {
        uint8_t *rgb = read_values(pixels, 3);
        td_dataset_pictures_add(seen, rgb, pixels);
        free(rgb);
    }
    if (td_dataset_pictures_stats(seen, &stats) != TD_OK) return EXIT_FAILURE;
    return print(stats);
}

static int samples(size_t length)
{
    for (size_t i = 0; i < td_dataset_pictures_samples(length); i++)
        printf("%zu\n", td_dataset_pictures_sample(length, i));
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc >= 5 && strcmp(argv[1], "column") == 0) return column(argc, argv);
    if (argc == 4 && strcmp(argv[1], "pictures") == 0)
        return pictures(number(argv[2]), number(argv[3]));
    if (argc == 3 && strcmp(argv[1], "samples") == 0)
        return samples(number(argv[2]));
    if (argc == 4 && strcmp(argv[1], "step") == 0) {
        printf("%" PRIu32 "\n",
               td_dataset_pictures_step((uint32_t)number(argv[2]),
                                        (uint32_t)number(argv[3])));
        return EXIT_SUCCESS;
    }
    (void)fprintf(stderr, "usage: see tests/dataset_stats/main.c\n");
    return 2;
}
