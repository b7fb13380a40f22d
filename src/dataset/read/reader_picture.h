// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_READ_READER_PICTURE_H
#define TD_DATASET_READ_READER_PICTURE_H

// The pictures of a row: out of its table, or out of a video, of which one a
// camera stays open.

#include "dataset/meta/episodes.h"
#include "dataset/table/table.h"

typedef struct td_dataset_reader_pictures td_dataset_reader_pictures;

// Borrows both. Owned by the caller. NOMEM.
TD_NODISCARD td_err td_dataset_reader_pictures_new(
    const char *folder, const td_dataset_info *dataset,
    td_dataset_reader_pictures **ret_pictures, td_errinfo *info);
void td_dataset_reader_pictures_free(td_dataset_reader_pictures *pictures);
TD_AUTO_FREE(td_dataset_reader_pictures, td_dataset_reader_pictures_free)

typedef struct td_dataset_reader_picture_of {
    const td_dataset_table *table;
    uint64_t table_row;
    const td_dataset_episode *episode;
    double timestamp_s;
} td_dataset_reader_picture_of;

// Where it goes. A JPEG goes as it is where there is `room` for one.
typedef struct td_dataset_reader_frame {
    uint8_t *bytes; // height x width x 3, or `room` if that is more
    size_t room;    // 0: pixels are wanted
    size_t jpeg;    // set to its bytes; 0: pixels
} td_dataset_reader_frame;

// As td_dataset_reader_picture().
TD_NODISCARD td_err td_dataset_reader_pictures_read(
    td_dataset_reader_pictures *pictures, const char *key,
    const td_dataset_reader_picture_of *of, td_dataset_reader_frame *frame,
    td_errinfo *info);

#endif
