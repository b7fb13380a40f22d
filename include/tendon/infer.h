// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_INFER_H
#define TENDON_INFER_H

// A model of your own as a function of your program: `engine: {kind: callback}`
// of a manifest that is served with tendon/server.h.
//
//   static td_err infer(void *user, td_infer_request *const *requests,
//                       uint32_t count, td_errinfo *info)
//
// It gets a batch: 1 to `max_batch` observations that fit what the manifest
// says, their pictures decoded. For each it writes rows of actions, and may add
// results under names of its own. It runs on one thread, the engine's, which it
// may hold for as long as the model takes. Equal requests must give equal
// answers: it keeps nothing from one call to the next, and all noise comes from
// `seed`.
//
// It is called before the doors open, to be warm: once with one request and,
// where it takes more, once with a full batch, of zeros and black pictures.

#include "tendon/err.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TD_INFER_MAX_RANK 8

// Valid UTF-8, not NUL-terminated.
typedef struct td_infer_text {
    const char *data;
    uint32_t size;
} td_infer_text;

typedef enum td_infer_dtype {
    TD_INFER_F32,
    TD_INFER_F64,
    TD_INFER_F16,
    TD_INFER_BF16,
    TD_INFER_U8,
    TD_INFER_I8,
    TD_INFER_I16,
    TD_INFER_I32,
    TD_INFER_I64,
    TD_INFER_BOOL,
} td_infer_dtype;

// `data` may be unaligned: read it with memcpy.
typedef struct td_infer_tensor {
    td_infer_text name; // empty: it has none
    td_infer_dtype dtype;
    uint32_t rank; // 0: it is not there
    uint32_t shape[TD_INFER_MAX_RANK];
    const void *data;
    size_t bytes;
    int64_t age_us; // when it was sent; -1: not known
} td_infer_tensor;

typedef enum td_infer_codec {
    TD_INFER_JPEG,
    TD_INFER_PNG,
    TD_INFER_RAW, // height x width x channels
} td_infer_codec;

typedef struct td_infer_image {
    td_infer_text name;
    const uint8_t *rgb;     // height x width x 3, rows without padding; NULL:
                            // no camera of the manifest, left as it came
    uint32_t height, width; // 0 where rgb is NULL and the codec tells
    const void *data;       // as it came
    size_t bytes;
    td_infer_codec codec;
} td_infer_image;

typedef struct td_infer_pair {
    td_infer_text name, text;
} td_infer_pair;

// One member of a batch. All that it points to is the library's, until the
// function returns. Later versions have more members, at the end.
typedef struct td_infer_request {
    td_infer_text client;
    td_infer_text task;
    uint64_t boot, episode, seq;
    uint64_t cursor;         // policy steps executed when the state was read
    uint64_t seed;           // of all noise
    float urgency;           // 0 to 1
    uint32_t priority;       // 0 is the highest
    int64_t steps_remaining; // that its robot has left to play; -1: not known
    const float *state;      // [state_count], aligned
    uint32_t state_count;    // of the manifest
    int64_t state_age_us;    // -1: not known
    const td_infer_image *images; // the manifest's cameras in their order, then
                                  // whatever else came
    uint32_t image_count;
    const td_infer_tensor *tensors;
    uint32_t tensor_count;
    const td_infer_pair *metadata;
    uint32_t metadata_count;
    bool has_rtc; // real-time chunking: continue this
    uint64_t rtc_base_chunk;
    uint32_t rtc_delay_steps;
    const td_infer_tensor *rtc_prefix; // promised rows, robot units

    // The answer.
    float *actions;        // [chunk_rows x action_count], to be written
    uint32_t chunk_rows;   // `chunk` of the manifest
    uint32_t action_count; // of the manifest
    uint32_t rows;         // that were written, 1 to chunk_rows, which it is
    td_err status;         // TD_OK; another one fails this member alone
    td_errinfo *info;      // why, for its robot

    void *library; // the library's own
} td_infer_request;

// Answers a batch. Another value than TD_OK fails all of it, for the reason in
// `info`; each of several then runs once more alone. A member whose rows are
// not 1 to chunk_rows or not finite fails alone. It must not throw.
typedef td_err (*td_infer_function)(void *user,
                                    td_infer_request *const *requests,
                                    uint32_t count, td_errinfo *info);

// Adds a named result, which goes back with the actions; name and data are
// copied. Inside the function only. FORMAT (a name that is invalid or taken, a
// shape that does not fit the bytes), LIMIT (too many, too large), NOMEM.
TD_NODISCARD td_err td_infer_result(td_infer_request *request,
                                    const td_infer_tensor *result,
                                    td_errinfo *info);

// Sets the answer's text, in place of the one before; copied. Inside the
// function only. FORMAT (not UTF-8), LIMIT (beyond 8192 bytes), NOMEM.
TD_NODISCARD td_err td_infer_set_text(td_infer_request *request,
                                      td_infer_text text, td_errinfo *info);

#ifdef __cplusplus
}
#endif

#endif
