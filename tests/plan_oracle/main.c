// SPDX-License-Identifier: Apache-2.0
// plan_oracle packings|grid SEED COUNT
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 4) {
        uint64_t seed = strtoull(argv[2], NULL, 10);
        uint64_t count = strtoull(argv[3], NULL, 10);
        if (strcmp(argv[1], "packings") == 0)
            return oracle_packings(seed, count);
        if (strcmp(argv[1], "grid") == 0) return oracle_grid(seed, count);
    }
    (void)fprintf(stderr, "usage: plan_oracle packings|grid SEED COUNT\n");
    return 2;
}
