// SPDX-License-Identifier: Apache-2.0
#include "engine/native/checkpoint/weights.h"

#include "engine/native/checkpoint/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define INDEX "model.safetensors.index.json"
#define SHARD "model-00001-of-00004.safetensors"
// "t" of two floats, 1 and NaN.
#define HEADER                                                                 \
    "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
static const char not_finite[] =
    "\x38\0\0\0\0\0\0\0" HEADER "\0\0\x80\x3f\0\0\xc0\x7f";

static void one_file_and_many_read_alike(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        uint32_t least_files;
        td_native_dtype dtype;
    } cases[] = {{"act", 1, TD_NATIVE_F32},
                 {"smolvla", 2, TD_NATIVE_F32},
                 {"pi0", 1, TD_NATIVE_BF16},
                 {"pi05", 1, TD_NATIVE_F16}};
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        char folder[512];
        td_native_weights *weights = NULL;
        td_errinfo info = {""};
        (void)snprintf(folder, sizeof folder, TD_NATIVE_GOLDEN "%s",
                       cases[i].kind);
        if (td_native_weights_open(folder, &weights, &info) != TD_OK)
            fail_msg("%s", info.text);
        td_native_weights_sum sum = td_native_weights_count(weights);
        assert_in_range(sum.files, cases[i].least_files, 8);
        assert_in_range(sum.tensors, 2, 24);
        assert_true(sum.parameters > 0);
        assert_int_equal(sum.by_dtype[cases[i].dtype], sum.parameters);
        assert_int_equal(sum.bytes, sum.parameters *
                                        td_native_dtype_bytes(cases[i].dtype));
        assert_int_equal(td_native_weights_check_finite(weights, NULL), TD_OK);
        td_native_weights_close(weights);
    }
}

static void a_tensor_is_had_by_name_and_shape_or_refused(void **state)
{
    (void)state;
    td_native_weights *weights = NULL;
    const td_native_tensor *tensor = NULL;
    td_errinfo info = {""};
    const uint64_t six[] = {6}, other[] = {8, 1};
    const char *name = "model.action_head.bias";
    assert_int_equal(
        td_native_weights_open(TD_NATIVE_GOLDEN "act", &weights, NULL), TD_OK);
    assert_int_equal(
        td_native_weights_get(weights, name, 1, six, &tensor, &info), TD_OK);
    assert_string_equal(tensor->name, name);
    assert_int_equal(
        td_native_weights_get(weights, "nobody", 1, six, &tensor, &info),
        TD_ERR_NOTFOUND);
    assert_non_null(strstr(info.text, "act: the weights have no nobody"));
    assert_int_equal(
        td_native_weights_get(weights, name, 2, other, &tensor, &info),
        TD_ERR_MISMATCH);
    assert_non_null(strstr(info.text, " is [6], wanted is [8, 1]"));
    td_native_weights_close(weights);
}

static void open_copy(const td_native_fixture *fixture, td_err wanted,
                      const char *says)
{
    td_native_weights *weights = NULL;
    td_errinfo info = {""};
    td_err err = td_native_weights_open(fixture->path, &weights, &info);
    if (err != wanted || !strstr(info.text, says))
        fail_msg("%s: %s", td_err_name(err), info.text);
    td_native_fixture_remove(fixture);
}

static void an_index_that_lies_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        td_err err;
        const char *says;
    } cases[] = {
        {NULL, NULL, TD_ERR_NOTFOUND,
         "has neither model.safetensors nor " INDEX},
        {"\"weight_map\"", "\"map\"", TD_ERR_FORMAT, "weight_map: is missing"},
        {"\"weight_map\": {", "\"weight_map\": {\"x\": 1,", TD_ERR_FORMAT,
         "weight_map.x: must be a text"},
        {"\"weight_map\": {", "\"weight_map\": {\"x\": \"../y\",",
         TD_ERR_FORMAT, "weight_map.x: ../y is no file of this folder"},
        {"\"weight_map\": {", "\"weight_map\": {\"x\": \"gone.safetensors\",",
         TD_ERR_NOTFOUND, "gone.safetensors"},
        {"\"weight_map\": {", "\"weight_map\": {\"x\": \"" SHARD "\",",
         TD_ERR_FORMAT, "weight_map.x: is not in " SHARD},
    };
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        td_native_fixture copy;
        td_native_fixture_copy("smolvla", INDEX, cases[i].from, cases[i].to,
                               &copy);
        open_copy(&copy, cases[i].err, cases[i].says);
    }
}

static void a_tensor_that_the_index_hides_is_noticed(void **state)
{
    (void)state;
    td_native_safetensors *shard = NULL;
    td_native_fixture copy;
    size_t count = 0;
    char index[512];
    assert_int_equal(td_native_safetensors_open(
                         TD_NATIVE_GOLDEN "smolvla/" SHARD, &shard, NULL),
                     TD_OK);
    const td_native_tensor *all = td_native_safetensors_all(shard, &count);
    assert_in_range(count, 2, 24);
    (void)snprintf(index, sizeof index, "{\"weight_map\": {\"%s\": \"%s\"}}",
                   all[0].name, SHARD);
    td_native_safetensors_close(shard);
    td_native_fixture_write("smolvla", INDEX, (td_slice){index, strlen(index)},
                            &copy);
    open_copy(&copy, TD_ERR_FORMAT, "names 1 tensors, its files have ");
}

static void weights_that_are_not_finite_are_named(void **state)
{
    (void)state;
    td_native_fixture copy;
    td_native_weights *weights = NULL;
    td_errinfo info = {""};
    td_native_fixture_write("act", "model.safetensors",
                            (td_slice){not_finite, sizeof not_finite - 1},
                            &copy);
    if (td_native_weights_open(copy.path, &weights, &info) != TD_OK)
        fail_msg("%s", info.text);
    assert_int_equal(td_native_weights_check_finite(weights, &info),
                     TD_ERR_FORMAT);
    assert_non_null(
        strstr(info.text, "/model.safetensors: t: value 1 is not finite"));
    td_native_weights_close(weights);
    td_native_fixture_remove(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_and_many_read_alike),
        cmocka_unit_test(a_tensor_is_had_by_name_and_shape_or_refused),
        cmocka_unit_test(an_index_that_lies_is_refused),
        cmocka_unit_test(a_tensor_that_the_index_hides_is_noticed),
        cmocka_unit_test(weights_that_are_not_finite_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
