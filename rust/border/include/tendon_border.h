// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_BORDER_H
#define TENDON_BORDER_H

// What holds for every function of ours that is written in Rust.
//
// They return TDR_OK or a negative code, and write what a person needs to know
// into `err` (cut to `err_size`; NULL: nowhere). Outputs are untouched on
// failure. No panic crosses the border: one that is caught is counted and comes
// out as TDR_INTERNAL. Rust says it on stderr where `err` does not take its
// text, or with RUST_BACKTRACE set.

#include <stddef.h>
#include <stdint.h>

#define TDR_OK 0
#define TDR_INVALID (-1)
#define TDR_EXISTS (-2)
#define TDR_BUSY (-3)
#define TDR_IO (-4)
#define TDR_TIMEOUT (-5)
#define TDR_INTERNAL (-6)
#define TDR_UNSUPPORTED (-7)
#define TDR_FULL (-8)
#define TDR_LIMIT (-9)
#define TDR_MISMATCH (-10)

#endif
