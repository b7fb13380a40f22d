// SPDX-License-Identifier: Apache-2.0
// A safetensors file, mapped: eight bytes of length, a header in JSON, the
// data.
//
// Nothing of the header is believed before it is checked: its length against
// the file, each dtype and shape against the bytes that the tensor claims, and
// that all of them, in the order of their offsets, cover the data without a
// hole or an overlap. After that a tensor is a pointer into the map, aligned to
// its elements, and reading it cannot fail.
//
// Tensors are kept in the order of their names and found by halving. The JSON
// stays, because it holds the names. Close unmaps the file: no tensor of it may
// be used after that.
#include "engine/native/checkpoint/safetensors.h"

#include "base/json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH_BYTES 8
#define METADATA "__metadata__"

struct td_native_safetensors {
    char *path;
    void *map; // NULL: the bytes are somebody else's
    size_t map_bytes;
    json_t *header; // holds the names
    size_t count;
    td_native_tensor *tensors; // in order of their names
};

static td_err read_dtype(const td_json_at *at, td_native_dtype *ret_dtype,
                         td_errinfo *info)
{
    const char *name = NULL;
    TD_TRY(td_json_read_text(at, "dtype", &name, info));
    td_native_dtype dtype = td_native_dtype_find(name);
    if (dtype == TD_NATIVE_DTYPE_COUNT)
        return td_json_read_fail(at, "dtype", info, TD_ERR_UNSUPPORTED,
                                 "is %.32s, which is not known here", name);
    *ret_dtype = dtype;
    return TD_OK;
}

static bool is_size(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static td_err read_shape(const td_json_at *at, td_native_tensor *tensor,
                         td_errinfo *info)
{
    json_t *shape = NULL;
    TD_TRY(td_json_read_array(at, "shape", &shape, info));
    if (json_array_size(shape) > TD_NATIVE_MAX_RANK)
        return td_json_read_fail(at, "shape", info, TD_ERR_LIMIT,
                                 "has %zu sides, at most %d",
                                 json_array_size(shape), TD_NATIVE_MAX_RANK);
    tensor->rank = (uint32_t)json_array_size(shape);
    tensor->count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        json_t *side = json_array_get(shape, i);
        if (!is_size(side))
            return td_json_read_fail(at, "shape", info, TD_ERR_FORMAT,
                                     "must be whole numbers from 0 on");
        tensor->shape[i] = (uint64_t)json_integer_value(side);
        if (__builtin_mul_overflow(tensor->count, tensor->shape[i],
                                   &tensor->count))
            return td_json_read_fail(at, "shape", info, TD_ERR_LIMIT,
                                     "is beyond all memory");
    }
    return TD_OK;
}

// Where its bytes lie in the data: two offsets that fit its shape.
static td_err read_place(const td_json_at *at, td_slice data,
                         td_native_tensor *tensor, td_errinfo *info)
{
    json_t *offsets = NULL;
    TD_TRY(td_json_read_array(at, "data_offsets", &offsets, info));
    json_t *first = json_array_get(offsets, 0);
    json_t *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !is_size(first) || !is_size(last))
        return td_json_read_fail(at, "data_offsets", info, TD_ERR_FORMAT,
                                 "must be two whole numbers from 0 on");
    uint64_t begin = (uint64_t)json_integer_value(first);
    uint64_t end = (uint64_t)json_integer_value(last), bytes = 0;
    if (begin > end || end > data.size)
        return td_json_read_fail(at, "data_offsets", info, TD_ERR_FORMAT,
                                 "%llu to %llu lie outside the %zu bytes of "
                                 "data",
                                 (unsigned long long)begin,
                                 (unsigned long long)end, data.size);
    size_t each = td_native_dtype_bytes(tensor->dtype);
    if (__builtin_mul_overflow(tensor->count, each, &bytes) ||
        bytes != end - begin)
        return td_json_read_fail(at, "data_offsets", info, TD_ERR_FORMAT,
                                 "hold %llu bytes, which are not those of "
                                 "its shape",
                                 (unsigned long long)(end - begin));
    tensor->bytes = bytes;
    tensor->data = (const uint8_t *)data.data + begin;
    if ((uintptr_t)tensor->data % each != 0)
        return td_json_read_fail(at, "data_offsets", info, TD_ERR_UNSUPPORTED,
                                 "are not aligned to %s; save it again with "
                                 "today's safetensors",
                                 td_native_dtype_name(tensor->dtype));
    return TD_OK;
}

static td_err read_tensor(const char *file, const char *name, json_t *about,
                          td_slice data, td_native_tensor *ret_tensor,
                          td_errinfo *info)
{
    char where[200];
    (void)snprintf(where, sizeof where, "%s: ", name);
    const td_json_at at = {file, where, about};
    if (!json_is_object(about) || json_object_size(about) != 3)
        return td_fail(info, TD_ERR_FORMAT,
                       "%s: %s: must have dtype, shape and data_offsets", file,
                       name);
    td_native_tensor tensor = {.name = name};
    TD_TRY(read_dtype(&at, &tensor.dtype, info));
    TD_TRY(read_shape(&at, &tensor, info));
    TD_TRY(read_place(&at, data, &tensor, info));
    *ret_tensor = tensor;
    return TD_OK;
}

static int by_place(const void *one, const void *other)
{
    const td_native_tensor *a = one, *b = other;
    uintptr_t at = (uintptr_t)a->data, from = (uintptr_t)b->data;
    if (at != from) return at < from ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static int by_name(const void *one, const void *other)
{
    const td_native_tensor *a = one, *b = other;
    return strcmp(a->name, b->name);
}

// Byte after byte belongs to exactly one tensor.
static td_err check_cover(td_native_safetensors *file, td_slice data,
                          td_errinfo *info)
{
    qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    const uint8_t *next = data.data;
    for (size_t i = 0; i < file->count; i++) {
        const td_native_tensor *tensor = &file->tensors[i];
        if (tensor->data != next)
            return td_fail(info, TD_ERR_FORMAT, "%s: %s: %s", file->path,
                           tensor->name,
                           (const uint8_t *)tensor->data < next
                               ? "its data overlap another tensor's"
                               : "a hole is before its data");
        next += tensor->bytes;
    }
    size_t left = data.size - (size_t)(next - (const uint8_t *)data.data);
    if (left > 0)
        return td_fail(info, TD_ERR_FORMAT,
                       "%s: %zu bytes at its end belong to no tensor",
                       file->path, left);
    return TD_OK;
}

static td_err read_tensors(td_native_safetensors *file, td_slice data,
                           td_errinfo *info)
{
    size_t most = json_object_size(file->header);
    file->tensors = calloc(most ? most : 1, sizeof *file->tensors);
    if (!file->tensors)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", file->path);
    const char *name = NULL;
    json_t *about = NULL;
    json_object_foreach(file->header, name, about)
    {
        if (strcmp(name, METADATA) == 0) continue;
        TD_TRY(read_tensor(file->path, name, about, data,
                           &file->tensors[file->count], info));
        file->count++;
    }
    TD_TRY(check_cover(file, data, info));
    qsort(file->tensors, file->count, sizeof *file->tensors, by_name);
    return TD_OK;
}

static uint64_t length_of(const uint8_t *bytes)
{
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    return length;
}

static td_err parse(td_native_safetensors *file, td_slice bytes,
                    td_errinfo *info)
{
    if (bytes.size < LENGTH_BYTES)
        return td_fail(info, TD_ERR_FORMAT, "%s: is cut short", file->path);
    const uint8_t *begin = bytes.data;
    uint64_t length = length_of(begin);
    if (length > TD_NATIVE_MAX_HEADER_BYTES)
        return td_fail(info, TD_ERR_LIMIT,
                       "%s: its header has %llu bytes, at most %u", file->path,
                       (unsigned long long)length, TD_NATIVE_MAX_HEADER_BYTES);
    if (length > bytes.size - LENGTH_BYTES)
        return td_fail(info, TD_ERR_FORMAT,
                       "%s: is cut short: its header has %llu bytes, the file "
                       "%zu",
                       file->path, (unsigned long long)length, bytes.size);
    const td_slice header = {begin + LENGTH_BYTES, (size_t)length};
    const td_slice data = {begin + LENGTH_BYTES + length,
                           bytes.size - LENGTH_BYTES - (size_t)length};
    TD_TRY(td_json_read_bytes(header, TD_NATIVE_MAX_HEADER_BYTES, file->path,
                              &file->header, info));
    return read_tensors(file, data, info);
}

static td_err new_file(const char *path, td_native_safetensors **ret_file,
                       td_errinfo *info)
{
    TD_AUTO(td_native_safetensors) *file = calloc(1, sizeof *file);
    if (file) file->path = strdup(path);
    if (!file || !file->path)
        return td_fail(info, TD_ERR_NOMEM, "%s: out of memory", path);
    *ret_file = TD_TAKE(file);
    return TD_OK;
}

td_err td_native_safetensors_parse(td_slice bytes, const char *name,
                                   td_native_safetensors **ret_file,
                                   td_errinfo *info)
{
    TD_AUTO(td_native_safetensors) *file = NULL;
    TD_TRY(new_file(name, &file, info));
    TD_TRY(parse(file, bytes, info));
    *ret_file = TD_TAKE(file);
    return TD_OK;
}

static td_err map(td_native_safetensors *file, int fd, td_errinfo *info)
{
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return td_fail(info, TD_ERR_IO, "%s: is no file", file->path);
    if (about.st_size < LENGTH_BYTES)
        return td_fail(info, TD_ERR_FORMAT, "%s: is cut short", file->path);
    void *bytes =
        mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return td_fail(info, TD_ERR_IO, "%s: cannot be mapped: %s", file->path,
                       strerror(errno));
    file->map = bytes;
    file->map_bytes = (size_t)about.st_size;
    return TD_OK;
}

td_err td_native_safetensors_open(const char *path,
                                  td_native_safetensors **ret_file,
                                  td_errinfo *info)
{
    TD_AUTO(td_native_safetensors) *file = NULL;
    TD_TRY(new_file(path, &file, info));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return td_fail(info, errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO,
                       "%s: %s", path, strerror(errno));
    td_err err = map(file, fd, info);
    (void)close(fd);
    if (err != TD_OK) return err;
    TD_TRY(parse(file, (td_slice){file->map, file->map_bytes}, info));
    *ret_file = TD_TAKE(file);
    return TD_OK;
}

void td_native_safetensors_close(td_native_safetensors *file)
{
    if (file->map) (void)munmap(file->map, file->map_bytes);
    json_decref(file->header);
    free(file->tensors);
    free(file->path);
    free(file);
}

const td_native_tensor *
td_native_safetensors_find(const td_native_safetensors *file, const char *name)
{
    const td_native_tensor wanted = {.name = name};
    return bsearch(&wanted, file->tensors, file->count, sizeof *file->tensors,
                   by_name);
}

const td_native_tensor *
td_native_safetensors_all(const td_native_safetensors *file, size_t *ret_count)
{
    *ret_count = file->count;
    return file->tensors;
}
