// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/similar.h"

#include "base/rand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEIGHT = 48, WIDTH = 64 };

typedef struct scene {
    td_edge_similar similar;
    uint8_t rgb[2][HEIGHT * WIDTH * 3];
    float state[3];
} scene;

static scene scene_of(bool on)
{
    scene s = {.state = {1, 2, 3}};
    td_edge_similar_settings settings = {
        .on = on, .state_tolerance = 1, .image_tolerance = 2};
    assert_int_equal(td_edge_similar_init(&s.similar, &settings), TD_OK);
    memset(s.rgb, 100, sizeof s.rgb);
    return s;
}

static bool check(scene *s, bool must_go)
{
    const td_edge_similar_image images[] = {{s->rgb[0], HEIGHT, WIDTH},
                                            {s->rgb[1], HEIGHT, WIDTH}};
    return td_edge_similar_check(&s->similar, s->state, 3, images, 2, must_go);
}

static void send_first(scene *s)
{
    assert_false(check(s, false));
    td_edge_similar_note_sent(&s->similar);
}

static void off_filters_nothing(void **state)
{
    (void)state;
    scene s = scene_of(false);
    send_first(&s);
    assert_false(check(&s, false));
}

static void same_observation_is_filtered(void **state)
{
    (void)state;
    scene s = scene_of(true);
    send_first(&s);
    assert_true(check(&s, false));
}

static void state_that_moved_is_sent(void **state)
{
    (void)state;
    scene s = scene_of(true);
    send_first(&s);
    s.state[0] += 0.6f;
    s.state[1] -= 0.7f; // 0.92 together
    assert_true(check(&s, false));
    s.state[2] += 0.5f; // 1.05
    assert_false(check(&s, false));
}

// BUG-4: the arm stands still and an object moves.
static void image_that_changed_is_sent(void **state)
{
    (void)state;
    scene s = scene_of(true);
    send_first(&s);
    for (size_t y = 10; y < 20; y++)
        memset(&s.rgb[1][y * WIDTH * 3], 200, 30);
    assert_false(check(&s, false));
}

static void noise_in_an_image_is_no_change(void **state)
{
    (void)state;
    td_rand rand;
    td_rand_init(&rand, 61);
    scene s = scene_of(true);
    send_first(&s);
    for (size_t i = 0; i < sizeof s.rgb[0]; i++)
        s.rgb[0][i] = (uint8_t)(98 + td_rand_u64(&rand) % 5);
    assert_true(check(&s, false));
}

// BUG-4: an empty buffer is never left waiting by the filter.
static void must_go_is_never_filtered(void **state)
{
    (void)state;
    scene s = scene_of(true);
    send_first(&s);
    for (int i = 0; i < 10; i++)
        assert_false(check(&s, true));
}

static void comparison_is_with_the_last_one_sent(void **state)
{
    (void)state;
    scene s = scene_of(true);
    send_first(&s);
    for (int i = 0; i < 3; i++) { // slowly away, checked and never sent
        s.state[0] += 0.4f;
        assert_int_equal(check(&s, false), i < 2);
    }
    td_edge_similar_note_sent(&s.similar);
    assert_true(check(&s, false));
    td_edge_similar_forget(&s.similar);
    assert_false(check(&s, false));
}

static void another_shape_is_sent(void **state)
{
    (void)state;
    scene s = scene_of(true);
    send_first(&s);
    const td_edge_similar_image turned[] = {{s.rgb[0], WIDTH, HEIGHT},
                                            {s.rgb[1], HEIGHT, WIDTH}};
    td_edge_similar *similar = &s.similar;
    assert_false(td_edge_similar_check(similar, s.state, 3, turned, 2, false));
    assert_false(td_edge_similar_check(similar, s.state, 3, NULL, 0, false));
    s.state[1] = NAN;
    assert_false(check(&s, false));
    td_edge_similar_note_sent(similar);
    assert_false(check(&s, false));
}

// Straight from the definition, pixel by pixel.
static uint8_t obvious_cell(const td_edge_similar_image *image, uint32_t rows,
                            uint32_t columns, uint32_t i, uint32_t j)
{
    uint64_t sum = 0, count = 0;
    for (uint32_t y = 0; y < image->height; y++) {
        for (uint32_t x = 0; x < image->width; x++) {
            if (y < i * image->height / rows ||
                y >= (i + 1) * image->height / rows ||
                x < j * image->width / columns ||
                x >= (j + 1) * image->width / columns)
                continue;
            const uint8_t *p = image->rgb + 3 * ((size_t)y * image->width + x);
            sum += (77u * p[0] + 150u * p[1] + 29u * p[2]) / 256;
            count++;
        }
    }
    assert_true(count > 0);
    return (uint8_t)(count > 0 ? sum / count : 0);
}

static void thumbnail_is_as_defined(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1},   {5, 70},  {32, 32},
                                        {33, 31}, {48, 64}, {61, 97}};
    static td_edge_similar similar;
    td_rand rand;
    td_rand_init(&rand, 62);
    td_edge_similar_settings settings = {.on = true};
    assert_int_equal(td_edge_similar_init(&similar, &settings), TD_OK);
    const float none = 0;
    static uint8_t rgb[61 * 97 * 3];
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)td_rand_u64(&rand);
    for (size_t k = 0; k < TD_COUNT_OF(sizes); k++) {
        td_edge_similar_image image = {rgb, sizes[k][0], sizes[k][1]};
        uint32_t rows = image.height < 32 ? image.height : 32;
        uint32_t columns = image.width < 32 ? image.width : 32;
        (void)td_edge_similar_check(&similar, &none, 0, &image, 1, false);
        for (uint32_t i = 0; i < rows; i++)
            for (uint32_t j = 0; j < columns; j++)
                assert_int_equal(
                    similar.checked.thumbs[0].gray[i * columns + j],
                    obvious_cell(&image, rows, columns, i, j));
    }
}

static void tolerance_below_0_is_refused(void **state)
{
    (void)state;
    static const td_edge_similar_settings bad[] = {
        {.state_tolerance = -1},
        {.image_tolerance = -1},
        {.state_tolerance = NAN},
        {.image_tolerance = NAN},
    };
    td_edge_similar similar;
    for (size_t i = 0; i < TD_COUNT_OF(bad); i++)
        assert_int_equal(td_edge_similar_init(&similar, &bad[i]),
                         TD_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_filters_nothing),
        cmocka_unit_test(same_observation_is_filtered),
        cmocka_unit_test(state_that_moved_is_sent),
        cmocka_unit_test(image_that_changed_is_sent),
        cmocka_unit_test(noise_in_an_image_is_no_change),
        cmocka_unit_test(must_go_is_never_filtered),
        cmocka_unit_test(comparison_is_with_the_last_one_sent),
        cmocka_unit_test(another_shape_is_sent),
        cmocka_unit_test(thumbnail_is_as_defined),
        cmocka_unit_test(tolerance_below_0_is_refused),
    };
    return cmocka_run_group_tests_name("edge/similar", tests, NULL, NULL);
}
