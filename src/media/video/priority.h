// SPDX-License-Identifier: Apache-2.0
#ifndef TD_MEDIA_VIDEO_PRIORITY_H
#define TD_MEDIA_VIDEO_PRIORITY_H

// SVT-AV1 raises its threads to the highest real-time priority where it may,
// which is wherever it runs as root: above the control tick. It may not while
// the thread that opens it lacks CAP_SYS_NICE.

#include <stdbool.h>

typedef struct td_media_video_priority {
    bool lowered; // the calling thread had the capability, and gets it back
} td_media_video_priority;

// Of the calling thread alone; the two belong around the opening. A thread made
// in between starts without the capability and keeps so.
td_media_video_priority td_media_video_priority_lower(void);
void td_media_video_priority_restore(td_media_video_priority priority);

#endif
