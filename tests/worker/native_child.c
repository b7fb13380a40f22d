// SPDX-License-Identifier: Apache-2.0
// `tendon native-worker`, for tests: native_child [COEFFICIENT], or
// native_child prefixes, which keeps a megabyte of them.
#include "engine/native/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

int main(int argc, char **argv)
{
    bool keeps = argc > 1 && strcmp(argv[1], "prefixes") == 0;
    const td_native_child_options options = {
        .ensemble = argc > 1 && !keeps ? argv[1] : NULL,
        .prefixes = keeps ? "1" : NULL,
    };
    return td_native_child_run(&options);
}
