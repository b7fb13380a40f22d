// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/suspects.h"

#include "wire/outline.h"

#include <string.h>

#define BLOCK_BYTES ((size_t)4096)
#define PRIME UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * PRIME;
    return hash ^ (hash >> 32);
}

// Eight bytes at a time: raw frames are megabytes.
static uint64_t mix_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t word;
    hash = mix(hash, size);
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    if (size > 0) memcpy(&word, bytes, size);
    return mix(hash, word);
}

static uint64_t mix_text(uint64_t hash, td_wire_text text)
{
    return mix_bytes(hash, text.data, text.size);
}

static uint64_t mix_tensor(uint64_t hash, const td_wire_tensor *tensor)
{
    hash = mix(hash, (uint64_t)tensor->dtype << 32 | tensor->rank);
    hash = mix_bytes(hash, tensor->shape, sizeof tensor->shape);
    return mix_bytes(hash, tensor->data, tensor->size);
}

// In blocks, so that it does not matter in which pieces it came.
static uint64_t mix_image(uint64_t hash, const td_wire_image *image)
{
    uint8_t block[BLOCK_BYTES];
    for (size_t at = 0; at < image->size; at += BLOCK_BYTES) {
        size_t left = image->size - at;
        size_t size = left < BLOCK_BYTES ? left : BLOCK_BYTES;
        td_wire_image_copy(image, at, size, block);
        hash = mix_bytes(hash, block, size);
    }
    return hash;
}

uint64_t td_engine_worker_suspects_hash(const td_wire_obs *obs)
{
    uint64_t hash = mix_tensor(PRIME, &obs->state);
    hash = mix_text(hash, obs->task);
    for (uint32_t i = 0; i < obs->image_count; i++) {
        hash = mix_text(hash, obs->images[i].name);
        hash = mix_image(hash, &obs->images[i]);
    }
    for (uint32_t i = 0; i < obs->tensor_count; i++) {
        hash = mix_text(hash, obs->tensors[i].name);
        hash = mix_tensor(hash, &obs->tensors[i].tensor);
    }
    for (uint32_t i = 0; i < obs->metadata_count; i++) {
        hash = mix_text(hash, obs->metadata[i].name);
        hash = mix_text(hash, obs->metadata[i].text);
    }
    return hash;
}

static size_t find(const td_engine_worker_suspects *suspects, uint64_t hash)
{
    for (size_t i = 0; i < TD_ENGINE_WORKER_SUSPECTS; i++)
        if (suspects->entries[i].seen && suspects->entries[i].hash == hash)
            return i;
    return TD_ENGINE_WORKER_SUSPECTS;
}

// A free one, or the one unseen for longest.
static size_t oldest(const td_engine_worker_suspects *suspects)
{
    size_t at = 0;
    for (size_t i = 1; i < TD_ENGINE_WORKER_SUSPECTS; i++)
        if (suspects->entries[i].seen < suspects->entries[at].seen) at = i;
    return at;
}

td_engine_worker_standing
td_engine_worker_suspects_find(td_engine_worker_suspects *suspects,
                               uint64_t hash)
{
    size_t at = find(suspects, hash);
    if (at == TD_ENGINE_WORKER_SUSPECTS) return TD_ENGINE_WORKER_INNOCENT;
    suspects->entries[at].seen = ++suspects->now;
    return suspects->entries[at].strikes > 1 ? TD_ENGINE_WORKER_GUILTY
                                             : TD_ENGINE_WORKER_SUSPECT;
}

void td_engine_worker_suspects_strike(td_engine_worker_suspects *suspects,
                                      uint64_t hash)
{
    size_t at = find(suspects, hash);
    if (at == TD_ENGINE_WORKER_SUSPECTS) {
        at = oldest(suspects);
        if (!suspects->entries[at].seen) suspects->count++;
        suspects->entries[at].hash = hash;
        suspects->entries[at].strikes = 0;
    }
    suspects->entries[at].seen = ++suspects->now;
    suspects->entries[at].strikes++;
}

void td_engine_worker_suspects_clear(td_engine_worker_suspects *suspects,
                                     uint64_t hash)
{
    size_t at = find(suspects, hash);
    if (at == TD_ENGINE_WORKER_SUSPECTS) return;
    suspects->entries[at].seen = 0;
    suspects->count--;
}
