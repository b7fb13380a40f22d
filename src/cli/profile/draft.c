// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static td_err io_error(const char *path, td_errinfo *info)
{
    return td_fail(info, TD_ERR_IO, "%.200s: %s", path, strerror(errno));
}

// Whole or not at all.
static td_err write_file(const td_config_profile *profile, const char *path,
                         td_errinfo *info)
{
    char *fresh = NULL;
    if (asprintf(&fresh, "%s.new", path) < 0) return TD_ERR_NOMEM;
    FILE *file = fopen(fresh, "we");
    td_err err = file ? td_config_profile_write(profile, file) : TD_ERR_IO;
    if (file && fclose(file) != 0) err = TD_ERR_IO;
    if (err == TD_OK && rename(fresh, path) != 0) err = TD_ERR_IO;
    if (err != TD_OK) {
        (void)io_error(path, info);
        (void)unlink(fresh);
    }
    free(fresh);
    return err;
}

static td_err keep(td_cli_profile_draft *draft, const td_config_profile *next,
                   td_errinfo *info)
{
    td_config_profile *kept = NULL;
    TD_TRY(write_file(next, draft->part, info));
    TD_TRY(td_config_profile_load_part(draft->part, &kept, info));
    if (draft->kept) td_config_profile_free(draft->kept);
    draft->kept = kept;
    return TD_OK;
}

static td_err check_same(const td_cli_profile_draft *draft, td_errinfo *info)
{
    const td_config_profile *was = draft->kept, *now = &draft->blank;
    const struct {
        const char *what, *was, *now;
    } rows[] = {
        {"model", was->model, now->model},
        {"model_hash", was->model_hash, now->model_hash},
        {"engine", was->engine, now->engine},
        {"engine_hash", was->engine_hash, now->engine_hash},
        {"gpu", was->gpu, now->gpu},
    };
    for (size_t i = 0; i < TD_COUNT_OF(rows); i++)
        if (strcmp(rows[i].was, rows[i].now) != 0)
            return td_fail(info, TD_ERR_MISMATCH,
                           "%.200s: is of another %s, %.80s, not %.80s; remove "
                           "it to start over",
                           draft->part, rows[i].what, rows[i].was,
                           rows[i].now[0] ? rows[i].now : "an unknown one");
    return TD_OK;
}

td_err td_cli_profile_draft_open(td_cli_profile_draft *ret_draft,
                                 const char *out,
                                 const td_config_profile *blank,
                                 td_errinfo *info)
{
    td_cli_profile_draft draft = {.out = out, .blank = *blank};
    if (access(out, F_OK) == 0)
        return td_fail(info, TD_ERR_EXISTS,
                       "%.200s: is there already; remove it, or choose another "
                       "name with --out",
                       out);
    if (asprintf(&draft.part, "%s.part", out) < 0) return TD_ERR_NOMEM;
    td_err err = TD_OK;
    if (access(draft.part, F_OK) == 0) {
        err = td_config_profile_load_part(draft.part, &draft.kept, info);
        if (err == TD_OK) err = check_same(&draft, info);
    }
    if (err != TD_OK) {
        td_cli_profile_draft_close(&draft);
        return err;
    }
    *ret_draft = draft;
    return TD_OK;
}

void td_cli_profile_draft_close(td_cli_profile_draft *draft)
{
    if (draft->kept) td_config_profile_free(draft->kept);
    free(draft->part);
    *draft = (td_cli_profile_draft){0};
}

const td_config_profile_service *
td_cli_profile_draft_size(const td_cli_profile_draft *draft, int64_t batch)
{
    for (size_t i = 0; draft->kept && i < draft->kept->service_count; i++)
        if (draft->kept->service[i].batch == batch)
            return &draft->kept->service[i];
    return NULL;
}

const td_config_profile_rate *
td_cli_profile_draft_rate(const td_cli_profile_draft *draft, int64_t batch,
                          double percent)
{
    for (size_t i = 0; draft->kept && i < draft->kept->rate_count; i++)
        if (draft->kept->rates[i].batch == batch &&
            draft->kept->rates[i].percent == percent)
            return &draft->kept->rates[i];
    return NULL;
}

static int by_batch(const void *a, const void *b)
{
    const td_config_profile_service *one = a, *other = b;
    return (one->batch > other->batch) - (one->batch < other->batch);
}

td_err td_cli_profile_draft_add_size(td_cli_profile_draft *draft,
                                     const td_config_profile_service *size,
                                     double noise, td_errinfo *info)
{
    td_config_profile next = draft->kept ? *draft->kept : draft->blank;
    size_t count = next.service_count;
    td_config_profile_service *all = calloc(count + 1, sizeof *all);
    if (!all) return TD_ERR_NOMEM;
    if (count) memcpy(all, next.service, count * sizeof *all);
    all[count] = *size;
    qsort(all, count + 1, sizeof *all, by_batch);
    next.service = all;
    next.service_count = count + 1;
    if (noise > next.noise) next.noise = noise;
    td_err err = keep(draft, &next, info);
    free(all);
    return err;
}

td_err td_cli_profile_draft_add_rate(td_cli_profile_draft *draft,
                                     const td_config_profile_rate *rate,
                                     td_errinfo *info)
{
    td_config_profile next = *draft->kept;
    size_t count = next.rate_count;
    td_config_profile_rate *all = calloc(count + 1, sizeof *all);
    if (!all) return TD_ERR_NOMEM;
    if (count) memcpy(all, next.rates, count * sizeof *all);
    all[count] = *rate;
    next.rates = all;
    next.rate_count = count + 1;
    td_err err = keep(draft, &next, info);
    free(all);
    return err;
}

td_err td_cli_profile_draft_finish(td_cli_profile_draft *draft,
                                   td_errinfo *info)
{
    td_config_profile whole = *draft->kept;
    whole.complete = true;
    TD_TRY(write_file(&whole, draft->out, info));
    (void)unlink(draft->part);
    return TD_OK;
}
