// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CORE_CHECK_H
#define TD_SERVER_CORE_CHECK_H

// What the pictures of an observation must be before it may wait, so that a bad
// one never meets a good one in a batch.

#include "engine/engine.h"
#include "engine/picture.h"

// Each camera's picture, where there is one, by its header: whole enough to
// have one, of the size that the model wants. FORMAT, LIMIT, UNSUPPORTED,
// MISMATCH with "images.NAME: ..." in `info`. Takes microseconds.
TD_NODISCARD td_err td_server_check_pictures(const td_engine_spec *spec,
                                             const td_wire_obs *obs,
                                             td_errinfo *info);

#endif
