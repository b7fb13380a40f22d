// SPDX-License-Identifier: Apache-2.0
#include "engine/native/golden.h"

#include "engine/native/ops/hashed.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define KEPT TD_SOURCE_DIR "/tests/golden"
#define HEADER ".header"

// The whole of a file. Owned: free().
static void *read_file(const char *path, size_t *ret_size)
{
    struct stat seen;
    FILE *file = fopen(path, "rbe");
    if (!file) abort();
    assert_int_equal(fstat(fileno(file), &seen), 0);
    size_t size = (size_t)seen.st_size;
    char *data = malloc(size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, size, file), size);
    (void)fclose(file);
    data[size] = '\0';
    *ret_size = size;
    return data;
}

static void write_file(const char *path, const char *data, size_t size)
{
    FILE *file = fopen(path, "wbe");
    if (!file) abort();
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t end_of(const json_t *tensor)
{
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    return (size_t)json_integer_value(json_array_get(offsets, 1));
}

// Rounded to the nearest, as PyTorch does.
static uint16_t brain_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void store(const char *dtype, const float *values, size_t count,
                  char *to)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(dtype, "BF16") == 0)
            memcpy(to + 2 * i, &(uint16_t){brain_of(values[i])}, 2);
        else if (strcmp(dtype, "F16") == 0)
            memcpy(to + 2 * i, &(_Float16){(_Float16)values[i]}, 2);
        else
            memcpy(to + 4 * i, &values[i], 4);
}

static void fill(const char *name, const json_t *tensor, char *data)
{
    const json_t *shape = json_object_get(tensor, "shape");
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
    size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
    size_t bytes = strstr(dtype, "16") ? 2 : 4;
    size_t count = (end_of(tensor) - begin) / bytes;
    size_t rank = json_array_size(shape);
    float *values = malloc((count + 1) * sizeof *values);
    uint64_t first =
        rank ? (uint64_t)json_integer_value(json_array_get(shape, 0)) : 1;
    assert_non_null(values);
    td_native_hashed_weights(name, (uint32_t)rank, count / first, count,
                             values);
    store(dtype, values, count, data + begin);
    free(values);
}

// The header as LeRobot wrote it, and the tensors that it speaks of.
static void write_weights(const char *path, const char *header, size_t size)
{
    const char *name;
    json_t *tensor;
    size_t bytes = 0;
    json_t *tensors = json_loadb(header + 8, size - 8, 0, NULL);
    assert_non_null(tensors);
    json_object_foreach(tensors, name, tensor) if (end_of(tensor) > bytes)
        bytes = end_of(tensor);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)(size + bytes)), 0);
    char *data =
        mmap(NULL, size + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(data != MAP_FAILED);
    memcpy(data, header, size);
    json_object_foreach(tensors, name,
                        tensor) if (json_object_get(tensor, "dtype"))
        fill(name, tensor, data + size);
    assert_int_equal(munmap(data, size + bytes), 0);
    assert_int_equal(close(fd), 0);
    json_decref(tensors);
}

static void copy_one(const td_native_golden *golden, const char *file)
{
    char from[512], to[512];
    size_t size = 0;
    (void)snprintf(from, sizeof from, KEPT "/%s/%s/%s", golden->room,
                   golden->name, file);
    char *data = read_file(from, &size);
    const char *header = strstr(file, HEADER);
    bool weights = header != NULL;
    (void)snprintf(to, sizeof to, "%s/%.*s%s", golden->folder,
                   (int)(header ? (size_t)(header - file) : strlen(file)), file,
                   weights ? ".safetensors" : "");
    if (weights)
        write_weights(to, data, size);
    else
        write_file(to, data, size);
    free(data);
}

void td_native_golden_make(const char *room, const char *name,
                           td_native_golden *ret_golden)
{
    char path[512];
    td_native_golden golden = {.room = room, .name = name};
    (void)snprintf(golden.folder, sizeof golden.folder, "%s/tendon-act-XXXXXX",
                   getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(golden.folder));
    (void)snprintf(path, sizeof path, KEPT "/%s/%s", room, name);
    DIR *kept = opendir(path);
    if (!kept) abort();
    for (const struct dirent *at; (at = readdir(kept));)
        if (at->d_name[0] != '.' && strcmp(at->d_name, "expected.f32") != 0 &&
            strcmp(at->d_name, "asked.json") != 0)
            copy_one(&golden, at->d_name);
    (void)closedir(kept);
    *ret_golden = golden;
}

void td_native_golden_remove(const td_native_golden *golden)
{
    DIR *folder = opendir(golden->folder);
    int fd = folder ? dirfd(folder) : -1;
    if (fd < 0) abort();
    for (const struct dirent *at; (at = readdir(folder));)
        if (at->d_name[0] != '.')
            assert_int_equal(unlinkat(fd, at->d_name, 0), 0);
    (void)closedir(folder);
    assert_int_equal(rmdir(golden->folder), 0);
}

float *td_native_golden_expected(const td_native_golden *golden, size_t count)
{
    char path[512];
    size_t size = 0;
    (void)snprintf(path, sizeof path, KEPT "/%s/%s/expected.f32", golden->room,
                   golden->name);
    float *data = read_file(path, &size);
    assert_int_equal(size, count * sizeof(float));
    return data;
}
