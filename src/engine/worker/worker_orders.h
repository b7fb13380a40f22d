// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_WORKER_ORDERS_H
#define TD_ENGINE_WORKER_WORKER_ORDERS_H

// For tests of the worker engine: what tests/worker/echo.c does for the first
// value of a state.
enum {
    DIES = 1001,
    HANGS,
    FAILS,
    GARBAGE,
    NO_ROWS,
    NOT_FINITE,
    PRINTS,
    LIES,
    NO_VALUES,
    DIES_DECODING,
    LOSES,
    GROWS,
    STARVES,
};

#endif
