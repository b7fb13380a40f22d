// SPDX-License-Identifier: Apache-2.0
// Counts every allocation of the process, msgpack-c's too.
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static _Atomic long allocations;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's and the
// sanitizers' own names.
#ifdef SANITIZED
void __sanitizer_malloc_hook(const volatile void *pointer, size_t size);
void __sanitizer_malloc_hook(const volatile void *pointer, size_t size)
{
    (void)pointer, (void)size;
    allocations++;
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *ptr, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
    allocations++;
    return __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
    allocations++;
    return __libc_realloc(ptr, size);
}
#endif
// NOLINTEND(bugprone-reserved-identifier)

#define IMAGE_BYTES 50000

static td_wire_encoder *encoder;
static td_wire_decoder *decoder;
static char *buffer;

static int set_up(void **state)
{
    (void)state;
    buffer = malloc(1 << 20);
    return !buffer || td_wire_encoder_new(&encoder) != TD_OK ||
           td_wire_decoder_new(&decoder) != TD_OK;
}

static int tear_down(void **state)
{
    (void)state;
    td_wire_encoder_free(encoder);
    td_wire_decoder_free(decoder);
    free(buffer);
    return 0;
}

// Two images and 14 floats.
static td_wire_obs make_obs(uint64_t seq)
{
    static const char jpeg[IMAGE_BYTES];
    static const float state[14];
    return (td_wire_obs){
        .ident = {.boot = 1, .seq = seq},
        .client = td_wire_text_of("r1"),
        .priority = 1,
        .task = td_wire_text_of("pick up the red cube"),
        .state = {.rank = 1,
                  .shape = {14},
                  .data = state,
                  .size = sizeof state},
        .image_count = 2,
        .images = {{.name = td_wire_text_of("left"),
                    .data = jpeg,
                    .size = IMAGE_BYTES},
                   {.name = td_wire_text_of("right"),
                    .data = jpeg,
                    .size = IMAGE_BYTES}},
    };
}

static td_err round_trip(uint64_t seq)
{
    td_wire_obs obs = make_obs(seq);
    TD_TRY(td_wire_obs_encode(encoder, &obs, NULL));
    td_wire_encoder_join(encoder, buffer);
    return td_wire_obs_decode(decoder, buffer, td_wire_encoder_size(encoder),
                              &obs, NULL);
}

static void the_counter_counts(void **state)
{
    (void)state;
    long before = allocations;
    void *volatile block = malloc(16);
    free(block);
    assert_int_equal(allocations - before, 1);
}

static void a_steady_stream_allocates_nothing(void **state)
{
    (void)state;
    assert_int_equal(round_trip(0), TD_OK);
    long before = allocations;
    td_err err = TD_OK;
    for (uint64_t seq = 1; seq < 1000 && err == TD_OK; seq++)
        err = round_trip(seq);
    long made = allocations - before;
    assert_int_equal(err, TD_OK);
    assert_int_equal(made, 0);
}

// As many members as the scan lets through, as pairs, which take most room.
static size_t fill_with_members(char *bytes)
{
    static const uint8_t member[] = {0xa1, 'x', 0xc0};
    size_t size = 0;
    bytes[size++] = (char)0xde;
    bytes[size++] = TD_WIRE_MAX_ITEMS >> 8;
    bytes[size++] = (char)(TD_WIRE_MAX_ITEMS & 0xff);
    for (int i = 0; i < TD_WIRE_MAX_ITEMS; i++) {
        memcpy(bytes + size, member, sizeof member);
        size += sizeof member;
    }
    return size;
}

static void the_largest_message_allocates_nothing(void **state)
{
    (void)state;
    size_t size = fill_with_members(buffer);
    td_wire_reset reset;
    long before = allocations;
    td_err err = td_wire_reset_decode(decoder, buffer, size, &reset, NULL);
    long made = allocations - before;
    assert_int_equal(err, TD_ERR_FORMAT); // no client_uuid: it was all read
    assert_int_equal(made, 0);
}

static void a_refused_message_allocates_nothing(void **state)
{
    (void)state;
    static const char huge[] = "\x81\xa6images\xdd\x80\0\0\0"
                               "0123456789012345678901234567";
    td_wire_obs obs;
    td_errinfo info;
    long before = allocations;
    td_err err = td_wire_obs_decode(decoder, huge, sizeof huge, &obs, &info);
    long made = allocations - before;
    assert_int_equal(err, TD_ERR_LIMIT);
    assert_int_equal(made, 0);
}

static void images_are_not_copied(void **state)
{
    (void)state;
    td_wire_obs obs = make_obs(1);
    assert_int_equal(td_wire_obs_encode(encoder, &obs, NULL), TD_OK);
    size_t count = 0;
    const td_slice *parts = td_wire_encoder_parts(encoder, &count);
    assert_int_equal(count, 4);
    assert_ptr_equal(parts[1].data, obs.images[0].data);
    assert_ptr_equal(parts[3].data, obs.images[1].data);

    size_t size = td_wire_encoder_size(encoder);
    td_wire_encoder_join(encoder, buffer);
    assert_int_equal(td_wire_obs_decode(decoder, buffer, size, &obs, NULL),
                     TD_OK);
    assert_ptr_equal(obs.images[1].data, buffer + size - IMAGE_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(a_steady_stream_allocates_nothing),
        cmocka_unit_test(the_largest_message_allocates_nothing),
        cmocka_unit_test(a_refused_message_allocates_nothing),
        cmocka_unit_test(images_are_not_copied),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
