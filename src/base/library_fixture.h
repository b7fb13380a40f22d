// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_LIBRARY_FIXTURE_H
#define TD_BASE_LIBRARY_FIXTURE_H

// For tests of libraries that are loaded when something needs them.

#include "base/err.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct library_load {
    td_err (*load)(td_errinfo *info);
    td_err err;
} library_load;

static inline void *library_load_it(void *user)
{
    library_load *it = user;
    it->err = it->load(NULL);
    return NULL;
}

// Every one of several threads that come at once has the library.
static inline void assert_threads_load(td_err (*load)(td_errinfo *info))
{
    pthread_t threads[4];
    library_load loads[TD_COUNT_OF(threads)];
    for (size_t i = 0; i < TD_COUNT_OF(threads); i++) {
        loads[i] = (library_load){.load = load, .err = TD_ERR_INTERNAL};
        assert_int_equal(
            pthread_create(&threads[i], NULL, library_load_it, &loads[i]), 0);
    }
    for (size_t i = 0; i < TD_COUNT_OF(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(loads[i].err, TD_OK);
    }
}

#endif
