// SPDX-License-Identifier: Apache-2.0
// The first layers of a ResNet over 8-bit frames. A block makes 3 x 8 pixels of
// the result, from 7 x 17 of the convolution, from 19 x 39 of the frame, and
// nothing between leaves its shared memory. The filters see 24 values in each
// of their 7 rows, of which the last three meet zeros in the weight.
#include "engine/native/cuda/device.cuh"
#include "engine/native/cuda/launch.cuh"

#define POOLED_Y 3
#define POOLED_X 8
#define CONV_Y (2 * POOLED_Y + 1)
#define CONV_X (2 * POOLED_X + 1)
#define FRAME_Y (2 * CONV_Y + 5)
#define FRAME_X (2 * CONV_X + 5)
#define FRAME_PITCH (FRAME_X * 3 + 5) // values; a row is read up to 3 beyond
#define OUTS 64
#define THREADS 128
#define PIECES 3                  // of K, 64 values each
#define CHUNKS 21                 // of K that are not zeros, 8 values each
#define FILTER_BYTES (OUTS * 128) // a piece of B
#define OUT_PITCH (OUTS + 8)      // values
#define SHARED_BYTES                                                           \
    (PIECES * FILTER_BYTES + THREADS * OUT_PITCH * 2 +                         \
     FRAME_Y * FRAME_PITCH * 2 + 1024)

static_assert(CONV_Y * CONV_X <= THREADS, "two halves of 64 pixels");
static_assert(FRAME_PITCH % 2 == 0 && FRAME_PITCH <= THREADS, "pairs");

__device__ static void copy_filters(const td_native_cuda_stem *stem,
                                    uint32_t to)
{
    for (int i = (int)threadIdx.x; i < OUTS * PIECES * 8; i += THREADS) {
        int out = i / (PIECES * 8), chunk = i % (PIECES * 8);
        copy16(to + chunk / 8 * FILTER_BYTES + swizzled(out, chunk % 8),
               stem->weight + i * 8, 16);
    }
    copy_commit();
}

// Until the pieces are there that the block's part of the frame is in.
__device__ static void wait_for_pieces(const td_native_cuda_stem *stem,
                                       int first_y)
{
    const int line = stem->width * 3;
    const int end = min(first_y + FRAME_Y, stem->height) * line;
    int piece = max(first_y, 0) * line / TD_NATIVE_CUDA_PIECE;
    for (piece += (int)threadIdx.x; piece * TD_NATIVE_CUDA_PIECE < end;
         piece += THREADS)
        wait_until_said(stem->there + piece);
    __syncthreads();
}

// The block's part of the frame, scaled, with zeros around: a thread does a
// column, so that all its bytes are under way at once.
__device__ static void scale_frame(const td_native_cuda_stem *stem, int batch,
                                   int first_y, int first_x, bf16 *frame)
{
    int column = (int)threadIdx.x, channel = column % 3;
    int x = first_x + column / 3;
    if (column >= FRAME_PITCH) return;
    bool is = (unsigned)x < (unsigned)stem->width;
    float scale = stem->scale[channel], shift = stem->shift[channel];
    const uint8_t *from = stem->x +
                          (int64_t)batch * stem->height * stem->width * 3 +
                          x * 3 + channel;
#pragma unroll
    for (int i = 0; i < FRAME_Y; i++) {
        int y = first_y + i;
        float value = 0;
        if (is && (unsigned)y < (unsigned)stem->height)
            value = from[y * stem->width * 3] * scale + shift;
        frame[i * FRAME_PITCH + column] = __float2bfloat16(value);
    }
}

// Where in the frame the filters begin for a pixel of the convolution.
__device__ static const uint32_t *corner(const bf16 *frame, int pixel)
{
    int y = pixel / CONV_X, x = pixel % CONV_X;
    if (y >= CONV_Y) y = x = 0;
    return (const uint32_t *)(frame + y * 2 * FRAME_PITCH + x * 6);
}

// Pair number `lane % 4` of a chunk of K.
__device__ static inline uint32_t pair_of(const uint32_t *corner, int chunk)
{
    if (chunk >= CHUNKS) return 0;
    return corner[chunk / 3 * (FRAME_PITCH / 2) + chunk % 3 * 4 +
                  (int)threadIdx.x % 4];
}

// Half of the convolution's pixels.
__device__ static void convolve_half(const bf16 *frame, uint32_t filters,
                                     int half, float (&sum)[32])
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int pixel = half * 64 + warp * 16 + lane / 4;
    const uint32_t *upper = corner(frame, pixel);
    const uint32_t *lower = corner(frame, pixel + 8);
    constexpr int steps = (CHUNKS + 1) / 2;
    uint32_t a[steps][4];
#pragma unroll
    for (int i = 0; i < steps; i++) {
        a[i][0] = pair_of(upper, 2 * i);
        a[i][1] = pair_of(lower, 2 * i);
        a[i][2] = pair_of(upper, 2 * i + 1);
        a[i][3] = pair_of(lower, 2 * i + 1);
    }
    wgmma_begin();
#pragma unroll
    for (int i = 0; i < steps; i++)
        multiply(sum, a[i],
                 matrix_at(filters + i / 4 * FILTER_BYTES) + i % 4 * 2, 1);
    wgmma_commit();
    wgmma_wait<0>();
}

// Half of the convolution's pixels, as the warps hold them, into `out`.
__device__ static void put_half(const td_native_cuda_stem *stem,
                                const float (&sum)[32], int half, bf16 *out)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int row = half * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < OUTS / 8; i++) {
        int column = i * 8 + lane % 4 * 2;
        float2 bias = *(const float2 *)(stem->bias + column);
        uint32_t *to = (uint32_t *)(out + row * OUT_PITCH + column);
        to[0] = pack(fmaxf(sum[4 * i] + bias.x, 0),
                     fmaxf(sum[4 * i + 1] + bias.y, 0));
        to[8 * OUT_PITCH / 2] = pack(fmaxf(sum[4 * i + 2] + bias.x, 0),
                                     fmaxf(sum[4 * i + 3] + bias.y, 0));
    }
}

// After relu nothing is below the zeros that stand for what is outside.
__device__ static void pool(const td_native_cuda_stem *stem, int batch,
                            int pooled_y, int pooled_x, const bf16 *out)
{
    int conv_height = td_native_cuda_halved(stem->height);
    int conv_width = td_native_cuda_halved(stem->width);
    int height = td_native_cuda_halved(conv_height);
    int width = td_native_cuda_halved(conv_width);
    for (int i = (int)threadIdx.x; i < POOLED_Y * POOLED_X * (OUTS / 8);
         i += THREADS) {
        int chunk = i % (OUTS / 8), pixel = i / (OUTS / 8);
        int y = pixel / POOLED_X, x = pixel % POOLED_X;
        if (pooled_y + y >= height || pooled_x + x >= width) continue;
        __nv_bfloat162 most[4] = {};
        for (int near = 0; near < 9; near++) {
            int conv_y = 2 * y + near / 3, conv_x = 2 * x + near % 3;
            int all_y = 2 * pooled_y - 1 + conv_y;
            int all_x = 2 * pooled_x - 1 + conv_x;
            if ((unsigned)all_y >= (unsigned)conv_height ||
                (unsigned)all_x >= (unsigned)conv_width)
                continue;
            const __nv_bfloat162 *here =
                (const __nv_bfloat162 *)(out +
                                         (conv_y * CONV_X + conv_x) *
                                             OUT_PITCH +
                                         chunk * 8);
            for (int j = 0; j < 4; j++)
                most[j] = __hmax2(most[j], here[j]);
        }
        int64_t at =
            ((int64_t)batch * height + pooled_y + y) * width + pooled_x + x;
        *(uint4 *)(stem->out + at * OUTS + chunk * 8) = *(const uint4 *)most;
    }
}

__global__ void __launch_bounds__(THREADS, 4)
    stem_kernel(const __grid_constant__ td_native_cuda_stem stem)
{
    extern __shared__ uint8_t shared[];
    const uint32_t filters = (shared_address(shared) + 1023) & ~1023u;
    uint8_t *memory = shared + (filters - shared_address(shared));
    bf16 *out = (bf16 *)(memory + PIECES * FILTER_BYTES);
    bf16 *frame = out + THREADS * OUT_PITCH;
    const int pooled_x = (int)blockIdx.x * POOLED_X;
    const int pooled_y = (int)blockIdx.y * POOLED_Y;
    const int batch = (int)blockIdx.z;

    const int first_y = 2 * (2 * pooled_y - 1) - 3;
    copy_filters(&stem, filters);
    if (stem.there)
        wait_for_pieces(&stem, first_y);
    else
        wait_for_earlier();
    scale_frame(&stem, batch, first_y, 2 * (2 * pooled_x - 1) - 3, frame);
    copy_wait<0>();
    shared_for_wgmma();
    __syncthreads();
    for (int half = 0; half < 2; half++) {
        float sum[32] = {};
        convolve_half(frame, filters, half, sum);
        put_half(&stem, sum, half, out);
    }
    let_next_start();
    __syncthreads();
    pool(&stem, batch, pooled_y, pooled_x, out);
}

cudaError_t td_native_cuda_stem_run(const td_native_cuda_stem *stem,
                                    td_native_cuda_order order)
{
    int height = td_native_cuda_halved(td_native_cuda_halved(stem->height));
    int width = td_native_cuda_halved(td_native_cuda_halved(stem->width));
    launch how = {};
    how.grid = dim3((unsigned)((width + POOLED_X - 1) / POOLED_X),
                    (unsigned)((height + POOLED_Y - 1) / POOLED_Y),
                    (unsigned)stem->batches);
    how.threads = THREADS;
    how.shared_bytes = SHARED_BYTES;
    return start(stem_kernel, &how, stem, order);
}
