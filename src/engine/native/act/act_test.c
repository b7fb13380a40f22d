// SPDX-License-Identifier: Apache-2.0
#include "engine/native/act/act_cases.h"

int main(void)
{
    const td_native_act_backend backend = {
        .ops = &td_ops_cpu, .config = {.threads = 2}, .tolerance = 1e-4};
    return td_native_act_cases(&backend);
}
