// SPDX-License-Identifier: Apache-2.0
#include "engine/native/flow/flow_cases.h"

int main(void)
{
    const td_native_flow_backend backend = {
        .ops = &td_ops_cpu, .config = {.threads = 2}, .tolerance = 1e-4};
    return td_native_flow_cases(&backend, "pi0") +
           td_native_flow_cases(&backend, "pi05");
}
