// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/ensemble.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 4

static td_wire_obs obs_at(const char *client, uint64_t episode, uint64_t cursor)
{
    td_wire_obs obs = {.client = td_wire_text_of(client), .cursor = cursor};
    obs.ident.episode = episode;
    return obs;
}

static void join(td_native_ensemble *ensemble, td_wire_obs obs, float value,
                 float ret_rows[ROWS])
{
    for (int i = 0; i < ROWS; i++)
        ret_rows[i] = value;
    assert_int_equal(td_native_ensemble_join(ensemble, &obs, ret_rows), TD_OK);
}

static td_native_ensemble *make(double coefficient)
{
    td_native_ensemble *ensemble = NULL;
    assert_int_equal(td_native_ensemble_new(coefficient, ROWS, 1, &ensemble),
                     TD_OK);
    return ensemble;
}

static void assert_rows(const float *got, const float *want)
{
    for (int i = 0; i < ROWS; i++)
        assert_true(fabsf(got[i] - want[i]) < 1e-6f);
}

static void steps_are_means_of_those_who_spoke_of_them(void **state)
{
    (void)state;
    td_native_ensemble *ensemble = make(0);
    float rows[ROWS];
    join(ensemble, obs_at("arm", 1, 10), 1, rows);
    assert_rows(rows, (const float[]){1, 1, 1, 1});
    join(ensemble, obs_at("arm", 1, 11), 4, rows);
    assert_rows(rows, (const float[]){2.5f, 2.5f, 2.5f, 4});
    join(ensemble, obs_at("arm", 1, 13), 7, rows);
    assert_rows(rows, (const float[]){4, 5.5f, 7, 7});
    td_native_ensemble_free(ensemble);
}

// As LeRobot's ACTTemporalEnsembler(0.5, 4) answers 1, 2, 3 and 4, a step each.
static void a_coefficient_weighs_the_older_more(void **state)
{
    (void)state;
    td_native_ensemble *ensemble = make(0.5);
    const double w1 = exp(-0.5), w2 = exp(-1), w3 = exp(-1.5);
    const double want[] = {1, (1 + 2 * w1) / (1 + w1),
                           (1 + 2 * w1 + 3 * w2) / (1 + w1 + w2),
                           (1 + 2 * w1 + 3 * w2 + 4 * w3) / (1 + w1 + w2 + w3)};
    for (uint64_t i = 0; i < 4; i++) {
        float rows[ROWS];
        join(ensemble, obs_at("arm", 1, i), (float)(i + 1), rows);
        assert_true(fabs(rows[0] - want[i]) < 1e-5);
    }
    td_native_ensemble_free(ensemble);
}

static void anything_new_begins_anew(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *client;
        uint64_t episode, cursor;
    } cases[] = {
        {"another episode", "arm", 2, 11},
        {"a cursor that went back", "arm", 1, 9},
        {"steps beyond the chunk", "arm", 1, 14},
        {"another client", "leg", 1, 11},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_native_ensemble *ensemble = make(0);
        float rows[ROWS];
        join(ensemble, obs_at("arm", 1, 10), 1, rows);
        join(ensemble,
             obs_at(cases[i].client, cases[i].episode, cases[i].cursor), 5,
             rows);
        assert_rows(rows, (const float[]){5, 5, 5, 5});
        td_native_ensemble_free(ensemble);
    }
}

static void the_same_step_may_be_asked_for_ever(void **state)
{
    (void)state;
    td_native_ensemble *ensemble = make(0);
    float rows[ROWS];
    for (int i = 0; i < 3 * ROWS; i++)
        join(ensemble, obs_at("arm", 1, 10), 2, rows);
    assert_rows(rows, (const float[]){2, 2, 2, 2});
    td_native_ensemble_free(ensemble);
}

static void of_too_many_the_one_unheard_of_longest_goes(void **state)
{
    (void)state;
    td_native_ensemble *ensemble = make(0);
    float rows[ROWS];
    char name[16];
    for (int i = 0; i <= TD_NATIVE_ENSEMBLE_CLIENTS; i++) {
        (void)snprintf(name, sizeof name, "arm-%d", i);
        join(ensemble, obs_at(name, 1, 0), 1, rows);
    }
    join(ensemble, obs_at("arm-1", 1, 0), 3, rows);
    assert_rows(rows, (const float[]){2, 2, 2, 2});
    join(ensemble, obs_at("arm-0", 1, 0), 3, rows);
    assert_rows(rows, (const float[]){3, 3, 3, 3});
    td_native_ensemble_free(ensemble);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_means_of_those_who_spoke_of_them),
        cmocka_unit_test(a_coefficient_weighs_the_older_more),
        cmocka_unit_test(anything_new_begins_anew),
        cmocka_unit_test(the_same_step_may_be_asked_for_ever),
        cmocka_unit_test(of_too_many_the_one_unheard_of_longest_goes),
    };
    return cmocka_run_group_tests_name("ensemble", tests, NULL, NULL);
}
