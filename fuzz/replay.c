// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over every file of the given folders, so that what a
// fuzzer once found stays fixed in ordinary test runs.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return -1;
    }
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    uint8_t *data = size > 0 ? malloc((size_t)size) : NULL;
    size_t got = data ? fread(data, 1, (size_t)size, in) : 0;
    fclose(in);
    LLVMFuzzerTestOneInput(data, got);
    free(data);
    return 0;
}

// How many files there were; negative if one could not be read.
static int replay_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    if (!entries) {
        perror(folder);
        return -1;
    }
    int count = 0;
    for (struct dirent *entry; count >= 0 && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count = replay_file(path) < 0 ? -1 : count + 1;
    }
    closedir(entries);
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count == 0) fprintf(stderr, "%s: no seeds\n", argv[i]);
        if (count <= 0) return EXIT_FAILURE;
        printf("%s: %d seeds\n", argv[i], count);
    }
    return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
