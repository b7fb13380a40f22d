// SPDX-License-Identifier: Apache-2.0
#include "engine/native/cuda/library.h"

#include "base/err.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The library itself, whether there is a driver or not.
static const td_ops *entry(uint32_t version)
{
    void *library = dlopen(TD_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    void *symbol = dlsym(library, "td_ops_cuda");
    assert_non_null(symbol);
    td_ops_library *function = (td_ops_library *)&symbol;
    return (*function)(version);
}

static void library_has_this_version_only(void **state)
{
    (void)state;
    const td_ops *ops = entry(TD_OPS_VERSION);
    assert_non_null(ops);
    assert_string_equal(ops->name, "cuda");
    assert_null(entry(TD_OPS_VERSION + 1));
}

static void float32_is_refused(void **state)
{
    (void)state;
    const td_ops_config config = {.precision = TD_OPS_F32};
    td_ops_backend *backend = NULL;
    td_errinfo info = {.text = ""};
    assert_int_equal(entry(TD_OPS_VERSION)->open(&config, &backend, &info),
                     TD_ERR_UNSUPPORTED);
    assert_null(backend);
    assert_non_null(strstr(info.text, "bf16"));
}

static void gpu_that_is_not_there_is_named(void **state)
{
    (void)state;
    const td_ops_config config = {.precision = TD_OPS_BF16, .device = 99};
    td_ops_backend *backend = NULL;
    td_errinfo info = {.text = ""};
    assert_int_equal(entry(TD_OPS_VERSION)->open(&config, &backend, &info),
                     TD_ERR_UNSUPPORTED);
    assert_null(backend);
    assert_non_null(strstr(info.text, "no GPU"));
}

static void missing_library_is_said(void **state)
{
    (void)state;
    const td_ops *ops = NULL;
    td_errinfo info = {.text = ""};
    assert_int_equal(setenv("TENDON_CUDA_LIBRARY", "/nowhere/cuda.so", 1), 0);
    assert_int_equal(td_native_cuda_library_load(&ops, &info), TD_ERR_NOTFOUND);
    assert_null(ops);
    assert_true(info.text[0] != '\0');
    assert_int_equal(unsetenv("TENDON_CUDA_LIBRARY"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_has_this_version_only),
        cmocka_unit_test(float32_is_refused),
        cmocka_unit_test(gpu_that_is_not_there_is_named),
        cmocka_unit_test(missing_library_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
