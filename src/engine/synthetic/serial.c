// SPDX-License-Identifier: Apache-2.0
#include "engine/synthetic/serial.h"

static int64_t later_ns(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

int64_t td_engine_synthetic_serial_take(td_engine_synthetic_serial *serial,
                                        int64_t submitted_ns,
                                        int64_t prepare_ns, int64_t device_ns)
{
    serial->prepared_ns =
        later_ns(submitted_ns, serial->prepared_ns) + prepare_ns;
    serial->free_ns =
        later_ns(serial->prepared_ns, serial->free_ns) + device_ns;
    return serial->free_ns;
}
