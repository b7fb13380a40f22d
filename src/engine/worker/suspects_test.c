// SPDX-License-Identifier: Apache-2.0
#include "engine/worker/suspects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const float state_values[] = {1, 2, 3};

static td_wire_obs make_obs(void)
{
    return (td_wire_obs){
        .ident = {.seq = 7},
        .client = td_wire_text_of("robot-1"),
        .state = {.rank = 1,
                  .shape = {3},
                  .data = state_values,
                  .size = sizeof state_values},
        .images = {{.name = td_wire_text_of("front"),
                    .data = "pixels of a picture",
                    .size = 19}},
        .image_count = 1,
        .task = td_wire_text_of("wave"),
    };
}

static void the_same_content_has_the_same_hash_whoever_sends_it(void **state)
{
    (void)state;
    td_wire_obs a = make_obs(), b = make_obs();
    b.ident = (td_wire_ident){2, 3, 4, 5};
    b.client = td_wire_text_of("robot-2");
    b.cursor = 100;
    assert_true(td_engine_worker_suspects_hash(&a) ==
                td_engine_worker_suspects_hash(&b));
}

static void in_whatever_pieces_it_comes(void **state)
{
    (void)state;
    static uint8_t bytes[20000], first[9001], second[10999];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i % 251);
    memcpy(first, bytes, sizeof first);
    memcpy(second, bytes + sizeof first, sizeof second);
    const td_slice pieces[] = {{first, sizeof first}, {second, sizeof second}};
    td_wire_obs a = make_obs(), b = make_obs();
    a.images[0].data = bytes;
    a.images[0].size = b.images[0].size = sizeof bytes;
    b.images[0].data = NULL;
    b.images[0].pieces = pieces;
    assert_true(td_engine_worker_suspects_hash(&a) ==
                td_engine_worker_suspects_hash(&b));
    second[0]++;
    assert_true(td_engine_worker_suspects_hash(&a) !=
                td_engine_worker_suspects_hash(&b));
}

static void any_other_content_has_another(void **state)
{
    (void)state;
    static const float other[] = {1, 2, 4};
    td_wire_obs base = make_obs();
    td_wire_obs changed[5];
    for (size_t i = 0; i < 5; i++)
        changed[i] = make_obs();
    changed[0].state.data = other;
    changed[1].images[0].data = "pixels of a pictury";
    changed[2].task = td_wire_text_of("wavf");
    changed[3].tensors[0] = (td_wire_named){.name = td_wire_text_of("force")};
    changed[3].tensor_count = 1;
    changed[4].metadata[0].name = td_wire_text_of("tool");
    changed[4].metadata_count = 1;
    for (size_t i = 0; i < 5; i++)
        assert_true(td_engine_worker_suspects_hash(&changed[i]) !=
                    td_engine_worker_suspects_hash(&base));
}

static void twice_is_guilty(void **state)
{
    (void)state;
    td_engine_worker_suspects suspects = {0};
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 5),
                     TD_ENGINE_WORKER_INNOCENT);
    td_engine_worker_suspects_strike(&suspects, 5);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 5),
                     TD_ENGINE_WORKER_SUSPECT);
    td_engine_worker_suspects_strike(&suspects, 5);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 5),
                     TD_ENGINE_WORKER_GUILTY);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 6),
                     TD_ENGINE_WORKER_INNOCENT);
    assert_int_equal(suspects.count, 1);
}

static void the_cleared_begin_anew(void **state)
{
    (void)state;
    td_engine_worker_suspects suspects = {0};
    td_engine_worker_suspects_strike(&suspects, 5);
    td_engine_worker_suspects_clear(&suspects, 5);
    td_engine_worker_suspects_clear(&suspects, 6);
    assert_int_equal(suspects.count, 0);
    td_engine_worker_suspects_strike(&suspects, 5);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 5),
                     TD_ENGINE_WORKER_SUSPECT);
}

static void the_longest_unseen_is_forgotten(void **state)
{
    (void)state;
    td_engine_worker_suspects suspects = {0};
    for (uint64_t i = 0; i < TD_ENGINE_WORKER_SUSPECTS; i++)
        td_engine_worker_suspects_strike(&suspects, i);
    (void)td_engine_worker_suspects_find(&suspects, 0); // 1 is the oldest now
    td_engine_worker_suspects_strike(&suspects, 1000);
    assert_int_equal(suspects.count, TD_ENGINE_WORKER_SUSPECTS);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 0),
                     TD_ENGINE_WORKER_SUSPECT);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 1),
                     TD_ENGINE_WORKER_INNOCENT);
    assert_int_equal(td_engine_worker_suspects_find(&suspects, 1000),
                     TD_ENGINE_WORKER_SUSPECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_content_has_the_same_hash_whoever_sends_it),
        cmocka_unit_test(in_whatever_pieces_it_comes),
        cmocka_unit_test(any_other_content_has_another),
        cmocka_unit_test(twice_is_guilty),
        cmocka_unit_test(the_cleared_begin_anew),
        cmocka_unit_test(the_longest_unseen_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
