// SPDX-License-Identifier: Apache-2.0
#include "media/video/priority.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// The kernel's own calls are a thread's; a library's would be the process's.
static struct __user_cap_header_struct this_thread(void)
{
    return (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0};
}

// Whether it was set before.
static bool set_capability(bool on)
{
    struct __user_cap_header_struct thread = this_thread();
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const uint32_t bit = CAP_TO_MASK(CAP_SYS_NICE);
    if (syscall(SYS_capget, &thread, sets) != 0) return false;
    bool before = sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective & bit;
    sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective &= ~bit;
    if (on) sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective |= bit;
    if (syscall(SYS_capset, &thread, sets) != 0) return false;
    return before;
}

td_media_video_priority td_media_video_priority_lower(void)
{
    return (td_media_video_priority){.lowered = set_capability(false)};
}

void td_media_video_priority_restore(td_media_video_priority priority)
{
    if (priority.lowered) (void)set_capability(true);
}
