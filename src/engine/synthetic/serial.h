// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_SYNTHETIC_SERIAL_H
#define TD_ENGINE_SYNTHETIC_SERIAL_H

// Batches on a device that runs one at a time, in the order of submission. What
// is not the device's, such as copying and unpacking, is done for the next
// while the one before runs. Pure: the time is an argument.

#include <stdint.h>

// All zeros: nothing was submitted yet.
typedef struct td_engine_synthetic_serial {
    int64_t prepared_ns; // when the newest was, or will be
    int64_t free_ns;     // when the device is
} td_engine_synthetic_serial;

// Takes in a batch, and returns when it will be through.
int64_t td_engine_synthetic_serial_take(td_engine_synthetic_serial *serial,
                                        int64_t submitted_ns,
                                        int64_t prepare_ns, int64_t device_ns);

#endif
