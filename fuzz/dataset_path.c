// SPDX-License-Identifier: Apache-2.0
// A template and a key, with a new line between them.
#include "dataset/meta/path.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Another way to say it: nowhere on the way is one above the folder.
static void check_inside(const char *path)
{
    if (path[0] == '/') abort();
    int depth = 0;
    char copy[TD_DATASET_MAX_PATH];
    memcpy(copy, path, strlen(path) + 1);
    char *rest = NULL;
    for (char *part = strtok_r(copy, "/", &rest); part;
         part = strtok_r(NULL, "/", &rest)) {
        if (strcmp(part, ".") == 0) continue;
        depth += strcmp(part, "..") == 0 ? -1 : 1;
        if (depth < 0) abort();
    }
    if (depth == 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096] = "";
    memcpy(text, data, size < sizeof text ? size : sizeof text - 1);
    char *key = strchr(text, '\n');
    if (key) *key++ = '\0';
    char path[TD_DATASET_MAX_PATH];
    td_errinfo info = {""};
    if (td_dataset_path_fill(text, key, 3, 4000000000u, path, &info)) {
        if (info.text[0] == '\0') abort();
        return 0;
    }
    check_inside(path);
    return 0;
}
