// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_META_INFO_H
#define TD_DATASET_META_INFO_H

// meta/info.json: what a dataset of codebase version v3.0 holds.
//
// What a file says beyond the fields here is kept, and written again.

#include "base/err.h"
#include "dataset/table/table.h"

#include <stdbool.h>

#define TD_DATASET_INFO_MAX_BYTES (16u << 20)
#define TD_DATASET_MAX_FEATURES 512
#define TD_DATASET_MAX_DIMS 5
#define TD_DATASET_MAX_SIZE (1u << 24) // values of one row of a feature

// dtypes as LeRobot names them.
#define TD_DATASET_DTYPES(X)                                                   \
    X(BOOL, "bool")                                                            \
    X(I8, "int8")                                                              \
    X(I16, "int16")                                                            \
    X(I32, "int32")                                                            \
    X(I64, "int64")                                                            \
    X(U8, "uint8")                                                             \
    X(U16, "uint16")                                                           \
    X(U32, "uint32")                                                           \
    X(F32, "float32")                                                          \
    X(F64, "float64")                                                          \
    X(STRING, "string")                                                        \
    X(IMAGE, "image")                                                          \
    X(VIDEO, "video")

typedef enum td_dataset_dtype {
#define TD_DATASET_DTYPE_ENUM(name, text) TD_DATASET_DTYPE_##name,
    TD_DATASET_DTYPES(TD_DATASET_DTYPE_ENUM)
#undef TD_DATASET_DTYPE_ENUM
        TD_DATASET_DTYPE_COUNT
} td_dataset_dtype;

typedef struct td_dataset_feature {
    const char *key;
    td_dataset_dtype dtype;
    uint32_t dims; // 1 to TD_DATASET_MAX_DIMS
    uint32_t shape[TD_DATASET_MAX_DIMS];
    size_t name_count; // as many as stand there; 0: none
    const char **names;
    const char *codec; // of a video, such as "av1"; NULL: not said
    bool depth;        // pictures of distances, not of colours
} td_dataset_feature;

// Everything is borrowed from it but the numbers.
typedef struct td_dataset_info {
    uint32_t fps;
    const char *robot_type; // NULL: not said
    uint64_t total_episodes;
    uint64_t total_frames;
    uint64_t total_tasks;
    uint32_t chunks_size; // files of a folder
    uint32_t data_file_mb;
    uint32_t video_file_mb;
    const char *data_path;  // see path.h
    const char *video_path; // NULL: no videos
    size_t feature_count;
    td_dataset_feature *features; // in the file's order
    struct td_dataset_info_memory *memory;
} td_dataset_info;

// An empty dataset with LeRobot's settings, without features. Owned by the
// caller. INVALID (0 fps), NOMEM.
TD_NODISCARD td_err td_dataset_info_new(uint32_t fps, const char *robot_type,
                                        td_dataset_info **ret_dataset,
                                        td_errinfo *info);
void td_dataset_info_free(td_dataset_info *dataset);
TD_AUTO_FREE(td_dataset_info, td_dataset_info_free)

// Adds a feature; all is copied. `names` may be NULL: none, else there is one
// for each of the first dimension, and of a picture for each dimension.
// INVALID, EXISTS, NOMEM.
TD_NODISCARD td_err td_dataset_info_add(td_dataset_info *dataset,
                                        const char *key, td_dataset_dtype dtype,
                                        const uint32_t *shape, uint32_t dims,
                                        const char *const *names,
                                        td_errinfo *info);

// The features that end every dataset, of one number each.
#define TD_DATASET_DEFAULTS 5
typedef struct td_dataset_default {
    const char *key;
    td_dataset_dtype dtype;
} td_dataset_default;
extern const td_dataset_default td_dataset_info_defaults[TD_DATASET_DEFAULTS];

// Adds those.
TD_NODISCARD td_err td_dataset_info_add_defaults(td_dataset_info *dataset,
                                                 td_errinfo *info);

// What a video feature says of its files, as LeRobot does; `codec` is copied.
// NOTFOUND, NOMEM.
TD_NODISCARD td_err td_dataset_info_set_video(td_dataset_info *dataset,
                                              const char *key,
                                              const char *codec,
                                              td_errinfo *info);

// NULL where there is none. Borrowed.
const td_dataset_feature *td_dataset_info_find(const td_dataset_info *dataset,
                                               const char *key);

// "float32"; never NULL.
const char *td_dataset_dtype_name(td_dataset_dtype dtype);

// The values of one row of a feature.
size_t td_dataset_feature_size(const td_dataset_feature *feature);
bool td_dataset_feature_is_picture(const td_dataset_feature *feature);

// The size of a picture or video: its shape is height, width, channels, or
// channels first where its names say so. MISMATCH for what is no picture.
TD_NODISCARD td_err
td_dataset_feature_picture(const td_dataset_feature *feature,
                           uint32_t *ret_height, uint32_t *ret_width);

// Reads FOLDER/meta/info.json, or the bytes of one. Owned by the caller.
// NOTFOUND, IO, LIMIT, FORMAT, UNSUPPORTED (another codebase version, a dtype
// that is not read), NOMEM.
TD_NODISCARD td_err td_dataset_info_read(const char *folder,
                                         td_dataset_info **ret_dataset,
                                         td_errinfo *info);
TD_NODISCARD td_err td_dataset_info_parse(td_slice bytes,
                                          td_dataset_info **ret_dataset,
                                          td_errinfo *info);

// The text of info.json, as LeRobot lays it out. Owned: free(). NOMEM.
TD_NODISCARD td_err td_dataset_info_text(const td_dataset_info *dataset,
                                         char **ret_text);

// The note `huggingface` of a data file: its columns as `datasets` names them.
// Owned: free(). NOMEM.
TD_NODISCARD td_err td_dataset_info_note(const td_dataset_info *dataset,
                                         char **ret_text);

// The columns of a data file: all features but videos. Owned: free(); names are
// borrowed. UNSUPPORTED (a feature that is read but not written), NOMEM.
TD_NODISCARD td_err td_dataset_info_fields(const td_dataset_info *dataset,
                                           td_dataset_field **ret_fields,
                                           size_t *ret_count, td_errinfo *info);

#endif
