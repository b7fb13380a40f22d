// SPDX-License-Identifier: Apache-2.0
// Attention: out = softmax(q kT scale) v, in each head of each member.
//
// A block has 16 queries of one head: its four warps each take every fourth
// piece of 32 keys, keep their own running softmax (the largest so far, the
// total, the weighted sum), and join at the end, in a fixed order. Few queries
// make many small blocks, which is what a policy has.
//
// Keys and values of the next piece are copied while one is worked on, into
// shared memory of the warp's own, so that warps never wait for each other
// before the end. Products are mma of 16 x 8 x 16 in bf16 with sums in float.
// SIZE is the head's, or the next larger one that was compiled, with zeros.
#include "engine/native/cuda/device.cuh"
#include "engine/native/cuda/launch.cuh"

#define QUERIES 16
#define KEYS 32 // in a piece
#define WARPS 4
#define PITCH(size) ((size) + 8) // of a key in shared memory, in values

// sum (16 x 8) += a (16 x 16) times b (8 x 16) transposed.
__device__ static inline void multiply16(float (&sum)[4], const uint32_t *a,
                                         uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0),
                   "r"(b1));
}

// 2 to the power of x, to 2^-22 of it; 0 for what is far below.
__device__ static inline float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

// Four 8 x 8 matrices, a row of each from each lane's address.
__device__ static inline void load_matrices(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
                 "[%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

__device__ static inline void load_transposed(uint32_t (&to)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, "
                 "%3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// A piece of keys, or of values, into this warp's shared memory.
template <int SIZE>
__device__ static inline void copy_piece(const td_native_cuda_rows *rows,
                                         const bf16 *at, int first, int keys,
                                         int size, uint32_t to)
{
    for (int i = (int)threadIdx.x % 32; i < KEYS * SIZE / 8; i += 32) {
        int key = i / (SIZE / 8), chunk = i % (SIZE / 8);
        bool is = first + key < keys && chunk * 8 < size;
        const bf16 *from = at + (int64_t)(first + key) * rows->row + chunk * 8;
        copy16(to + (uint32_t)(key * PITCH(SIZE) + chunk * 8) * 2,
               is ? from : at, is ? 16 : 0);
    }
}

template <int SIZE>
__device__ static inline void copy_both(const td_native_cuda_attention *a,
                                        const bf16 *k, const bf16 *v, int first,
                                        uint32_t to)
{
    constexpr uint32_t piece_bytes = KEYS * PITCH(SIZE) * 2;
    copy_piece<SIZE>(&a->k, k, first, a->keys, a->size, to);
    copy_piece<SIZE>(&a->v, v, first, a->keys, a->size, to + piece_bytes);
}

// What a warp has seen of its two queries (lane / 4, and 8 further).
template <int SIZE> struct running {
    float most[2], total[2];
    float sum[SIZE / 8][4];
};

// From scores to powers of 2, of their distance to the largest so far, which is
// finite: a piece has a key.
template <int SIZE>
__device__ static inline void soften(running<SIZE> *r,
                                     float (&score)[KEYS / 8][4], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = -INFINITY;
        for (int i = 0; i < KEYS / 8; i++)
            most =
                fmaxf(most, fmaxf(score[i][2 * half], score[i][2 * half + 1]));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        most = fmaxf(most * scale, r->most[half]);
        float fade = power_of_2(r->most[half] - most), total = 0;
        for (int i = 0; i < KEYS / 8; i++)
            for (int j = 2 * half; j < 2 * half + 2; j++) {
                score[i][j] = power_of_2(score[i][j] * scale - most);
                total += score[i][j];
            }
        r->most[half] = most;
        r->total[half] = r->total[half] * fade + total;
        for (int i = 0; i < SIZE / 8; i++) {
            r->sum[i][2 * half] *= fade;
            r->sum[i][2 * half + 1] *= fade;
        }
    }
}

// One piece: scores, softmax, values.
template <int SIZE>
__device__ static inline void
take_piece(running<SIZE> *r, const uint32_t (&query)[SIZE / 16][4],
           uint32_t keys, uint32_t values, int left, float scale)
{
    const int lane = (int)threadIdx.x % 32;
    float score[KEYS / 8][4] = {};
    uint32_t four[4];
#pragma unroll
    for (int i = 0; i < KEYS / 8; i++) {
        uint32_t row = keys + (uint32_t)((i * 8 + lane % 8) * PITCH(SIZE)) * 2;
        if (SIZE == 16) {
            load_matrices(four, row + (uint32_t)(lane / 8 % 2) * 16);
            multiply16(score[i], query[0], four[0], four[1]);
        }
#pragma unroll
        for (int j = 0; j < SIZE / 32; j++) { // 32 values of a key at once
            load_matrices(four, row + (uint32_t)(j * 4 + lane / 8) * 16);
            multiply16(score[i], query[2 * j], four[0], four[1]);
            multiply16(score[i], query[2 * j + 1], four[2], four[3]);
        }
    }
    if (left < KEYS)
        for (int i = 0; i < KEYS / 8; i++)
            for (int j = 0; j < 4; j++)
                if (i * 8 + lane % 4 * 2 + j % 2 >= left)
                    score[i][j] = -INFINITY;
    soften(r, score, scale);
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) {
        const uint32_t weight[4] = {
            pack(score[2 * i][0], score[2 * i][1]),
            pack(score[2 * i][2], score[2 * i][3]),
            pack(score[2 * i + 1][0], score[2 * i + 1][1]),
            pack(score[2 * i + 1][2], score[2 * i + 1][3])};
        uint32_t row =
            values + (uint32_t)((i * 16 + lane % 16) * PITCH(SIZE)) * 2;
#pragma unroll
        for (int j = 0; j < SIZE / 16; j++) {
            load_transposed(four, row + (uint32_t)(j * 2 + lane / 16) * 16);
            multiply16(r->sum[2 * j], weight, four[0], four[1]);
            multiply16(r->sum[2 * j + 1], weight, four[2], four[3]);
        }
    }
}

template <int SIZE>
__device__ static inline void load_queries(const bf16 *at, int row_stride,
                                           int queries, int size,
                                           uint32_t (&query)[SIZE / 16][4])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < SIZE / 16; i++)
        for (int j = 0; j < 4; j++) {
            int row = min(lane / 4 + j % 2 * 8, queries - 1);
            int column = i * 16 + j / 2 * 8 + lane % 4 * 2;
            query[i][j] = 0;
            if (column < size)
                query[i][j] = *(
                    const uint32_t *)(at + (int64_t)row * row_stride + column);
        }
}

// Joins what the warps have seen.
template <int SIZE>
__device__ static inline void join(running<SIZE> *r, float *memory, bf16 *out,
                                   int row_stride, int queries, int size)
{
    constexpr int pitch = SIZE + 8;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    float *sums = memory + warp * QUERIES * pitch;
    float *most = memory + WARPS * QUERIES * pitch; // [warp][query]
    float *total = most + WARPS * QUERIES;
    for (int half = 0; half < 2; half++) {
        float all = r->total[half];
        all += __shfl_xor_sync(~0u, all, 1);
        all += __shfl_xor_sync(~0u, all, 2);
        int query = lane / 4 + half * 8;
        if (lane % 4 == 0) {
            most[warp * QUERIES + query] = r->most[half];
            total[warp * QUERIES + query] = all;
        }
        for (int i = 0; i < SIZE / 8; i++)
            *(float2 *)(sums + query * pitch + i * 8 + lane % 4 * 2) =
                make_float2(r->sum[i][2 * half], r->sum[i][2 * half + 1]);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < QUERIES * SIZE / 2; i += WARPS * 32) {
        int query = i / (SIZE / 2), column = i % (SIZE / 2) * 2;
        if (query >= queries || column >= size) continue;
        float largest = most[query], all = 0, low = 0, high = 0;
        for (int w = 1; w < WARPS; w++)
            largest = fmaxf(largest, most[w * QUERIES + query]);
        for (int w = 0; w < WARPS; w++) {
            float share = power_of_2(most[w * QUERIES + query] - largest);
            float2 two =
                *(const float2 *)(memory + (w * QUERIES + query) * pitch +
                                  column);
            all += share * total[w * QUERIES + query];
            low += share * two.x;
            high += share * two.y;
        }
        *(uint32_t *)(out + (int64_t)query * row_stride + column) =
            pack(low / all, high / all);
    }
}

template <int SIZE>
__global__ void __launch_bounds__(WARPS * 32)
    attention_kernel(const __grid_constant__ td_native_cuda_attention a)
{
    constexpr uint32_t piece_bytes = KEYS * PITCH(SIZE) * 2;
    extern __shared__ uint8_t shared[];
    const int warp = (int)threadIdx.x / 32;
    const int first_query = (int)blockIdx.x * QUERIES;
    const int head = (int)blockIdx.y * a.size, batch = (int)blockIdx.z;
    const bf16 *k = a.k.at + batch * a.k.batch + head;
    const bf16 *v = a.v.at + batch * a.v.batch + head;
    // For each warp two places, each a piece of keys and one of values.
    const uint32_t memory =
        shared_address(shared) + (uint32_t)warp * 4 * piece_bytes;

    wait_for_earlier();
    int first = warp * KEYS;
    if (first < a.keys) copy_both<SIZE>(&a, k, v, first, memory);
    copy_commit();
    uint32_t query[SIZE / 16][4];
    load_queries<SIZE>(a.q.at + batch * a.q.batch +
                           (int64_t)first_query * a.q.row + head,
                       a.q.row, a.queries - first_query, a.size, query);
    running<SIZE> r = {};
    r.most[0] = r.most[1] = -INFINITY;
    for (int place = 0; first < a.keys; place ^= 1) {
        uint32_t here = memory + (uint32_t)place * 2 * piece_bytes;
        uint32_t there = memory + (uint32_t)(place ^ 1) * 2 * piece_bytes;
        int next = first + WARPS * KEYS;
        if (next < a.keys) copy_both<SIZE>(&a, k, v, next, there);
        copy_commit();
        copy_wait<1>();
        __syncwarp();
        take_piece<SIZE>(&r, query, here, here + piece_bytes, a.keys - first,
                         a.scale * 1.44269504f); // exp(x) is exp2(x * this)
        __syncwarp();
        first = next;
    }
    copy_wait<0>();
    let_next_start();
    __syncthreads();
    join<SIZE>(&r, (float *)shared,
               a.out.at + batch * a.out.batch +
                   (int64_t)first_query * a.out.row + head,
               a.out.row, a.queries - first_query, a.size);
}

template <int SIZE>
static cudaError_t run_size(const td_native_cuda_attention *a,
                            td_native_cuda_order order)
{
    launch how = {};
    how.grid = dim3((unsigned)((a->queries + QUERIES - 1) / QUERIES),
                    (unsigned)a->heads, (unsigned)a->batches);
    how.threads = WARPS * 32;
    how.shared_bytes = (size_t)WARPS * 4 * KEYS * PITCH(SIZE) * 2;
    return start(attention_kernel<SIZE>, &how, a, order);
}

cudaError_t
td_native_cuda_attention_run(const td_native_cuda_attention *attention,
                             td_native_cuda_order order)
{
    if (attention->size <= 16) return run_size<16>(attention, order);
    if (attention->size <= 32) return run_size<32>(attention, order);
    if (attention->size <= 64) return run_size<64>(attention, order);
    return run_size<128>(attention, order);
}
