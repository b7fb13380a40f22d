// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/text.h"

#include <string.h>

const char *const td_wire_dtype_names[] = {"<f4", "<f8", "<f2", "bf16",
                                           "|u1", "|i1", "<i2", "<i4",
                                           "<i8", "|b1", NULL};
const char *const td_wire_codec_names[] = {"jpeg", "png", "raw", NULL};
const char *const td_wire_action_kind_names[] = {"chunk", "plan", "verdict",
                                                 NULL};
const char *const td_wire_channel_kind_names[] = {"linear", "angle",
                                                  "quaternion", "hold", NULL};
const char *const td_wire_server_state_names[] = {"warming", "ready",
                                                  "draining", "degraded", NULL};

td_wire_text td_wire_text_of(const char *text)
{
    return (td_wire_text){text, (uint32_t)strlen(text)};
}

bool td_wire_text_is(td_wire_text text, const char *other)
{
    return td_wire_text_same(text, td_wire_text_of(other));
}

bool td_wire_text_same(td_wire_text a, td_wire_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

size_t td_wire_dtype_bytes(td_wire_dtype dtype)
{
    static const uint8_t bytes[] = {
        [TD_WIRE_F32] = 4,  [TD_WIRE_F64] = 8, [TD_WIRE_F16] = 2,
        [TD_WIRE_BF16] = 2, [TD_WIRE_U8] = 1,  [TD_WIRE_I8] = 1,
        [TD_WIRE_I16] = 2,  [TD_WIRE_I32] = 4, [TD_WIRE_I64] = 8,
        [TD_WIRE_BOOL] = 1,
    };
    return bytes[dtype];
}

const char *td_wire_dtype_name(td_wire_dtype dtype)
{
    return td_wire_dtype_names[dtype];
}

const char *td_wire_channel_kind_name(td_wire_channel_kind kind)
{
    return td_wire_channel_kind_names[kind];
}

const char *td_wire_server_state_name(td_wire_server_state state)
{
    return td_wire_server_state_names[state];
}

static size_t ascii_run(const unsigned char *p, size_t size)
{
    size_t n = 0;
    for (uint64_t word; n + sizeof word <= size; n += sizeof word) {
        memcpy(&word, p + n, sizeof word);
        if (word & UINT64_C(0x8080808080808080)) break;
    }
    while (n < size && p[n] < 0x80)
        n++;
    return n;
}

// Bytes of the character that starts at `p`, which is not ASCII; 0 if it is cut
// short, longer than it need be, a surrogate or beyond U+10FFFF.
static size_t utf8_char(const unsigned char *p, size_t size)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max, bytes;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
        {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < TD_COUNT_OF(forms); i++) {
        if (p[0] < forms[i].first_min || p[0] > forms[i].first_max) continue;
        if (size < forms[i].bytes || p[1] < forms[i].second_min ||
            p[1] > forms[i].second_max)
            return 0;
        for (size_t k = 2; k < forms[i].bytes; k++)
            if ((p[k] & 0xc0) != 0x80) return 0;
        return forms[i].bytes;
    }
    return 0;
}

static bool is_utf8(td_wire_text text)
{
    const unsigned char *p = (const unsigned char *)text.data;
    for (size_t n = 0; n < text.size;) {
        n += ascii_run(p + n, text.size - n);
        if (n == text.size) break;
        size_t bytes = utf8_char(p + n, text.size - n);
        if (!bytes) return false;
        n += bytes;
    }
    return true;
}

// C0, DEL and (as UTF-8) C1.
static bool has_control(td_wire_text text)
{
    const unsigned char *p = (const unsigned char *)text.data;
    for (size_t n = 0; n < text.size; n++) {
        if (p[n] < 0x20 || p[n] == 0x7f) return true;
        if (p[n] == 0xc2 && n + 1 < text.size && p[n + 1] < 0xa0) return true;
    }
    return false;
}

td_err td_wire_text_check(const td_wire_at *at, td_wire_text text)
{
    if (text.size > TD_WIRE_MAX_TEXT)
        return td_wire_fail(at, TD_ERR_LIMIT, "text of %u bytes, limit %u",
                            text.size, TD_WIRE_MAX_TEXT);
    if (!is_utf8(text))
        return td_wire_fail(at, TD_ERR_FORMAT, "text is not valid UTF-8");
    return TD_OK;
}

td_err td_wire_text_check_name(const td_wire_at *at, td_wire_text name)
{
    if (name.size == 0)
        return td_wire_fail(at, TD_ERR_FORMAT, "a name is empty");
    if (name.size > TD_WIRE_MAX_NAME)
        return td_wire_fail(at, TD_ERR_LIMIT, "a name of %u bytes, limit %u",
                            name.size, TD_WIRE_MAX_NAME);
    if (!is_utf8(name) || has_control(name))
        return td_wire_fail(at, TD_ERR_FORMAT, "a name is not printable UTF-8");
    return TD_OK;
}
