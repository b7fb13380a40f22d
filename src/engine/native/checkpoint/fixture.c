// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_PATH 1024
#define MAX_BYTES (1 << 20)

// The test ends here when this is NULL.
static void *need(void *thing, const char *what)
{
    if (!thing) {
        fail_msg("%s", what);
        abort();
    }
    return thing;
}

static void link_others(const char *kind, const char *file, const char *into)
{
    char folder[MAX_PATH];
    (void)snprintf(folder, sizeof folder, TD_NATIVE_GOLDEN "%s", kind);
    DIR *entries = need(opendir(folder), folder);
    for (struct dirent *entry; (entry = readdir(entries));) {
        char from[2 * MAX_PATH], to[2 * MAX_PATH];
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, file) == 0)
            continue;
        (void)snprintf(from, sizeof from, "%s/%s", folder, entry->d_name);
        (void)snprintf(to, sizeof to, "%s/%s", into, entry->d_name);
        assert_int_equal(symlink(from, to), 0);
    }
    (void)closedir(entries);
}

static void make_folder(const char *kind, const char *file,
                        td_native_fixture *ret_fixture)
{
    const char *parent = getenv("TMPDIR");
    (void)snprintf(ret_fixture->path, sizeof ret_fixture->path,
                   "%s/tendon-checkpoint-XXXXXX", parent ? parent : "/tmp");
    (void)need(mkdtemp(ret_fixture->path), ret_fixture->path);
    link_others(kind, file, ret_fixture->path);
}

static FILE *open_file(const char *folder, const char *file, const char *mode)
{
    char path[2 * MAX_PATH];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    return need(fopen(path, mode), path);
}

void td_native_fixture_write(const char *kind, const char *file, td_slice bytes,
                             td_native_fixture *ret_fixture)
{
    make_folder(kind, file, ret_fixture);
    FILE *out = open_file(ret_fixture->path, file, "wbe");
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, out), bytes.size);
    assert_int_equal(fclose(out), 0);
}

static char *read_file(const char *kind, const char *file)
{
    char folder[MAX_PATH];
    (void)snprintf(folder, sizeof folder, TD_NATIVE_GOLDEN "%s", kind);
    FILE *in = open_file(folder, file, "rbe");
    char *text = need(calloc(1, MAX_BYTES), "memory");
    assert_in_range(fread(text, 1, MAX_BYTES - 1, in), 1, MAX_BYTES - 2);
    (void)fclose(in);
    return text;
}

void td_native_fixture_copy(const char *kind, const char *file,
                            const char *from, const char *to,
                            td_native_fixture *ret_fixture)
{
    make_folder(kind, file, ret_fixture);
    if (!from) return;
    char *text = read_file(kind, file);
    char *at = need(strstr(text, from), from);
    FILE *out = open_file(ret_fixture->path, file, "wbe");
    (void)fprintf(out, "%.*s%s%s", (int)(at - text), text, to,
                  at + strlen(from));
    assert_int_equal(fclose(out), 0);
    free(text);
}

void td_native_fixture_remove(const td_native_fixture *fixture)
{
    DIR *entries = need(opendir(fixture->path), fixture->path);
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[2 * MAX_PATH];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof path, "%s/%s", fixture->path,
                       entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(entries);
    assert_int_equal(rmdir(fixture->path), 0);
}
