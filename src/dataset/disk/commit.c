// SPDX-License-Identifier: Apache-2.0
#include "dataset/disk/commit.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

td_err td_dataset_commit_begin(td_dataset_staging *staging, td_errinfo *info)
{
    TD_TRY(td_dataset_disk_remove(staging->next.text, info));
    if (td_dataset_disk_exists(staging->folder.text))
        return td_dataset_disk_mirror(staging->folder.text, staging->next.text,
                                      info);
    return td_dataset_disk_make_folder(staging->next.text, info);
}

td_err td_dataset_commit_file(td_dataset_staging *staging, const char *name,
                              td_dataset_disk_path *ret_path, td_errinfo *info)
{
    td_dataset_disk_path path;
    TD_TRY(td_dataset_disk_join(staging->next.text, name, &path, info));
    td_dataset_disk_path folder = path;
    TD_TRY(td_dataset_disk_make_folder(dirname(folder.text), info));
    // Never written over: the present dataset has the same file.
    TD_TRY(td_dataset_disk_remove(path.text, info));
    *ret_path = path;
    return TD_OK;
}

static td_err swap(const td_dataset_staging *staging, td_errinfo *info)
{
    unsigned how = td_dataset_disk_exists(staging->folder.text)
                       ? RENAME_EXCHANGE
                       : RENAME_NOREPLACE;
    if (renameat2(AT_FDCWD, staging->next.text, AT_FDCWD, staging->folder.text,
                  how) == 0)
        return TD_OK;
    return td_dataset_disk_fail(staging->folder.text, info);
}

td_err td_dataset_commit_swap(td_dataset_staging *staging, td_errinfo *info)
{
    TD_TRY(td_dataset_disk_sync_tree(staging->next.text, info));
    TD_TRY(swap(staging, info));
    TD_TRY(td_dataset_disk_sync(staging->parent.text, info));
    return td_dataset_disk_sync(staging->area.text, info);
}
