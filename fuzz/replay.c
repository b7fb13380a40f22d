// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over every file of the given folders, so that what a
// fuzzer once found stays fixed in ordinary test runs.
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return -1;
    }
    struct stat about = {0};
    bool ok = fstat(fileno(in), &about) == 0;
    size_t size = (size_t)about.st_size;
    uint8_t *data = size ? malloc(size) : NULL;
    ok = ok && (!size || (data && fread(data, 1, size, in) == size));
    fclose(in);
    if (ok) LLVMFuzzerTestOneInput(data, size);
    free(data);
    return ok ? 0 : -1;
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
