// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_READ_SET_FIXTURE_H
#define TD_DATASET_READ_SET_FIXTURE_H

// A dataset without pictures in a folder of its own under /tmp: three episodes
// of 3, 4 and 5 rows, the first two in one data file, the third in another.
// `action` of row r is {r, r + 0.5}.

#include "dataset/meta/episodes.h"

#define SET_ROWS 12
#define SET_EPISODES 3

typedef struct set {
    char folder[64];
    td_dataset_info *dataset;
} set;

set set_new(void);
void set_free(set *made);

// Where a file of it is. Borrowed until the next call.
const char *set_path(const set *made, const char *name);

// Writes info.json as `dataset` is now.
void set_write_info(const set *made);

// Writes a data file of these rows. `skew` is added to what `index` says.
void set_write_data(const set *made, const char *name, size_t first,
                    size_t rows, int64_t skew);

// What set_new() wrote.
const td_dataset_episode *set_episode(size_t index);

// Writes meta/episodes from these, with statistics of `action` alone.
void set_write_episodes(const set *made, const td_dataset_episode *items,
                        size_t count);

#endif
