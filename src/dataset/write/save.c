// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/save.h"
#include "base/log.h"
#include "dataset/journal/journal.h"

static td_err drop_journal(td_dataset_staging *staging, td_errinfo *info)
{
    TD_TRY(td_dataset_disk_remove(staging->episode.text, info));
    return td_dataset_disk_sync(staging->area.text, info);
}

static td_err add(td_dataset_staging *staging,
                  const td_dataset_unsaved *unsaved, td_dataset_append *append,
                  td_errinfo *info)
{
    TD_TRY(td_dataset_append_episode(append, unsaved, info));
    return drop_journal(staging, info);
}

td_err td_dataset_save_episode(td_dataset_staging *staging,
                               td_dataset_append *append, td_errinfo *info)
{
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    TD_TRY(td_dataset_unsaved_load(staging->episode.text, true,
                                   staging->progress, &unsaved, info));
    if (!unsaved->ended) // its last entry
        return td_fail(info, TD_ERR_IO,
                       "%s: what was written cannot be read back",
                       staging->episode.text);
    return add(staging, unsaved, append, info);
}

static td_err load(const td_dataset_staging *staging,
                   td_dataset_unsaved **ret_unsaved, td_errinfo *info)
{
    return td_dataset_unsaved_load(staging->episode.text, false,
                                   staging->progress, ret_unsaved, info);
}

static td_err open_append(td_dataset_staging *staging,
                          const td_dataset_unsaved *unsaved,
                          td_dataset_append **ret_append, td_errinfo *info)
{
    const td_dataset_append_config config = {.staging = staging,
                                             .schema = unsaved->schema};
    return td_dataset_append_open(&config, ret_append, info);
}

static td_err put_aside(td_dataset_staging *staging,
                        const td_dataset_unsaved *unsaved, td_errinfo *info)
{
    TD_TRY(td_dataset_staging_put_aside(staging, info));
    td_log_text(TD_LOG_WARN,
                "dataset: an episode of %u frames was not finished; to save "
                "it: tendon dataset repair %s",
                unsaved->frames, staging->folder.text);
    return TD_OK;
}

// Whoever recorded it knows what is in it.
static td_err put_foreign_aside(td_dataset_staging *staging, const char *why,
                                td_errinfo *info)
{
    TD_TRY(td_dataset_staging_put_aside(staging, info));
    td_log_text(TD_LOG_WARN, "dataset: an episode was not finished: %s", why);
    return TD_OK;
}

// The end was being written: the dataset has the episode, or shall have it, or
// has become another one in between.
static td_err save_ended(td_dataset_staging *staging,
                         const td_dataset_unsaved *unsaved,
                         td_dataset_saved *saved, td_errinfo *info)
{
    TD_AUTO(td_dataset_append) *append = NULL;
    td_err err = open_append(staging, unsaved, &append, info);
    if (err == TD_ERR_MISMATCH) return put_aside(staging, unsaved, info);
    if (err != TD_OK) return err;
    if (td_dataset_append_had(append, unsaved->number, unsaved->frames))
        return drop_journal(staging, info);
    if (td_dataset_append_episodes(append) != unsaved->number)
        return put_aside(staging, unsaved, info);
    TD_TRY(add(staging, unsaved, append, info));
    saved->episode = unsaved->number;
    saved->frames = unsaved->frames;
    td_log_text(TD_LOG_INFO,
                "dataset: %s: episode %u, whose recorder died while it ended "
                "it, is finished: %u frames",
                staging->folder.text, unsaved->number, unsaved->frames);
    return TD_OK;
}

td_err td_dataset_save_ended(td_dataset_staging *staging,
                             td_dataset_saved *ret_saved, td_errinfo *info)
{
    td_dataset_saved saved = {0};
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    td_errinfo why = {""};
    td_err err = TD_ERR_NOTFOUND;
    bool there = td_dataset_disk_exists(staging->episode.text);
    if (there) err = load(staging, &unsaved, &why);
    if (err == TD_ERR_FORMAT || err == TD_ERR_NOTFOUND ||
        (err == TD_OK && unsaved->frames == 0)) {
        err = drop_journal(staging, info);
        saved.dropped = there;
    } else if (err == TD_ERR_VERSION) {
        err = put_foreign_aside(staging, why.text, info);
    } else if (err == TD_OK && unsaved->ended) {
        err = save_ended(staging, unsaved, &saved, info);
    } else if (err == TD_OK) {
        err = put_aside(staging, unsaved, info);
    } else {
        (void)td_fail(info, err, "%s", why.text);
    }
    if (err == TD_OK) *ret_saved = saved;
    return err;
}

// Under the number that the dataset has next.
static td_err save(td_dataset_staging *staging,
                   const td_dataset_unsaved *unsaved, uint32_t *ret_episode,
                   td_errinfo *info)
{
    TD_AUTO(td_dataset_append) *append = NULL;
    TD_TRY(open_append(staging, unsaved, &append, info));
    uint32_t number = td_dataset_append_episodes(append);
    TD_TRY(td_dataset_journal_seal(staging->episode.text, number, info));
    TD_TRY(add(staging, unsaved, append, info));
    *ret_episode = number;
    return TD_OK;
}

td_err td_dataset_save_unfinished(td_dataset_staging *staging,
                                  td_dataset_saved *ret_saved, td_errinfo *info)
{
    TD_AUTO(td_dataset_unsaved) *unsaved = NULL;
    td_dataset_saved saved = {0};
    TD_TRY(td_dataset_staging_take_back(staging, info));
    td_err err = load(staging, &unsaved, info);
    if (err == TD_OK)
        err = unsaved->frames == 0
                  ? drop_journal(staging, info)
                  : save(staging, unsaved, &saved.episode, info);
    if (err == TD_ERR_MISMATCH || err == TD_ERR_VERSION)
        TD_TRY(td_dataset_staging_put_aside(staging, NULL));
    TD_TRY(err);
    saved.frames = unsaved->frames;
    saved.dropped = unsaved->frames == 0;
    *ret_saved = saved;
    return TD_OK;
}

static void report(const td_dataset_save_hooks *hooks,
                   const td_dataset_saved *saved)
{
    if (saved->frames > 0)
        hooks->saved(hooks->user, saved->episode, saved->frames);
    if (saved->dropped) hooks->dropped(hooks->user);
}

static td_err save_one(td_dataset_staging *staging,
                       const td_dataset_save_hooks *hooks, td_errinfo *info)
{
    td_dataset_saved saved;
    td_err err = td_dataset_save_unfinished(staging, &saved, info);
    if (err == TD_OK) report(hooks, &saved);
    if (err != TD_ERR_MISMATCH && err != TD_ERR_VERSION) return err;
    hooks->left(hooks->user, info->text);
    return TD_OK;
}

td_err td_dataset_save_leftovers(const char *folder,
                                 const td_dataset_save_hooks *hooks,
                                 td_errinfo *info)
{
    TD_AUTO(td_dataset_staging) *staging = NULL;
    td_dataset_saved saved;
    if (!td_dataset_staging_exists(folder)) return TD_OK;
    TD_TRY(td_dataset_staging_open(folder, &staging, info));
    td_dataset_progress progress = {.report = hooks->progress,
                                    .user = hooks->user};
    if (hooks->progress) staging->progress = &progress;
    TD_TRY(td_dataset_save_ended(staging, &saved, info));
    report(hooks, &saved);
    for (uint32_t left = td_dataset_staging_unfinished(folder); left > 0;
         left--)
        TD_TRY(save_one(staging, hooks, info));
    return TD_OK;
}
