// SPDX-License-Identifier: Apache-2.0
#include "base/chart/chart.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static td_err write_file(const td_chart *chart, const char *path,
                         td_errinfo *info)
{
    FILE *file = fopen(path, "we");
    if (!file) return td_fail(info, TD_ERR_IO, "%s: %s", path, strerror(errno));
    td_err err = td_chart_write(chart, file);
    int failed = errno;
    if (fclose(file) != 0 && err == TD_OK) {
        err = TD_ERR_IO;
        failed = errno;
    }
    if (err == TD_OK) return TD_OK;

    (void)unlink(path);
    return td_fail(info, err, "%s: %s", path,
                   err == TD_ERR_IO ? strerror(failed) : td_err_text(err));
}

td_err td_chart_save(const td_chart *chart, const char *dir, const char *name,
                     td_errinfo *info)
{
    char path[PATH_MAX];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return td_fail(info, TD_ERR_IO, "%s: %s", dir, strerror(errno));
    int size = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return td_fail(info, TD_ERR_IO, "%s: the path is too long", dir);
    return write_file(chart, path, info);
}
