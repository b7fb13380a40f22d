// SPDX-License-Identifier: Apache-2.0
#include "engine/native/ops/hashed.h"

#include <stdbool.h>
#include <string.h>

static uint64_t seed_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t bits_of(uint64_t seed, size_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void td_native_hashed_floats(const char *name, size_t count, float *ret_values)
{
    uint64_t seed = seed_of(name);
    for (size_t i = 0; i < count; i++) {
        int64_t whole = (int64_t)(bits_of(seed, i) >> 40) - (1 << 23);
        ret_values[i] = (float)whole / (1 << 23);
    }
}

void td_native_hashed_pixels(const char *name, size_t count,
                             uint8_t *ret_pixels)
{
    uint64_t seed = seed_of(name);
    for (size_t i = 0; i < count; i++)
        ret_pixels[i] = (uint8_t)(bits_of(seed, i) >> 56);
}

static int ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), least = strlen(end);
    return size >= least && strcmp(name + size - least, end) == 0;
}

// A power of two near the square root.
static float matrix_scale(uint64_t inputs)
{
    int bits = 0;
    while (inputs >> bits)
        bits++;
    return 1.0f / (float)(1u << (bits > 2 ? (bits - 2) / 2 : 0));
}

void td_native_hashed_weights(const char *name, uint32_t rank, uint64_t inputs,
                              size_t count, float *ret_values)
{
    float base = 0, scale = 1.0f / 8;
    if (ends_with(name, "running_var")) {
        base = 1;
        scale = 1.0f / 2;
    } else if (rank > 1) {
        scale = matrix_scale(inputs);
    } else if (ends_with(name, ".weight")) {
        bool added = strstr(name, "gemma") && !strstr(name, "vision") &&
                     ends_with(name, "norm.weight");
        base = added ? 0 : 1;
        scale = 1.0f / 4;
    }
    td_native_hashed_floats(name, count, ret_values);
    for (size_t i = 0; i < count; i++)
        ret_values[i] = base + ret_values[i] * scale;
}
