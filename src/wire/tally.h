// SPDX-License-Identifier: Apache-2.0
#ifndef TD_WIRE_TALLY_H
#define TD_WIRE_TALLY_H

// Fills a metrics message. Names are borrowed. What is beyond the message's
// room is left out, which is a programmer's error.

#include "base/hist.h"
#include "tendon/wire.h"

void td_wire_tally_counter(td_wire_metrics *metrics, const char *name,
                           uint64_t value);
void td_wire_tally_gauge(td_wire_metrics *metrics, const char *name,
                         double value);

// A histogram of nanoseconds, in milliseconds.
void td_wire_tally_hist(td_wire_metrics *metrics, const char *name,
                        const td_hist *hist_ns);

void td_wire_tally_quantiles(td_wire_metrics *metrics,
                             const td_wire_quantiles *quantiles);

#endif
