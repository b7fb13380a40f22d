// SPDX-License-Identifier: Apache-2.0
// What `tendon serve` starts for a policy on a GPU; nobody else has a use for
// it.
#include "cli/cli.h"
#include "engine/native/child.h"

int td_cli_native_worker(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return td_native_child_run();
}
