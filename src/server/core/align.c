// SPDX-License-Identifier: Apache-2.0
#include "server/core/align.h"

static void add(td_server_align_ages *ages, td_wire_text name,
                const td_wire_tensor *tensor)
{
    if (!tensor->has_age) return;
    if (ages->count == 0 || tensor->age_us > ages->oldest_us) {
        ages->oldest = name;
        ages->oldest_us = tensor->age_us;
    }
    if (ages->count == 0 || tensor->age_us < ages->youngest_us)
        ages->youngest_us = tensor->age_us;
    ages->count++;
}

void td_server_align_ages_of(const td_wire_obs *obs,
                             td_server_align_ages *ret_ages)
{
    *ret_ages = (td_server_align_ages){0};
    add(ret_ages, td_wire_text_of("state"), &obs->state);
    for (uint32_t i = 0; i < obs->tensor_count; i++)
        add(ret_ages, obs->tensors[i].name, &obs->tensors[i].tensor);
}

td_err td_server_align_check(const td_server_align_settings *settings,
                             const td_server_align_ages *ages, td_errinfo *info)
{
    if (ages->oldest_us <= settings->staleness_us) return TD_OK;
    return td_fail(
        info, TD_ERR_LIMIT, "%.*s: is %.7g ms old, at most %.7g ms are taken",
        (int)ages->oldest.size, ages->oldest.data,
        (double)ages->oldest_us / 1e3, (double)settings->staleness_us / 1e3);
}

bool td_server_align_misaligned(const td_server_align_settings *settings,
                                const td_server_align_ages *ages)
{
    return ages->oldest_us - ages->youngest_us > settings->alignment_us;
}
