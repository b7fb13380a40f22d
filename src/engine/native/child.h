// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_CHILD_H
#define TD_ENGINE_NATIVE_CHILD_H

// The native engine on a GPU, as a worker (tendon/worker.h): what a driver does
// to a process it does to this one alone. The server starts it from its own
// program, as `tendon native-worker [COEFFICIENT]`.

// What the manifest calls the first GPU, and those after it: "cuda:1".
#define TD_NATIVE_CHILD_DEVICE "cuda"

// Of its command line; NULL where it says nothing.
typedef struct td_native_child_options {
    const char *tokenizer; // the path of a tokenizer.json; NULL: that of the
                           // checkpoint's folder
    const char *ensemble;  // the coefficient of the temporal ensemble, which it
                           // keeps for each client; NULL: there is none
    const char *prefixes;  // megabytes of prefixes that are kept; NULL: none
} td_native_child_options;

// Serves until the server ends it. Returns the process' exit status: 0, or 1
// when it could not load, which the server was told, or when the GPU failed.
int td_native_child_run(const td_native_child_options *options);

#endif
