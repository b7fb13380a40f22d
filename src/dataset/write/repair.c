// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/repair.h"
#include "dataset/write/finish.h"

static void tell(const td_dataset_repair_hooks *hooks,
                 const td_dataset_finished *finished)
{
    if (finished->frames > 0)
        hooks->saved(hooks->user, finished->episode, finished->frames);
    if (finished->dropped) hooks->dropped(hooks->user);
}

static td_err save_one(td_dataset_work *work,
                       const td_dataset_repair_hooks *hooks, td_errinfo *info)
{
    td_dataset_finished finished;
    td_err err = td_dataset_finish_unfinished(work, &finished, info);
    if (err == TD_OK) tell(hooks, &finished);
    if (err != TD_ERR_MISMATCH && err != TD_ERR_VERSION) return err;
    hooks->left(hooks->user, info->text);
    return TD_OK;
}

td_err td_dataset_repair(const char *folder,
                         const td_dataset_repair_hooks *hooks, td_errinfo *info)
{
    TD_AUTO(td_dataset_work) *work = NULL;
    td_dataset_finished finished;
    if (!td_dataset_work_is_there(folder)) return TD_OK;
    TD_TRY(td_dataset_work_open(folder, &work, info));
    td_dataset_progress progress = {.tell = hooks->progress,
                                    .user = hooks->user};
    if (hooks->progress) work->progress = &progress;
    TD_TRY(td_dataset_finish_ended(work, &finished, info));
    tell(hooks, &finished);
    for (uint32_t left = td_dataset_work_unfinished(folder); left > 0; left--)
        TD_TRY(save_one(work, hooks, info));
    return TD_OK;
}
