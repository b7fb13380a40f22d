// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_NATIVE_FLOW_NOISE_H
#define TD_ENGINE_NATIVE_FLOW_NOISE_H

// The noise that a chunk begins as: what PyTorch's generator on a processor
// gives for a seed (torch.Generator().manual_seed(seed), torch.normal of
// float32 with mean 0 and deviation 1), so that LeRobot can make the same
// chunk. Pure.

#include <stddef.h>
#include <stdint.h>

// PyTorch draws fewer in another way.
#define TD_NATIVE_NOISE_LEAST 16

// `count` numbers, at least TD_NATIVE_NOISE_LEAST. Any thread.
void td_native_noise_fill(uint64_t seed, size_t count, float *ret_values);

#endif
