// SPDX-License-Identifier: Apache-2.0
#include "dataset/disk/staging.h"

#include "dataset/disk/sync_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static td_dataset_staging *open_work(const char *folder)
{
    td_dataset_staging *staging = NULL;
    ok(td_dataset_staging_open(folder, &staging, &why));
    return staging;
}

static void write_next(td_dataset_staging *staging, const char *name,
                       const char *text)
{
    td_dataset_disk_path path;
    ok(td_dataset_staging_file(staging, name, &path, &why));
    write_text(path.text, text);
}

static void commit_one(td_dataset_staging *staging, const char *name,
                       const char *text)
{
    ok(td_dataset_staging_begin(staging, &why));
    write_next(staging, name, text);
    ok(td_dataset_staging_commit(staging, &why));
}

static void the_first_commit_makes_the_folder(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("above/arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    assert_false(td_dataset_disk_exists(folder.text));
    commit_one(staging, "meta/info.json", "1");
    assert_text(at_home("above/arm/meta/info.json").text, "1");
}

static void a_commit_changes_what_was_written_and_keeps_the_rest(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    commit_one(staging, "data/chunk-000/file-000.parquet", "rows");
    ino_t kept = inode_of(at_home("arm/data/chunk-000/file-000.parquet").text);
    commit_one(staging, "meta/info.json", "2");
    assert_text(at_home("arm/meta/info.json").text, "2");
    assert_text(at_home("arm/data/chunk-000/file-000.parquet").text, "rows");
    assert_int_equal(
        inode_of(at_home("arm/data/chunk-000/file-000.parquet").text), kept);
}

static void nothing_changes_before_the_swap(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    ok(td_dataset_staging_begin(staging, &why));
    write_next(staging, "meta/info.json", "2");
    write_next(staging, "data/new", "rows");
    assert_text(at_home("arm/meta/info.json").text, "1");
    assert_false(td_dataset_disk_exists(at_home("arm/data").text));
}

static void what_a_crash_left_of_the_next_one_is_rubbish(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    ok(td_dataset_staging_begin(staging, &why));
    write_next(staging, "data/half", "ro");
    commit_one(staging, "meta/info.json", "2");
    assert_false(td_dataset_disk_exists(at_home("arm/data/half").text));
}

static void links_and_strange_files_come_along(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    commit_one(staging, "README.md", "mine");
    assert_int_equal(symlink("../../elsewhere", at_home("arm/link").text), 0);
    commit_one(staging, "meta/info.json", "2");
    char target[64] = "";
    assert_true(readlink(at_home("arm/link").text, target, sizeof target - 1) >
                0);
    assert_string_equal(target, "../../elsewhere");
    assert_text(at_home("arm/README.md").text, "mine");
}

static mode_t mode_of(const char *path)
{
    struct stat found;
    assert_int_equal(stat(path, &found), 0);
    return found.st_mode & 07777;
}

static void a_folder_of_a_group_stays_one(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    assert_int_equal(chmod(folder.text, 02775), 0);
    assert_int_equal(chmod(at_home("arm/meta").text, 0770), 0);
    commit_one(staging, "meta/info.json", "2");
    assert_int_equal(mode_of(folder.text), 02775);
    assert_int_equal(mode_of(at_home("arm/meta").text), 0770);
}

// What is written through it could not be taken back.
static void
a_link_to_a_folder_is_refused_before_anything_is_recorded(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    td_dataset_staging *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    td_dataset_staging_close(staging);
    assert_int_equal(mkdir(at_home("elsewhere").text, 0755), 0);
    assert_int_equal(symlink("../elsewhere", at_home("arm/data").text), 0);
    assert_int_equal(td_dataset_staging_open(folder.text, &staging, &why),
                     TD_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "arm/data: a link to a folder"));
    assert_false(td_dataset_disk_exists(at_home(".arm.recording").text));
    assert_text(at_home("arm/meta/info.json").text, "1");
}

static void folders_that_are_made_are_on_the_disk(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("above/high/arm");
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    assert_true(is_synced(home, 0));
    assert_true(is_synced(at_home("above").text, 0));
    assert_true(is_synced(at_home("above/high").text, 0));
}

static void an_empty_folder_is_filled(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    assert_int_equal(mkdir(folder.text, 0755), 0);
    TD_AUTO(td_dataset_staging) *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    assert_text(at_home("arm/meta/info.json").text, "1");
}

static void the_second_recorder_is_refused_by_name_of_the_first(void **state)
{
    (void)state;
    char pid[32];
    td_dataset_staging *second = NULL;
    td_dataset_disk_path folder = at_home("arm");
    td_dataset_staging *first = open_work(folder.text);
    assert_int_equal(td_dataset_staging_open(folder.text, &second, &why),
                     TD_ERR_BUSY);
    (void)snprintf(pid, sizeof pid, "process %ld ", (long)getpid());
    assert_non_null(strstr(why.text, pid));
    assert_int_equal(td_dataset_staging_recorder(folder.text), getpid());
    td_dataset_staging_close(first);
    assert_int_equal(td_dataset_staging_recorder(folder.text), 0);
    td_dataset_staging_close(open_work(folder.text));
}

// What is unfinished keeps the lock's file.
static void a_child_process_does_not_keep_the_folder(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    td_dataset_staging *staging = open_work(folder.text);
    ok(td_dataset_disk_make_folder(staging->episode.text, &why));
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    td_dataset_staging_close(staging);
    td_err err = td_dataset_staging_open(folder.text, &staging, &why);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    ok(err);
    td_dataset_staging_close(staging);
}

static void a_lock_that_is_a_pipe_is_nobodys(void **state)
{
    (void)state;
    assert_int_equal(mkdir(at_home(".arm.recording").text, 0755), 0);
    assert_int_equal(mkfifo(at_home(".arm.recording/lock").text, 0600), 0);
    assert_int_equal(td_dataset_staging_recorder(at_home("arm").text), 0);
}

static void two_names_of_one_folder_are_one_folder(void **state)
{
    (void)state;
    td_dataset_staging *second = NULL;
    td_dataset_disk_path folder = at_home("arm");
    TD_AUTO(td_dataset_staging) *first = open_work(folder.text);
    commit_one(first, "meta/info.json", "1");
    assert_int_equal(symlink("arm", at_home("alias").text), 0);
    assert_int_equal(
        td_dataset_staging_open(at_home("alias").text, &second, &why),
        TD_ERR_BUSY);
    assert_int_equal(
        td_dataset_staging_open(at_home("./arm/").text, &second, &why),
        TD_ERR_BUSY);
}

static void nothing_is_left_beside_a_dataset_that_is_whole(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    td_dataset_staging *staging = open_work(folder.text);
    commit_one(staging, "meta/info.json", "1");
    assert_true(td_dataset_disk_exists(at_home(".arm.recording").text));
    td_dataset_staging_close(staging);
    assert_false(td_dataset_disk_exists(at_home(".arm.recording").text));
}

static void journals_put_aside_come_back_oldest_first(void **state)
{
    (void)state;
    td_dataset_disk_path folder = at_home("arm");
    td_dataset_staging *staging = open_work(folder.text);
    for (int i = 0; i < 2; i++) {
        ok(td_dataset_disk_make_folder(staging->episode.text, &why));
        write_text(at_home(".arm.recording/episode/rows").text, i ? "2" : "1");
        ok(td_dataset_staging_put_aside(staging, &why));
    }
    td_dataset_staging_close(staging);
    assert_int_equal(td_dataset_staging_unfinished(folder.text), 2);

    staging = open_work(folder.text);
    ok(td_dataset_staging_take_back(staging, &why));
    assert_text(at_home(".arm.recording/episode/rows").text, "1");
    ok(td_dataset_disk_remove(staging->episode.text, &why));
    ok(td_dataset_staging_take_back(staging, &why));
    assert_text(at_home(".arm.recording/episode/rows").text, "2");
    ok(td_dataset_disk_remove(staging->episode.text, &why));
    assert_int_equal(td_dataset_staging_take_back(staging, &why), TD_ERR_EMPTY);
    td_dataset_staging_close(staging);
    assert_false(td_dataset_disk_exists(at_home(".arm.recording").text));
}

static void a_file_is_no_folder_to_record_into(void **state)
{
    (void)state;
    td_dataset_staging *staging = NULL;
    write_text(at_home("arm").text, "");
    assert_int_equal(
        td_dataset_staging_open(at_home("arm").text, &staging, &why),
        TD_ERR_INVALID);
    assert_false(td_dataset_disk_exists(at_home(".arm.recording").text));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_home, remove_home)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_commit_makes_the_folder),
        TEST(a_commit_changes_what_was_written_and_keeps_the_rest),
        TEST(nothing_changes_before_the_swap),
        TEST(what_a_crash_left_of_the_next_one_is_rubbish),
        TEST(links_and_strange_files_come_along),
        TEST(a_folder_of_a_group_stays_one),
        TEST(a_link_to_a_folder_is_refused_before_anything_is_recorded),
        TEST(folders_that_are_made_are_on_the_disk),
        TEST(an_empty_folder_is_filled),
        TEST(the_second_recorder_is_refused_by_name_of_the_first),
        TEST(a_child_process_does_not_keep_the_folder),
        TEST(a_lock_that_is_a_pipe_is_nobodys),
        TEST(two_names_of_one_folder_are_one_folder),
        TEST(nothing_is_left_beside_a_dataset_that_is_whole),
        TEST(journals_put_aside_come_back_oldest_first),
        TEST(a_file_is_no_folder_to_record_into),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
