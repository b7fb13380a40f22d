// SPDX-License-Identifier: Apache-2.0
// MT19937 (Matsumoto and Nishimura, 1998) and the Box-Muller transform, in the
// order in which PyTorch uses them: 24 bits of each draw are a number below 1;
// of 16 numbers the first eight give radii, the others angles, and both a
// cosine and a sine. What is left over at the end is drawn anew, for the
// last 16.
#include "engine/native/flow/noise.h"

#include <math.h>

#define WORDS 624
#define MIDDLE 397
#define GROUP 16

typedef struct twister {
    uint32_t words[WORDS];
    uint32_t next;
} twister;

// Of the seed PyTorch uses the lower half.
static void seed_twister(twister *of, uint64_t seed)
{
    of->words[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < WORDS; i++)
        of->words[i] =
            1812433253u * (of->words[i - 1] ^ (of->words[i - 1] >> 30)) + i;
    of->next = WORDS;
}

static void turn_twister(twister *of)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t both = (of->words[i] & 0x80000000u) |
                        (of->words[(i + 1) % WORDS] & 0x7fffffffu);
        of->words[i] = of->words[(i + MIDDLE) % WORDS] ^ (both >> 1) ^
                       (both & 1 ? 0x9908b0dfu : 0);
    }
    of->next = 0;
}

static uint32_t draw(twister *of)
{
    if (of->next == WORDS) turn_twister(of);
    uint32_t word = of->words[of->next++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    return word ^ (word >> 18);
}

static void draw_group(twister *of, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)(draw(of) & 0xffffffu) * 0x1p-24f;
}

// GROUP numbers from 0 to 1, in place.
static void make_normal(float *group)
{
    for (int i = 0; i < GROUP / 2; i++) {
        float radius = sqrtf(-2.0f * logf(1.0f - group[i]));
        float angle = 6.28318530718f * group[i + GROUP / 2];
        group[i] = radius * cosf(angle);
        group[i + GROUP / 2] = radius * sinf(angle);
    }
}

void td_native_noise_fill(uint64_t seed, size_t count, float *ret_values)
{
    twister of;
    seed_twister(&of, seed);
    draw_group(&of, count, ret_values);
    for (size_t i = 0; i + GROUP <= count; i += GROUP)
        make_normal(ret_values + i);
    if (count % GROUP == 0) return;
    draw_group(&of, GROUP, ret_values + count - GROUP);
    make_normal(ret_values + count - GROUP);
}
