// SPDX-License-Identifier: Apache-2.0
// `tendon bench engine --only cuda` by itself, for tools/gpu-check: bench
// [--quick].
#include "bench/bench.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const td_bench_options options = {
        .quick = argc > 1 && strcmp(argv[1], "--quick") == 0,
    };
    td_errinfo info = {.text = ""};
    uint64_t rows, missed;
    td_err err = td_bench_engine_cuda(&options, &info);
    td_bench_folder_remove();
    td_bench_tally(&rows, &missed);
    if (err != TD_OK) (void)printf("%s: %s\n", td_err_text(err), info.text);
    (void)printf("%llu figures, %llu missed\n", (unsigned long long)rows,
                 (unsigned long long)missed);
    return err != TD_OK || missed > 0;
}
