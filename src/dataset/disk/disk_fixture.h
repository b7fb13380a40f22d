// SPDX-License-Identifier: Apache-2.0
#ifndef TD_DATASET_DISK_DISK_FIXTURE_H
#define TD_DATASET_DISK_DISK_FIXTURE_H

// A new folder for each test of a program, and small files in it.

#include "dataset/disk/disk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char home[] = "/tmp/td-dataset-XXXXXX";
static td_errinfo why;

static inline void ok(td_err err)
{
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), why.text);
}

static int make_home(void **state)
{
    (void)state;
    strcpy(strrchr(home, '-'), "-XXXXXX");
    return mkdtemp(home) ? 0 : -1;
}

static int remove_home(void **state)
{
    (void)state;
    return td_dataset_disk_remove(home, &why) == TD_OK ? 0 : -1;
}

static inline td_dataset_disk_path at_home(const char *name)
{
    td_dataset_disk_path path;
    ok(td_dataset_disk_join(home, name, &path, &why));
    return path;
}

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void assert_text(const char *path, const char *text)
{
    char line[64] = "";
    FILE *file = fopen(path, "re");
    if (!file) fail_msg("%s is not there", path);
    size_t size = fread(line, 1, sizeof line - 1, file);
    assert_int_equal(fclose(file), 0);
    line[size] = 0;
    assert_string_equal(line, text);
}

static inline ino_t inode_of(const char *path)
{
    struct stat found;
    assert_int_equal(lstat(path, &found), 0);
    return found.st_ino;
}

#endif
