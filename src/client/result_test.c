// SPDX-License-Identifier: Apache-2.0
#include "client/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_result_has_what_the_server_says(void **state)
{
    (void)state;
    const float odd[] = {1, 2, 3};
    unsigned char bytes[sizeof odd + 1];
    memcpy(bytes + 1, odd, sizeof odd);
    const td_wire_action action = {
        .ident = {.seq = 9},
        .kind = TD_WIRE_PLAN,
        .text = {"grasp the cup, then", 13},
        .server = td_wire_text_of("gpu-1"),
        .results = {{td_wire_text_of("value"),
                     {.dtype = TD_WIRE_F32,
                      .rank = 1,
                      .shape = {3},
                      .data = bytes + 1,
                      .size = sizeof odd}}},
        .result_count = 1,
    };
    td_model_result *result = NULL;
    assert_int_equal(td_client_result_new_answer(NULL, &action, &result),
                     TD_OK);
    assert_int_equal(result->kind, TD_MODEL_PLAN);
    assert_string_equal(result->text, "grasp the cup");
    assert_int_equal(result->actions.rank, 0);
    assert_int_equal(result->result_count, 1);
    assert_string_equal(result->results[0].name, "value");
    assert_int_equal((uintptr_t)result->results[0].data % sizeof(float), 0);
    assert_memory_equal(result->results[0].data, odd, sizeof odd);
    td_model_result_free(result);
}

static void an_error_of_a_newer_server_is_named_in_its_text(void **state)
{
    (void)state;
    const td_wire_action action = {
        .error_code = td_wire_text_of("TIRED"),
        .error_text = td_wire_text_of("come back later"),
    };
    td_model_result *result = NULL;
    assert_int_equal(td_client_result_new_answer(NULL, &action, &result),
                     TD_OK);
    assert_int_equal(result->outcome, TD_MODEL_ERROR);
    assert_int_equal(result->error, TD_ERR_INTERNAL);
    assert_string_equal(result->error_text, "TIRED: come back later");
    td_model_result_free(result);
}

static void an_end_without_an_answer_says_why(void **state)
{
    (void)state;
    const td_client_ended ended = {
        .seq = 4,
        .outcome = TD_MODEL_EXPIRED,
        .why = TD_CLIENT_WHY_UNSENT,
    };
    td_model_result *result = NULL;
    assert_int_equal(td_client_result_new_end(&ended, "nobody", &result),
                     TD_OK);
    assert_int_equal(result->seq, 4);
    assert_int_equal(result->error, TD_ERR_TIMEOUT);
    assert_string_equal(result->error_text,
                        "no server took it within its limit: nobody");
    assert_string_equal(result->server, "");
    td_model_result_free(result);
}

static void superseded_seqs_are_the_results_own(void **state)
{
    (void)state;
    const td_client_ended ended = {.outcome = TD_MODEL_LOST};
    uint64_t seqs[] = {7, 8};
    td_model_result *result = NULL;
    assert_int_equal(td_client_result_new_end(&ended, "", &result), TD_OK);
    assert_int_equal(td_client_result_add_superseded(result, seqs, 2), TD_OK);
    seqs[0] = 0;
    assert_int_equal(result->superseded_count, 2);
    assert_int_equal(result->superseded[0], 7);
    td_model_result_free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_has_what_the_server_says),
        cmocka_unit_test(an_error_of_a_newer_server_is_named_in_its_text),
        cmocka_unit_test(an_end_without_an_answer_says_why),
        cmocka_unit_test(superseded_seqs_are_the_results_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
