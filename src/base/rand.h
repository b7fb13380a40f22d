// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_RAND_H
#define TD_BASE_RAND_H

// Seeded random numbers (splitmix64): the same seed gives the same numbers on
// every machine, so that a simulated fault can be replayed.

#include <stdint.h>

typedef struct td_rand {
    uint64_t state;
} td_rand;

void td_rand_init(td_rand *rand, uint64_t seed);

// A generator of its own for part `index` of something seeded.
void td_rand_fork(const td_rand *rand, uint64_t index, td_rand *ret_rand);

uint64_t td_rand_u64(td_rand *rand);
double td_rand_unit(td_rand *rand);   // [0, 1)
double td_rand_normal(td_rand *rand); // mean 0, deviation 1, within 6 of 0

#endif
