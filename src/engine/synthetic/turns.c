// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/turns.h"

static int64_t later_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

int64_t td_engine_synthetic_turns_take(td_engine_synthetic_turns *turns,
                                       int64_t submitted_ns, int64_t prepare_ns,
                                       int64_t device_ns)
{
    turns->prepared_ns =
        later_ns(submitted_ns, turns->prepared_ns) + prepare_ns;
    turns->free_ns = later_ns(turns->prepared_ns, turns->free_ns) + device_ns;
    return turns->free_ns;
}
