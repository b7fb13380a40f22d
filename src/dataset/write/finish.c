// SPDX-License-Identifier: Apache-2.0
#include "dataset/write/finish.h"
#include "base/log.h"
#include "dataset/disk/journal.h"

static td_err drop_journal(td_dataset_work *work, td_errinfo *info)
{
    TD_TRY(td_dataset_disk_remove(work->episode.text, info));
    return td_dataset_disk_sync(work->area.text, info);
}

static td_err add(td_dataset_work *work, const td_dataset_reel *reel,
                  td_dataset_append *append, td_errinfo *info)
{
    TD_TRY(td_dataset_append_episode(append, reel, info));
    return drop_journal(work, info);
}

td_err td_dataset_finish_episode(td_dataset_work *work,
                                 td_dataset_append *append, td_errinfo *info)
{
    TD_AUTO(td_dataset_reel) *reel = NULL;
    TD_TRY(td_dataset_reel_load(work->episode.text, true, work->progress, &reel,
                                info));
    if (!reel->ended) // its last record
        return td_fail(info, TD_ERR_IO,
                       "%s: what was written cannot be read back",
                       work->episode.text);
    return add(work, reel, append, info);
}

static td_err load(const td_dataset_work *work, td_dataset_reel **ret_reel,
                   td_errinfo *info)
{
    return td_dataset_reel_load(work->episode.text, false, work->progress,
                                ret_reel, info);
}

static td_err open_append(td_dataset_work *work, const td_dataset_reel *reel,
                          td_dataset_append **ret_append, td_errinfo *info)
{
    const td_dataset_append_config config = {.work = work,
                                             .schema = reel->schema};
    return td_dataset_append_open(&config, ret_append, info);
}

static td_err put_aside(td_dataset_work *work, const td_dataset_reel *reel,
                        td_errinfo *info)
{
    TD_TRY(td_dataset_work_put_aside(work, info));
    td_log_text(TD_LOG_WARN,
                "dataset: an episode of %u frames was not finished; to save "
                "it: tendon dataset repair %s",
                reel->frames, work->folder.text);
    return TD_OK;
}

// Whoever recorded it knows what is in it.
static td_err put_foreign_aside(td_dataset_work *work, const char *why,
                                td_errinfo *info)
{
    TD_TRY(td_dataset_work_put_aside(work, info));
    td_log_text(TD_LOG_WARN, "dataset: an episode was not finished: %s", why);
    return TD_OK;
}

// The end was being written: the dataset has the episode, or shall have it, or
// has become another one in between.
static td_err finish_ended(td_dataset_work *work, const td_dataset_reel *reel,
                           td_dataset_finished *finished, td_errinfo *info)
{
    TD_AUTO(td_dataset_append) *append = NULL;
    td_err err = open_append(work, reel, &append, info);
    if (err == TD_ERR_MISMATCH) return put_aside(work, reel, info);
    if (err != TD_OK) return err;
    if (td_dataset_append_had(append, reel->number, reel->frames))
        return drop_journal(work, info);
    if (td_dataset_append_episodes(append) != reel->number)
        return put_aside(work, reel, info);
    TD_TRY(add(work, reel, append, info));
    finished->episode = reel->number;
    finished->frames = reel->frames;
    td_log_text(TD_LOG_INFO,
                "dataset: %s: episode %u, whose recorder died while it ended "
                "it, is finished: %u frames",
                work->folder.text, reel->number, reel->frames);
    return TD_OK;
}

td_err td_dataset_finish_ended(td_dataset_work *work,
                               td_dataset_finished *ret_finished,
                               td_errinfo *info)
{
    td_dataset_finished finished = {0};
    TD_AUTO(td_dataset_reel) *reel = NULL;
    td_errinfo why = {""};
    td_err err = TD_ERR_NOTFOUND;
    bool there = td_dataset_disk_is_there(work->episode.text);
    if (there) err = load(work, &reel, &why);
    if (err == TD_ERR_FORMAT || err == TD_ERR_NOTFOUND ||
        (err == TD_OK && reel->frames == 0)) {
        err = drop_journal(work, info);
        finished.dropped = there;
    } else if (err == TD_ERR_VERSION) {
        err = put_foreign_aside(work, why.text, info);
    } else if (err == TD_OK && reel->ended) {
        err = finish_ended(work, reel, &finished, info);
    } else if (err == TD_OK) {
        err = put_aside(work, reel, info);
    } else {
        (void)td_fail(info, err, "%s", why.text);
    }
    if (err == TD_OK) *ret_finished = finished;
    return err;
}

// Under the number that the dataset has next.
static td_err save(td_dataset_work *work, const td_dataset_reel *reel,
                   uint32_t *ret_episode, td_errinfo *info)
{
    TD_AUTO(td_dataset_append) *append = NULL;
    TD_TRY(open_append(work, reel, &append, info));
    uint32_t number = td_dataset_append_episodes(append);
    TD_TRY(td_dataset_journal_seal(work->episode.text, number, info));
    TD_TRY(add(work, reel, append, info));
    *ret_episode = number;
    return TD_OK;
}

td_err td_dataset_finish_unfinished(td_dataset_work *work,
                                    td_dataset_finished *ret_finished,
                                    td_errinfo *info)
{
    TD_AUTO(td_dataset_reel) *reel = NULL;
    td_dataset_finished finished = {0};
    TD_TRY(td_dataset_work_take_back(work, info));
    td_err err = load(work, &reel, info);
    if (err == TD_OK)
        err = reel->frames == 0 ? drop_journal(work, info)
                                : save(work, reel, &finished.episode, info);
    if (err == TD_ERR_MISMATCH || err == TD_ERR_VERSION)
        TD_TRY(td_dataset_work_put_aside(work, NULL));
    TD_TRY(err);
    finished.frames = reel->frames;
    finished.dropped = reel->frames == 0;
    *ret_finished = finished;
    return TD_OK;
}
