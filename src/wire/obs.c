// SPDX-License-Identifier: Apache-2.0
#include "base/slice.h"
#include "wire/msgpack/scan.h"
#include "wire/msgpack/table.h"
#include "wire/msgpack/text.h"
#include "wire/outline.h"

#define IMAGE(member) offsetof(td_wire_image, member)
#define OBS(member) offsetof(td_wire_obs, member)

static const td_wire_field image_fields[] = {
    TD_WIRE_FIELD("codec", enum, IMAGE(codec), .required = true,
                  .names = td_wire_codec_names),
    TD_WIRE_FIELD("shape", extent, IMAGE(shape), .extent = 3),
    TD_WIRE_FIELD("data", borrowed, IMAGE(data), .required = true),
};
static const td_wire_table image_table = TD_WIRE_TABLE(image_fields);

_Static_assert(IMAGE(size) - IMAGE(data) == offsetof(td_slice, size),
               "td_wire_type_borrowed needs the layout of td_slice");

static td_err check_image(const td_wire_at *at, const td_wire_image *image)
{
    if (image->size == 0) return td_wire_fail(at, TD_ERR_FORMAT, "is empty");
    if (image->codec != TD_WIRE_RAW) return TD_OK;
    const uint32_t *side = image->shape;
    size_t bytes = 0;
    if (__builtin_mul_overflow((size_t)side[0] * side[1], side[2], &bytes))
        bytes = SIZE_MAX;
    if (bytes == image->size) return TD_OK;
    return td_wire_fail(at, TD_ERR_FORMAT,
                        "raw %ux%ux%u needs %zu bytes, got %zu", side[0],
                        side[1], side[2], bytes, image->size);
}

// The value of an image is its JPEG, or a map that says what it is.
static td_err image_read(const td_wire_at *at, const td_wire_field *field,
                         const msgpack_object *in, void *ret_value)
{
    (void)field;
    td_wire_image *image = ret_value;
    if (in->type == MSGPACK_OBJECT_BIN) {
        image->data = in->via.bin.ptr;
        image->size = in->via.bin.size;
    } else {
        TD_TRY(td_wire_table_read(at, &image_table, in, image));
    }
    if (at->outline) td_wire_outline_restore(at->outline, image);
    return check_image(at, image);
}

static td_err image_check(const td_wire_at *at, const td_wire_field *field,
                          const void *value)
{
    (void)field;
    TD_TRY(td_wire_table_check(at, &image_table, value));
    return check_image(at, value);
}

static void image_write(td_wire_encoder *encoder, const td_wire_field *field,
                        const void *value)
{
    (void)field;
    const td_wire_image *image = value;
    if (image->codec == TD_WIRE_JPEG && image->shape[0] == 0)
        td_wire_encoder_borrow(encoder, image->data, image->size);
    else
        td_wire_table_write(encoder, &image_table, image);
}

static const td_wire_type image_type = {
    .read = image_read, .check = image_check, .write = image_write};

static const td_wire_list images = {
    .member = {.type = &image_type},
    .stride = sizeof(td_wire_image),
    .max = TD_WIRE_MAX_IMAGES,
    .count = OBS(image_count),
};

static const td_wire_list tensors = {
    .member = {.type = &td_wire_type_tensor,
               .offset = offsetof(td_wire_named, tensor)},
    .stride = sizeof(td_wire_named),
    .max = TD_WIRE_MAX_TENSORS,
    .count = OBS(tensor_count),
};

static const td_wire_list metadata = {
    .member = {.type = &td_wire_type_text,
               .offset = offsetof(td_wire_pair, text)},
    .stride = sizeof(td_wire_pair),
    .max = TD_WIRE_MAX_METADATA,
    .count = OBS(metadata_count),
};

static const td_wire_rule state_rule = {.finite = true};
static const td_wire_rule prefix_rule = {.finite = true, .rank = 2};

static const td_wire_field rtc_fields[] = {
    TD_WIRE_FIELD("base_chunk", u64, OBS(rtc_base_chunk), .required = true),
    TD_WIRE_FIELD("delay", u32, OBS(rtc_delay_steps), .always = true),
    TD_WIRE_FIELD("prefix", tensor, OBS(rtc_prefix), .rule = &prefix_rule),
};
static const td_wire_table rtc = TD_WIRE_TABLE(rtc_fields);

// Identity first, for td_wire_obs_peek(); what is large last, so that all that
// is small is one slice.
static const td_wire_field fields[] = {
    TD_WIRE_FIELD("seq_id", u64, OBS(ident.seq), .required = true),
    TD_WIRE_FIELD("boot", u64, OBS(ident.boot)),
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("client_uuid", id, OBS(client), .required = true),
    TD_WIRE_FIELD("route", u64, OBS(ident.route)),
    TD_WIRE_FIELD("episode", u64, OBS(ident.episode)),
    TD_WIRE_FIELD("cursor", u64, OBS(cursor)),
    TD_WIRE_FIELD("urgency", unit, OBS(urgency)),
    TD_WIRE_FIELD("priority", u32, OBS(priority), .preset = 1),
    TD_WIRE_FIELD("steps_remaining", u32, OBS(steps_remaining),
                  .has = OBS(has_steps_remaining)),
    TD_WIRE_FIELD("must_go", bool, OBS(must_go)),
    TD_WIRE_FIELD("budget_us", i64, OBS(budget_us), .has = OBS(has_budget)),
    TD_WIRE_FIELD("again", u64, OBS(again), .has = OBS(has_again)),
    TD_WIRE_FIELD("anew", bool, OBS(anew)),
    TD_WIRE_FIELD("task", text, OBS(task)),
    TD_WIRE_FIELD("metadata", names, OBS(metadata), .list = &metadata),
    TD_WIRE_FIELD("rtc", map, 0, .has = OBS(has_rtc), .table = &rtc),
    TD_WIRE_FIELD("state", tensor, OBS(state), .rule = &state_rule),
    TD_WIRE_FIELD("tensors", names, OBS(tensors), .list = &tensors),
    TD_WIRE_FIELD("images", names, OBS(images), .list = &images),
};

static td_err check(const td_wire_at *at, const void *message)
{
    const td_wire_obs *obs = message;
    if (obs->state.rank == 0 && !obs->has_again)
        return td_wire_fail(at, TD_ERR_FORMAT, "state is missing");
    if (obs->anew && !obs->has_again)
        return td_wire_fail(at, TD_ERR_FORMAT, "anew is without again");
    return TD_OK;
}

_Static_assert(OBS(image_count) < OBS(images) &&
                   OBS(tensor_count) < OBS(images) &&
                   OBS(metadata_count) < OBS(images),
               "counts come before the lists");
_Static_assert(TD_WIRE_END(td_wire_obs, images) == OBS(tensors) &&
                   TD_WIRE_END(td_wire_obs, tensors) == OBS(metadata) &&
                   TD_WIRE_END(td_wire_obs, metadata) == sizeof(td_wire_obs),
               "lists come last, with nothing between them");

static const td_wire_message message = {"obs", sizeof(td_wire_obs), OBS(images),
                                        TD_WIRE_TABLE(fields), check};

td_err td_wire_obs_decode(td_wire_decoder *decoder, const void *data,
                          size_t size, td_wire_obs *ret_obs, td_errinfo *info)
{
    td_wire_obs obs;
    return td_wire_decode(&message, decoder, data, size, &obs, ret_obs, info);
}

// Before anything is joined.
static td_err check_size(const td_slice *pieces, size_t count, td_errinfo *info)
{
    size_t size = td_slice_total(pieces, count);
    if (size <= TD_WIRE_MAX_BYTES) return TD_OK;
    return td_fail(info, TD_ERR_LIMIT, "obs: %zu bytes, limit %u", size,
                   TD_WIRE_MAX_BYTES);
}

td_err td_wire_obs_decode_pieces(td_wire_decoder *decoder,
                                 td_wire_outline *outline,
                                 const td_slice *pieces, size_t count,
                                 td_wire_obs *ret_obs, td_errinfo *info)
{
    if (count == 1)
        return td_wire_obs_decode(decoder, pieces->data, pieces->size, ret_obs,
                                  info);
    td_wire_obs obs;
    TD_TRY(check_size(pieces, count, info));
    TD_TRY(td_wire_outline_make(outline, pieces, count));
    return td_wire_decode_outline(&message, decoder, outline, &obs, ret_obs,
                                  info);
}

td_err td_wire_obs_encode(td_wire_encoder *encoder, const td_wire_obs *obs,
                          td_errinfo *info)
{
    return td_wire_encode(&message, encoder, obs, info);
}

const td_wire_image *td_wire_image_find(const td_wire_image *among,
                                        uint32_t count, td_wire_text name)
{
    for (uint32_t i = 0; i < count; i++)
        if (td_wire_text_same(among[i].name, name)) return &among[i];
    return NULL;
}

td_err td_wire_obs_peek(const void *head, size_t size, uint64_t *ret_seq)
{
    return td_wire_scan_find(head, size, "seq_id", ret_seq);
}
