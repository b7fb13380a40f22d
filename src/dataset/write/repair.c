// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/repair.h"
#include "dataset/write/save.h"

static void tell(const td_dataset_repair_hooks *hooks,
                 const td_dataset_saved *saved)
{
    if (saved->frames > 0)
        hooks->saved(hooks->user, saved->episode, saved->frames);
    if (saved->dropped) hooks->dropped(hooks->user);
}

static td_err save_one(td_dataset_staging *staging,
                       const td_dataset_repair_hooks *hooks, td_errinfo *info)
{
    td_dataset_saved saved;
    td_err err = td_dataset_save_unfinished(staging, &saved, info);
    if (err == TD_OK) tell(hooks, &saved);
    if (err != TD_ERR_MISMATCH && err != TD_ERR_VERSION) return err;
    hooks->left(hooks->user, info->text);
    return TD_OK;
}

td_err td_dataset_repair(const char *folder,
                         const td_dataset_repair_hooks *hooks, td_errinfo *info)
{
    TD_AUTO(td_dataset_staging) *staging = NULL;
    td_dataset_saved saved;
    if (!td_dataset_staging_exists(folder)) return TD_OK;
    TD_TRY(td_dataset_staging_open(folder, &staging, info));
    td_dataset_progress progress = {.tell = hooks->progress,
                                    .user = hooks->user};
    if (hooks->progress) staging->progress = &progress;
    TD_TRY(td_dataset_save_ended(staging, &saved, info));
    tell(hooks, &saved);
    for (uint32_t left = td_dataset_staging_unfinished(folder); left > 0;
         left--)
        TD_TRY(save_one(staging, hooks, info));
    return TD_OK;
}
