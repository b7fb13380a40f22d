// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_PIPELINE_PROMPT_H
#define TD_ENGINE_NATIVE_PIPELINE_PROMPT_H

// The text that a policy's tokenizer is given, made of the task as LeRobot
// makes it. Pure.

#include "base/err.h"
#include "tendon/wire.h"

// A task, and the longest state that can be written after it.
#define TD_NATIVE_PROMPT_BYTES                                                 \
    (TD_WIRE_MAX_TEXT + 5 * TD_WIRE_MAX_CHANNELS + 64)

typedef struct td_native_prompt {
    char text[TD_NATIVE_PROMPT_BYTES]; // not NUL-terminated
    size_t size;
} td_native_prompt;

// LIMIT for a task beyond TD_WIRE_MAX_TEXT.
TD_NODISCARD td_err td_native_prompt_init(td_native_prompt *prompt,
                                          td_wire_text task, td_errinfo *info);

// Ends it with a new line, if it does not yet.
void td_native_prompt_end_line(td_native_prompt *prompt);

// pi05's: the task without space around it, and the state, of values around -1
// to 1, in 256 steps. `count` is at most TD_WIRE_MAX_CHANNELS.
void td_native_prompt_add_state(td_native_prompt *prompt, const float *state,
                                uint32_t count);

#endif
