// SPDX-License-Identifier: Apache-2.0
#include "edge/record/pictures.h"

const char *td_edge_picture_kind_text(td_edge_picture_kind kind)
{
    static const char *const texts[] = {
#define TD_EDGE_PICTURE_TEXT(name, text) text,
        TD_EDGE_PICTURE_KINDS(TD_EDGE_PICTURE_TEXT)
#undef TD_EDGE_PICTURE_TEXT
    };
    return texts[kind];
}

static bool next(void *camera, td_edge_arrival *ret_arrival)
{
    return td_edge_camera_next(camera, ret_arrival);
}

static void give_back(void *camera, td_edge_frame *frame)
{
    td_edge_camera_give_back(camera, frame);
}

td_edge_picture_source td_edge_pictures_of(td_edge_camera *camera)
{
    return (td_edge_picture_source){camera, next, give_back};
}

void td_edge_pictures_init(td_edge_pictures *pictures,
                           const td_edge_picture_source *source)
{
    *pictures = (td_edge_pictures){.source = *source};
}

static void release(td_edge_pictures *pictures, td_edge_arrival *taken)
{
    if (taken->frame)
        pictures->source.give_back(pictures->source.user, taken->frame);
    *taken = (td_edge_arrival){0};
}

void td_edge_pictures_done(td_edge_pictures *pictures)
{
    release(pictures, &pictures->present);
    do
        release(pictures, &pictures->coming);
    while (pictures->source.next(pictures->source.user, &pictures->coming));
}

static bool is_coming(td_edge_pictures *pictures)
{
    return pictures->coming.arrived_ns != 0 ||
           pictures->source.next(pictures->source.user, &pictures->coming);
}

td_edge_picture_kind td_edge_pictures_at(td_edge_pictures *pictures,
                                         int64_t at_ns, int64_t most_ns,
                                         const td_edge_frame **ret_frame)
{
    td_edge_arrival *present = &pictures->present;
    while (is_coming(pictures) && pictures->coming.arrived_ns <= at_ns) {
        release(pictures, present);
        *present = pictures->coming;
        pictures->coming = (td_edge_arrival){0};
    }
    if (present->arrived_ns == 0) return TD_EDGE_PICTURE_NONE;
    if (!present->frame) return TD_EDGE_PICTURE_NO_ROOM;
    if (at_ns - present->frame->captured_ns > most_ns)
        return TD_EDGE_PICTURE_NONE;
    *ret_frame = present->frame;
    return TD_EDGE_PICTURE_THERE;
}
