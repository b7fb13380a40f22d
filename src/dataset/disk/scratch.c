// SPDX-License-Identifier: Apache-2.0
#include "dataset/disk/scratch.h"

#include <stdlib.h>
#include <string.h>

struct td_dataset_piece {
    struct td_dataset_piece *next;
    _Alignas(max_align_t) char bytes[];
};

void *td_dataset_scratch_take(td_dataset_scratch *scratch, size_t count,
                              size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct td_dataset_piece), &bytes))
        return NULL;
    struct td_dataset_piece *piece = calloc(1, bytes);
    if (!piece) return NULL;
    piece->next = scratch->pieces;
    scratch->pieces = piece;
    return piece->bytes;
}

char *td_dataset_scratch_text(td_dataset_scratch *scratch, td_slice text)
{
    char *copy = td_dataset_scratch_take(scratch, text.size + 1, 1);
    if (copy && text.size > 0) memcpy(copy, text.data, text.size);
    return copy;
}

void td_dataset_scratch_done(td_dataset_scratch *scratch)
{
    while (scratch->pieces) {
        struct td_dataset_piece *piece = scratch->pieces;
        scratch->pieces = piece->next;
        free(piece);
    }
}
