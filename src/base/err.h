// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_ERR_H
#define TD_BASE_ERR_H

// The public errors, and how code in src/ passes them on and cleans
// up after itself.

#include "tendon/err.h"   // IWYU pragma: export
#include "tendon/slice.h" // IWYU pragma: export

#include <stdint.h>

// Returns the error of `call`, if any, to the caller.
#define TD_TRY(call)                                                           \
    do {                                                                       \
        td_err td_try_err_ = (call);                                           \
        if (td_try_err_ != TD_OK) return td_try_err_;                          \
    } while (0)

// `TD_AUTO(td_thing) *thing = NULL;` frees the thing when its scope ends. The
// type says how with TD_AUTO_FREE(td_thing, td_thing_free) in its header.
#define TD_AUTO(type) __attribute__((cleanup(type##_auto_free))) type

#define TD_AUTO_FREE(type, free_fn)                                            \
    static inline void type##_auto_free(type **slot)                           \
    {                                                                          \
        if (*slot) free_fn(*slot);                                             \
    }

// Takes the pointer out of an owning variable: `*ret_thing = TD_TAKE(thing);`.
#define TD_TAKE(pointer)                                                       \
    ({                                                                         \
        __auto_type td_taken_ = (pointer);                                     \
        (pointer) = NULL;                                                      \
        td_taken_;                                                             \
    })

#define TD_COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#endif
