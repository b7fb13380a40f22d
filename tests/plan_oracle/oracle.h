// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_PLAN_ORACLE_H
#define TESTS_PLAN_ORACLE_H

// Random problems for the planner, each from a seed, for others to check.

#include <stdint.h>

// Prints a packing problem for each of `count` seeds from this one on, with our
// answer, as a line of JSON. Exit codes.
int oracle_packings(uint64_t seed, uint64_t count);

// Holds the search to an exhaustive grid of rates, and every rate vector that a
// failing one would prune to failing too. Prints what it found.
int oracle_grid(uint64_t seed, uint64_t count);

#endif
