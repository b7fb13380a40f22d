// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_JOURNAL_UNSAVED_H
#define TD_DATASET_JOURNAL_UNSAVED_H

// A unsaved: an episode as its journal has it, as many frames as every file of
// the journal has whole.

#include "dataset/meta/frame.h"

typedef struct td_dataset_unsaved {
    td_dataset_schema *schema;
    bool ended;      // its recorder had begun to finish it,
    uint32_t number; // as this episode of the dataset
    uint32_t frames;
    uint32_t rows; // whole ones; more than `frames` where a video stops before
    float *state;  // [frames][state_count]
    float *action;
    int64_t *missing; // these: [frames]
    int64_t *chunk;
    int64_t *step;
    float *age_s;
    uint8_t *held;
    uint8_t *clamped;
    uint8_t *failsafe;
    uint32_t *task; // into `tasks`
    char **tasks;
    uint32_t task_count;
    uint32_t current; // the task of the row that is read next
    char *folder;
    struct td_dataset_progress *progress; // NULL: nobody is told
} td_dataset_unsaved;

// How far a unsaved is on its way into a dataset. Each of its pictures is read
// three times: to see that it is whole, for the size of its video, and to be
// saved.
typedef struct td_dataset_progress {
    void (*report)(void *user, uint64_t done, uint64_t total); // pictures read
    void *user;
    uint64_t done, total;
} td_dataset_progress;

// Reads a journal. `trusted`: this process has just completed it, and its
// pictures need not be read to count them. Borrows `progress`, NULL where
// nobody is told. Owned by the caller. Blocks. NOTFOUND, FORMAT (it does not
// even begin), VERSION (it begins as none of this version does), NOMEM, IO.
TD_NODISCARD td_err td_dataset_unsaved_load(const char *folder, bool trusted,
                                            td_dataset_progress *progress,
                                            td_dataset_unsaved **ret_unsaved,
                                            td_errinfo *info);
void td_dataset_unsaved_free(td_dataset_unsaved *unsaved);
TD_AUTO_FREE(td_dataset_unsaved, td_dataset_unsaved_free)

// How much a camera's packets are. IO.
TD_NODISCARD td_err td_dataset_unsaved_video_bytes(
    const td_dataset_unsaved *unsaved, uint32_t camera, uint64_t *ret_bytes,
    td_errinfo *info);

// Reads one camera's packets or pixels from the beginning.
typedef struct td_dataset_unsaved_camera td_dataset_unsaved_camera;

TD_NODISCARD td_err td_dataset_unsaved_camera_open(
    const td_dataset_unsaved *unsaved, uint32_t camera,
    td_dataset_unsaved_camera **ret_camera, td_errinfo *info);
void td_dataset_unsaved_camera_close(td_dataset_unsaved_camera *camera);
TD_AUTO_FREE(td_dataset_unsaved_camera, td_dataset_unsaved_camera_close)

// What the video says before its packets. Borrowed from the camera.
const td_media_video_params *
td_dataset_unsaved_camera_params(const td_dataset_unsaved_camera *camera);

// A td_media_video_source of a camera: the packet of the next frame. EMPTY
// after the last.
TD_NODISCARD td_err td_dataset_unsaved_packet(void *camera,
                                              td_media_video_packet *ret_packet,
                                              td_errinfo *info);

// The pixels of a frame, borrowed until the next. FORMAT where they are not
// whole.
TD_NODISCARD td_err td_dataset_unsaved_pixels(td_dataset_unsaved_camera *camera,
                                              uint32_t frame,
                                              td_slice *ret_pixels,
                                              td_errinfo *info);

#endif
