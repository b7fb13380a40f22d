// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_INPROC_KEYEXPR_H
#define TD_NET_INPROC_KEYEXPR_H

// Keys and key expressions, as Zenoh has them: chunks joined by `/`, where a
// chunk `*` stands for any one and `**` for any number, none included. Neither
// stands for a chunk that begins with `@`. Zenoh's `$*`, a part of a chunk, is
// refused here: nothing of ours uses it.

#include "base/err.h"

#include <stdbool.h>

// INVALID, with a text, for what is not a key (no wildcards), or not a key
// expression in its shortest form.
TD_NODISCARD td_err td_inproc_keyexpr_check_key(const char *key,
                                                td_errinfo *info);
TD_NODISCARD td_err td_inproc_keyexpr_check(const char *keyexpr,
                                            td_errinfo *info);

// Whether some key matches both. Either may be a plain key.
bool td_inproc_keyexpr_intersects(const char *a, const char *b);

#endif
