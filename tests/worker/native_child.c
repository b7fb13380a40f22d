// SPDX-License-Identifier: Apache-2.0
// `tendon native-worker`, for tests: native_child [COEFFICIENT].
#include "engine/native/child.h"

#include <stddef.h>

int main(int argc, char **argv)
{
    const td_native_child_options options = {
        .ensemble = argc > 1 ? argv[1] : NULL,
    };
    return td_native_child_run(&options);
}
