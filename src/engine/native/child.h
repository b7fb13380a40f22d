// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHILD_H
#define TD_ENGINE_NATIVE_CHILD_H

// The native engine on a GPU, as a worker (tendon/worker.h): what a driver does
// to a process it does to this one alone. The server starts it from its own
// program, as `tendon native-worker`.

// What the manifest calls the first GPU, and those after it: "cuda:1".
#define TD_NATIVE_CHILD_DEVICE "cuda"

// Serves until the server ends it. `tokenizer` is the path of a tokenizer.json,
// or NULL: that of the checkpoint's folder. Returns the process' exit status:
// 0, or 1 when it could not load, which the server was told, or when the GPU
// failed.
int td_native_child_run(const char *tokenizer);

#endif
