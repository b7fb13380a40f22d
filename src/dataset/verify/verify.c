// SPDX-License-Identifier: Apache-2.0
#include "dataset/verify/verify.h"
#include "dataset/disk/staging.h"
#include "dataset/table/table.h"
#include "dataset/verify/verify_internal.h"

#include <stdio.h>
#include <string.h>

td_err td_dataset_verify_fault(td_dataset_verification *check, const char *file,
                               const char *remedy, const char *fmt, ...)
{
    td_dataset_fault fault = {.file = ""};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(fault.what, sizeof fault.what, fmt, args);
    va_end(args);
    (void)snprintf(fault.file, sizeof fault.file, "%s", file);
    (void)snprintf(fault.remedy, sizeof fault.remedy, "%s", remedy);
    check->hooks->fault(check->hooks->user, &fault);
    check->faults++;
    return check->faults < TD_DATASET_VERIFY_MAX_FAULTS ? TD_OK : TD_ERR_LIMIT;
}

td_err td_dataset_verify_step(td_dataset_verification *check)
{
    const td_dataset_verify_hooks *hooks = check->hooks;
    check->done++;
    if (!hooks->progress ||
        hooks->progress(hooks->user, check->done, check->total))
        return TD_OK;
    return TD_ERR_CANCELLED;
}

static uint32_t count_videos(const td_dataset_info *dataset)
{
    uint32_t count = 0;
    for (size_t i = 0; i < dataset->feature_count; i++)
        count += dataset->features[i].dtype == TD_DATASET_DTYPE_VIDEO;
    return count;
}

static td_err run(td_dataset_verification *check)
{
    TD_TRY(td_dataset_verify_meta(check));
    if (!check->episodes) return TD_OK;
    check->total = check->episodes->count * (1 + count_videos(check->dataset));
    TD_TRY(td_dataset_verify_rows(check));
    return td_dataset_verify_videos(check);
}

td_err td_dataset_verify(const char *folder,
                         const td_dataset_verify_hooks *hooks,
                         uint32_t *ret_faults, td_errinfo *info)
{
    td_dataset_disk_path meta;
    pid_t recorder = td_dataset_staging_recorder(folder);
    if (recorder)
        return td_fail(info, TD_ERR_BUSY, "%s: process %ld is recording there",
                       folder, (long)recorder);
    TD_TRY(td_dataset_disk_join(folder, "meta", &meta, info));
    if (!td_dataset_disk_exists(meta.text))
        return td_fail(info, TD_ERR_NOTFOUND, "%s: no dataset is there",
                       folder);
    TD_TRY(td_dataset_table_load(info)); // not a fault of the dataset
    td_dataset_verification check = {.folder = folder, .hooks = hooks};
    td_err err = run(&check);
    if (check.episodes) td_dataset_episodes_free(check.episodes);
    if (check.tasks) td_dataset_tasks_free(check.tasks);
    if (check.dataset) td_dataset_info_free(check.dataset);
    if (err != TD_OK && err != TD_ERR_LIMIT)
        return td_fail(info, err, "%s: %s", folder,
                       check.why.text[0] ? check.why.text : td_err_text(err));
    *ret_faults = check.faults;
    return TD_OK;
}
