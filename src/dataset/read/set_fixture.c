// SPDX-License-Identifier: Apache-2.0
#include "dataset/read/set_fixture.h"
#include "dataset/meta/tasks.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FIRST_FILE "data/chunk-000/file-000.parquet"
#define SECOND_FILE "data/chunk-000/file-001.parquet"
#define EPISODES_FILE "meta/episodes/chunk-000/file-000.parquet"

static char pick[] = "pick", place[] = "place";
static char *both[] = {pick, place};

static const td_dataset_episode episodes[SET_EPISODES] = {
    {.length = 3, .from = 0, .task_count = 1, .tasks = both},
    {.length = 4, .from = 3, .task_count = 2, .tasks = both},
    {.length = 5,
     .from = 7,
     .data = {0, 1},
     .task_count = 1,
     .tasks = &both[1]},
};

const td_dataset_episode *set_episode(size_t index)
{
    return &episodes[index];
}

const char *set_path(const set *made, const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", made->folder, name);
    return path;
}

static int create(const set *made, const char *name)
{
    int fd = open(set_path(made, name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                  0600);
    assert_true(fd >= 0);
    return fd;
}

void set_write_info(const set *made)
{
    char *text = NULL;
    assert_int_equal(td_dataset_info_text(made->dataset, &text), TD_OK);
    int fd = create(made, "meta/info.json");
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
    free(text);
}

static size_t episode_of(size_t row)
{
    size_t episode = 0;
    while (episode + 1 < SET_EPISODES && episodes[episode + 1].from <= row)
        episode++;
    return episode;
}

void set_write_data(const set *made, const char *name, size_t first,
                    size_t rows, int64_t skew)
{
    float actions[2 * SET_ROWS], times[SET_ROWS];
    int64_t numbers[4][SET_ROWS]; // frame, episode, index, task
    for (size_t i = 0; i < rows; i++) {
        size_t row = first + i, episode = episode_of(row);
        size_t frame = row - (size_t)episodes[episode].from;
        actions[2 * i] = (float)row;
        actions[2 * i + 1] = (float)row + 0.5f;
        times[i] = (float)frame / 30;
        numbers[0][i] = (int64_t)frame;
        numbers[1][i] = (int64_t)episode;
        numbers[2][i] = (int64_t)row + skew;
        numbers[3][i] = episode == 2 || frame > 1;
    }
    const td_dataset_column columns[] = {
        {TD_DATASET_F32, 2 * rows, actions, NULL},
        {TD_DATASET_F32, rows, times, NULL},
        {TD_DATASET_I64, rows, numbers[0], NULL},
        {TD_DATASET_I64, rows, numbers[1], NULL},
        {TD_DATASET_I64, rows, numbers[2], NULL},
        {TD_DATASET_I64, rows, numbers[3], NULL},
    };
    td_dataset_field *fields = NULL;
    size_t count = 0;
    assert_int_equal(
        td_dataset_info_fields(made->dataset, &fields, &count, NULL), TD_OK);
    assert_int_equal(count, TD_COUNT_OF(columns));
    TD_AUTO(td_dataset_table_writer) *writer = NULL;
    int fd = create(made, name);
    assert_int_equal(
        td_dataset_table_create(fd, fields, count, NULL, 0, &writer, NULL),
        TD_OK);
    assert_int_equal(td_dataset_table_append(writer, columns, rows, NULL),
                     TD_OK);
    assert_int_equal(td_dataset_table_finish(writer, NULL), TD_OK);
    free(fields);
    (void)close(fd);
}

void set_write_episodes(const set *made, const td_dataset_episode *items,
                        size_t count)
{
    const float values[] = {1, 2, 3, 4};
    TD_AUTO(td_dataset_stats) *stats = NULL;
    assert_int_equal(
        td_dataset_stats_column(TD_DATASET_STATS_F32, values, 2, 2, &stats),
        TD_OK);
    const td_dataset_stats *all[6] = {stats};
    char old[256] = "";
    for (size_t i = 0; i < count; i++) {
        int fd = create(made, "next");
        assert_int_equal(td_dataset_episodes_append(i > 0 ? old : NULL, NULL,
                                                    made->dataset, i, &items[i],
                                                    all, fd, NULL),
                         TD_OK);
        (void)close(fd);
        (void)snprintf(old, sizeof old, "%s", set_path(made, EPISODES_FILE));
        char next[256];
        (void)snprintf(next, sizeof next, "%s", set_path(made, "next"));
        assert_int_equal(rename(next, old), 0);
    }
}

static void write_tasks(const set *made)
{
    const td_dataset_tasks tasks = {2, both};
    int fd = create(made, "meta/tasks.parquet");
    assert_int_equal(td_dataset_tasks_write(&tasks, fd, NULL), TD_OK);
    (void)close(fd);
}

set set_new(void)
{
    static const char *const folders[] = {"meta", "meta/episodes",
                                          "meta/episodes/chunk-000", "data",
                                          "data/chunk-000"};
    set made = {.folder = "/tmp/td-set-XXXXXX"};
    const uint32_t two = 2;
    assert_non_null(mkdtemp(made.folder));
    for (size_t i = 0; i < TD_COUNT_OF(folders); i++)
        assert_int_equal(mkdir(set_path(&made, folders[i]), 0700), 0);
    assert_int_equal(td_dataset_info_new(30, NULL, &made.dataset, NULL), TD_OK);
    assert_int_equal(td_dataset_info_add(made.dataset, "action",
                                         TD_DATASET_DTYPE_F32, &two, 1, NULL,
                                         NULL),
                     TD_OK);
    assert_int_equal(td_dataset_info_add_defaults(made.dataset, NULL), TD_OK);
    made.dataset->total_episodes = SET_EPISODES;
    made.dataset->total_frames = SET_ROWS;
    made.dataset->total_tasks = 2;
    set_write_info(&made);
    write_tasks(&made);
    set_write_data(&made, FIRST_FILE, 0, 7, 0);
    set_write_data(&made, SECOND_FILE, 7, 5, 0);
    set_write_episodes(&made, episodes, SET_EPISODES);
    return made;
}

static int remove_entry(const char *path, const struct stat *about, int kind,
                        struct FTW *at)
{
    (void)about;
    (void)kind;
    (void)at;
    return remove(path);
}

void set_free(set *made)
{
    (void)nftw(made->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    td_dataset_info_free(made->dataset);
}
