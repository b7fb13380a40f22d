// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_GOLDEN_H
#define TD_ENGINE_NATIVE_GOLDEN_H

// The checkpoints of tests/golden/act/ and tests/golden/flows/ with their
// weights, for tests: what is kept of them goes to a folder of its own, and the
// weights are made there, in the types that the headers say.

#include <stddef.h>

typedef struct td_native_golden {
    const char *room; // "act"
    const char *name;
    char folder[256];
} td_native_golden;

// Fails the test when it cannot.
void td_native_golden_make(const char *room, const char *name,
                           td_native_golden *ret_golden);
void td_native_golden_remove(const td_native_golden *golden);

// What LeRobot answers: `count` floats. Owned: free(). Fails the test when
// there are others.
float *td_native_golden_expected(const td_native_golden *golden, size_t count);

#endif
