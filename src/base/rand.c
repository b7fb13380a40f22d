// SPDX-License-Identifier: Apache-2.0
#include "base/rand.h"

#define GAMMA UINT64_C(0x9e3779b97f4a7c15)

// A bijection in which every input bit reaches every output bit.
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void td_rand_init(td_rand *rand, uint64_t seed)
{
    rand->state = seed;
}

void td_rand_fork(const td_rand *rand, uint64_t index, td_rand *ret_rand)
{
    ret_rand->state = mix(rand->state ^ mix(index + GAMMA));
}

uint64_t td_rand_u64(td_rand *rand)
{
    rand->state += GAMMA;
    return mix(rand->state);
}

double td_rand_unit(td_rand *rand)
{
    return (double)(td_rand_u64(rand) >> 11) * 0x1p-53;
}

// Twelve uniforms have variance 1. Logarithms and cosines would be closer in
// the far tails, but their last bit differs between machines.
double td_rand_normal(td_rand *rand)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += td_rand_unit(rand);
    return sum;
}
