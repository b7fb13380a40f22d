// SPDX-License-Identifier: Apache-2.0
// An observation in pieces says what it says in one. The first byte is how long
// a piece is, in steps of 16 bytes; each lies in memory of its own.
#include "wire/outline.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PIECES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static td_wire_decoder *decoder;
static td_wire_outline outline;

static void *copied(const void *bytes, size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory) abort();
    return memcpy(memory, bytes, size);
}

static void compare(const td_wire_obs *got, const td_wire_obs *want)
{
    if (got->image_count != want->image_count) abort();
    for (uint32_t i = 0; i < want->image_count; i++) {
        const td_wire_image *image = &want->images[i];
        if (got->images[i].size != image->size) abort();
        void *bytes = copied(image->data, image->size);
        td_wire_image_copy(&got->images[i], 0, image->size, bytes);
        if (memcmp(bytes, image->data, image->size) != 0) abort();
        free(bytes);
    }
}

static void decode(const uint8_t *data, size_t size, size_t each)
{
    static td_slice pieces[MOST_PIECES];
    static void *memory[MOST_PIECES];
    size_t count = 0;
    for (size_t at = 0; at < size && count < MOST_PIECES; at += each) {
        size_t here = size - at < each ? size - at : each;
        if (count == MOST_PIECES - 1) here = size - at;
        memory[count] = copied(data + at, here);
        pieces[count] = (td_slice){memory[count], here};
        count++;
    }
    td_wire_obs whole, parts;
    td_errinfo whole_info = {""}, parts_info = {""};
    td_err err = td_wire_obs_decode(decoder, data, size, &whole, &whole_info);
    if (td_wire_obs_decode_pieces(decoder, &outline, pieces, count, &parts,
                                  &parts_info) != err ||
        strcmp(whole_info.text, parts_info.text) != 0)
        abort();
    if (err == TD_OK) compare(&parts, &whole);
    for (size_t i = 0; i < count; i++)
        free(memory[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!decoder && td_wire_decoder_new(&decoder) != TD_OK) abort();
    if (size > 1) decode(data + 1, size - 1, 16 * ((size_t)data[0] + 1));
    return 0;
}
