// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_EPISODES_H
#define TD_DATASET_META_EPISODES_H

// The episodes of a dataset: meta/episodes/*/*.parquet.

#include "base/arena.h"
#include "dataset/meta/info.h"
#include "dataset/stats/stats.h"

#define TD_DATASET_EPISODES_PATH                                               \
    "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
#define TD_DATASET_MAX_EPISODES (1u << 22)

// Where a file of a dataset is: chunk-CHUNK/file-FILE.
typedef struct td_dataset_place {
    uint32_t chunk;
    uint32_t file;
} td_dataset_place;

// The next one: `chunks_size` files a chunk.
td_dataset_place td_dataset_place_next(td_dataset_place place,
                                       uint32_t chunks_size);

typedef struct td_dataset_span {
    td_dataset_place at;
    double from_s; // in the file
    double to_s;
} td_dataset_span;

typedef struct td_dataset_episode {
    uint64_t length;
    uint64_t from; // first row in the dataset
    td_dataset_place data;
    td_dataset_place meta; // of the file that this row stands in
    size_t task_count;
    char **tasks;
    td_dataset_span *videos; // one a video feature, in the order of info.json
} td_dataset_episode;

typedef struct td_dataset_episodes {
    size_t count;
    td_dataset_episode *items; // [episode_index]
    const char *first;         // file of them; NULL: there is none
    td_arena kept;             // what these point to
} td_dataset_episodes;

// All of them, without statistics, in the order of their index, and checked:
// they follow one another without a gap. Owned by the caller. FORMAT, MISMATCH
// (info.json counts others), LIMIT, IO, NOMEM.
TD_NODISCARD td_err td_dataset_episodes_read(const char *folder,
                                             const td_dataset_info *dataset,
                                             td_dataset_episodes **ret_episodes,
                                             td_errinfo *info);
void td_dataset_episodes_free(td_dataset_episodes *episodes);
TD_AUTO_FREE(td_dataset_episodes, td_dataset_episodes_free)

// Writes a file of episodes into an empty fd: all rows of the file `old` (NULL:
// none), then this one, with its statistics, one for each feature of info.json
// (NULL: none, for texts). LeRobot takes the columns of all files from the
// first one, `like` (NULL: this is it): statistics that it does not have are
// left out. MISMATCH (`old` has other columns), FULL, IO, NOMEM.
TD_NODISCARD td_err td_dataset_episodes_append(
    const char *old, const td_dataset_table *like,
    const td_dataset_info *dataset, uint64_t index,
    const td_dataset_episode *episode, const td_dataset_stats *const *stats,
    int fd, td_errinfo *info);

#endif
