// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

TD_FUZZ_WIRE(attach)
