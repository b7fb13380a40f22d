// SPDX-License-Identifier: Apache-2.0
// What `tendon serve` starts for a policy on a GPU; nobody else has a use for
// it.
#include "cli/cli.h"
#include "engine/native/child.h"

int td_cli_native_worker(int argc, char **argv)
{
    td_native_child_options wanted = {NULL, NULL, NULL};
    const td_cli_option options[] = {{"tokenizer", &wanted.tokenizer, NULL},
                                     {"ensemble", &wanted.ensemble, NULL},
                                     {"prefixes", &wanted.prefixes, NULL},
                                     {0}};
    if (!td_cli_parse(argc, argv, options, NULL)) return 2;
    return td_native_child_run(&wanted);
}
