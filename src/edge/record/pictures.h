// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_RECORD_PICTURES_H
#define TD_EDGE_RECORD_PICTURES_H

// The pictures of one camera, for who records: to each row belongs the newest
// that had arrived when its state was seen.
//
// Pure: where pictures come from is an argument. One thread.

#include "edge/observe/camera.h"

// What td_edge_camera_next() and td_edge_camera_give_back() do.
typedef struct td_edge_picture_source {
    void *user;
    bool (*next)(void *user, td_edge_arrival *ret_taken);
    void (*give_back)(void *user, td_edge_frame *frame);
} td_edge_picture_source;

// A camera that is open with room for what is kept; borrowed.
td_edge_picture_source td_edge_pictures_of(td_edge_camera *camera);

typedef struct td_edge_pictures {
    td_edge_picture_source source;
    td_edge_arrival present; // arrived_ns 0: none yet
    td_edge_arrival coming;  // likewise; arrived after what was asked for
} td_edge_pictures;

void td_edge_pictures_init(td_edge_pictures *pictures,
                           const td_edge_picture_source *source);

// Gives back what is left. Never blocks.
void td_edge_pictures_done(td_edge_pictures *pictures);

#define TD_EDGE_PICTURE_KINDS(X)                                               \
    X(THERE, "there")                                                          \
    X(NONE, "the camera gave none")                                            \
    X(NO_ROOM, "recording does not keep up")                                   \
    X(BAD, "it cannot be decoded")

typedef enum td_edge_picture_kind {
#define TD_EDGE_PICTURE_ENUM(name, text) TD_EDGE_PICTURE_##name,
    TD_EDGE_PICTURE_KINDS(TD_EDGE_PICTURE_ENUM)
#undef TD_EDGE_PICTURE_ENUM
} td_edge_picture_kind;

const char *td_edge_picture_kind_text(td_edge_picture_kind kind);

// The picture of the time `at_ns`, borrowed until the next call; an older time
// than before has the picture of then. Where it is not THERE, or more than
// `most_ns` old, there is no frame. Gives back those that are past.
td_edge_picture_kind td_edge_pictures_at(td_edge_pictures *pictures,
                                         int64_t at_ns, int64_t most_ns,
                                         const td_edge_frame **ret_frame);

#endif
