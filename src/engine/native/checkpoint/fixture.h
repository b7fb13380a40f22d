// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHECKPOINT_FIXTURE_H
#define TD_ENGINE_NATIVE_CHECKPOINT_FIXTURE_H

// Checkpoint folders for tests: those under tests/golden/checkpoints/, and
// copies with one file changed.

#include "base/err.h"

#define TD_NATIVE_GOLDEN TD_SOURCE_DIR "/tests/golden/checkpoints/"

typedef struct td_native_fixture {
    char path[256];
} td_native_fixture;

// A copy of a golden folder in which `file` has `to` in place of its first
// `from`, or is missing where `from` is NULL. Fails the test when it cannot.
void td_native_fixture_copy(const char *kind, const char *file,
                            const char *from, const char *to,
                            td_native_fixture *ret_fixture);

// The same with `bytes` in place of the whole file.
void td_native_fixture_write(const char *kind, const char *file, td_slice bytes,
                             td_native_fixture *ret_fixture);
void td_native_fixture_remove(const td_native_fixture *fixture);

#endif
