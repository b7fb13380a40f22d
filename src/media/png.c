// SPDX-License-Identifier: Apache-2.0
#include "media/png.h"

#include "media/size.h"

#include <png.h>
#include <string.h>

// Signature, length and name of the first chunk, and what of it is read here.
#define NAME_AT 12
#define WIDTH_AT 16
#define HEIGHT_AT 20
#define DEPTH_AT 24
#define HEADER_BYTES 33

typedef struct input {
    td_slice rest;
    td_errinfo *info;
} input;

static td_err not_a_png(td_errinfo *info, const char *why)
{
    return td_fail(info, TD_ERR_FORMAT, "not a PNG: %s", why);
}

td_err td_media_png_size(td_slice png, uint32_t *ret_height,
                         uint32_t *ret_width, td_errinfo *info)
{
    static const uint8_t start[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";
    const uint8_t *bytes = png.data;
    if (png.size < HEADER_BYTES) return not_a_png(info, "no header in it");
    if (memcmp(bytes, start, NAME_AT + 4) != 0)
        return not_a_png(info, "it begins otherwise");
    uint32_t height = png_get_uint_32(bytes + HEIGHT_AT);
    uint32_t width = png_get_uint_32(bytes + WIDTH_AT);
    TD_TRY(td_media_size_check(height, width, info));
    if (bytes[DEPTH_AT] > 8)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "a PNG of %u bits a channel, at most 8 are taken",
                       bytes[DEPTH_AT]);
    *ret_height = height;
    *ret_width = width;
    return TD_OK;
}

static void on_error(png_structp reader, png_const_charp text)
{
    const input *from = png_get_error_ptr(reader);
    (void)!td_fail(from->info, TD_ERR_FORMAT, "a damaged PNG: %s", text);
    png_longjmp(reader, 1);
}

static void on_warning(png_structp reader, png_const_charp text)
{
    (void)reader;
    (void)text;
}

static void on_read(png_structp reader, png_bytep ret_bytes, size_t size)
{
    input *from = png_get_io_ptr(reader);
    if (size > from->rest.size) png_error(reader, "cut short");
    memcpy(ret_bytes, from->rest.data, size);
    from->rest.data = (const uint8_t *)from->rest.data + size;
    from->rest.size -= size;
}

// What could be had from chunks that do not matter is not even unpacked, and
// what the library would forgive ends the decoding.
static void be_strict(png_structp reader)
{
    png_set_keep_unknown_chunks(reader, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(reader, PNG_HANDLE_CHUNK_NEVER,
                                (png_const_bytep) "tRNS", 1);
    png_set_benign_errors(reader, 0);
    png_set_user_limits(reader, TD_MEDIA_MAX_SIDE, TD_MEDIA_MAX_SIDE);
}

static void want_rgb(png_structp reader)
{
    png_set_palette_to_rgb(reader);
    png_set_expand_gray_1_2_4_to_8(reader);
    png_set_gray_to_rgb(reader);
    png_set_strip_alpha(reader);
}

// Straight into the caller's rows; what is interlaced comes in seven passes.
static void read_picture(png_structp reader, png_infop about, uint32_t height,
                         uint32_t width, uint8_t *ret_rgb)
{
    png_read_info(reader, about);
    want_rgb(reader);
    int passes = png_set_interlace_handling(reader);
    png_read_update_info(reader, about);
    size_t row_bytes = (size_t)width * 3;
    if (png_get_rowbytes(reader, about) != row_bytes)
        png_error(reader, "no way from its pixels to RGB");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < height; y++)
            png_read_row(reader, ret_rgb + y * row_bytes, NULL);
    png_read_end(reader, NULL);
}

// Of its own, so that no local is between setjmp and what it comes back from.
static td_err read_guarded(png_structp reader, png_infop about, uint32_t height,
                           uint32_t width, uint8_t *ret_rgb)
{
    if (setjmp(png_jmpbuf(reader))) return TD_ERR_FORMAT;
    be_strict(reader);
    read_picture(reader, about, height, width, ret_rgb);
    return TD_OK;
}

static td_err decode(td_slice png, uint32_t height, uint32_t width,
                     uint8_t *ret_rgb, td_errinfo *info)
{
    input from = {png, info};
    png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, &from,
                                                on_error, on_warning);
    if (!reader) return TD_ERR_NOMEM;
    td_err err = TD_ERR_NOMEM;
    png_infop about = png_create_info_struct(reader);
    if (about) {
        png_set_read_fn(reader, &from, on_read);
        err = read_guarded(reader, about, height, width, ret_rgb);
    }
    png_destroy_read_struct(&reader, &about, NULL);
    return err;
}

td_err td_media_png_decode(td_slice png, uint32_t height, uint32_t width,
                           uint8_t *ret_rgb, td_errinfo *info)
{
    uint32_t real_height = 0, real_width = 0;
    TD_TRY(td_media_png_size(png, &real_height, &real_width, info));
    if (real_height != height || real_width != width)
        return td_fail(info, TD_ERR_MISMATCH,
                       "a PNG of %u x %u where %u x %u was expected",
                       real_height, real_width, height, width);
    return decode(png, height, width, ret_rgb, info);
}
