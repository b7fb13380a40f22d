// SPDX-License-Identifier: Apache-2.0
// A piece of keys and values: how it comes to shared memory, and what 16 rows
// of a warp make of it.
#ifndef TD_ENGINE_NATIVE_CUDA_ATTENTION_PIECE_CUH
#define TD_ENGINE_NATIVE_CUDA_ATTENTION_PIECE_CUH

#include "engine/native/cuda/device.cuh"

#define MOST_CLUSTER 8

// Keys of one head of one member: first those that are past.
typedef struct keys {
    const bf16 *past_k, *past_v, *k, *v;
    int past_k_row, past_v_row, k_row, v_row;
    int past, count, size;
} keys;

// Which keys this thread's two rows (lane / 4, and 8 further) see.
typedef struct sight {
    int from[2], to[2];
} sight;

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

// What a warp has seen of its rows.
template <int SIZE> struct running {
    float most[2], total[2];
    float sum[SIZE / 8][4];

    __device__ __forceinline__ void begin()
    {
        most[0] = most[1] = -INFINITY;
        total[0] = total[1] = 0;
#pragma unroll
        for (int i = 0; i < SIZE / 8; i++)
            for (int j = 0; j < 4; j++)
                sum[i][j] = 0;
    }

    // The total of all four lanes that have the row.
    __device__ __forceinline__ float whole(int half) const
    {
        float all = total[half];
        all += __shfl_xor_sync(~0u, all, 1);
        return all + __shfl_xor_sync(~0u, all, 2);
    }

    // From scores to powers of 2, of their distance to the largest so far. A
    // row that has seen nothing yet has minus infinity for that.
    template <int KEYS>
    __device__ __forceinline__ void soften(float (&score)[KEYS / 8][4],
                                           float scale)
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float now = -INFINITY;
#pragma unroll
            for (int i = 0; i < KEYS / 8; i++)
                now = fmaxf(now,
                            fmaxf(score[i][2 * half], score[i][2 * half + 1]));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
            now = fmaxf(now * scale, most[half]);
            const float base = now == -INFINITY ? 0 : now;
            const float fade = power_of_2(most[half] - base);
            float sums = 0;
#pragma unroll
            for (int i = 0; i < KEYS / 8; i++)
                for (int j = 2 * half; j < 2 * half + 2; j++) {
                    score[i][j] = power_of_2(score[i][j] * scale - base);
                    sums += score[i][j];
                }
            most[half] = now;
            total[half] = total[half] * fade + sums;
#pragma unroll
            for (int i = 0; i < SIZE / 8; i++) {
                sum[i][2 * half] *= fade;
                sum[i][2 * half + 1] *= fade;
            }
        }
    }
};

// THREADS copy it, a warp takes it: first keys, then values.
template <int SIZE, int KEYS, int THREADS> struct piece {
    static constexpr int pitch = SIZE + 8; // in values: no two banks meet
    static constexpr uint32_t bytes = KEYS * pitch * 2; // of each of the two

    // 16 bytes of a key, or zeros.
    __device__ __forceinline__ static void
    copy_chunk(const keys *of, const bf16 *past, const bf16 *fresh,
               int past_row, int fresh_row, int key, int chunk, uint32_t to)
    {
        const bool is_past = key < of->past;
        const bf16 *from = is_past ? past : fresh;
        const int row = is_past ? past_row : fresh_row;
        const bool is = key < of->count && chunk < of->size;
        key = is ? key - (is_past ? 0 : of->past) : 0;
        if (!is && from == NULL) from = past;
        copy16(to, from + (int64_t)key * row + (is ? chunk : 0), is ? 16 : 0);
    }

    __device__ __forceinline__ static void
    copy_one(const keys *of, const bf16 *past, const bf16 *fresh, int past_row,
             int fresh_row, int first, uint32_t to)
    {
        constexpr int chunks = SIZE / 8;
        const int thread = (int)threadIdx.x % THREADS;
        if constexpr (THREADS % chunks == 0) {
            const int row = thread / chunks, chunk = thread % chunks * 8;
            to += (uint32_t)(row * pitch + chunk) * 2;
#pragma unroll
            for (int i = 0; i < KEYS; i += THREADS / chunks)
                if (row + i < KEYS)
                    copy_chunk(of, past, fresh, past_row, fresh_row,
                               first + row + i, chunk,
                               to + (uint32_t)(i * pitch) * 2);
        } else {
#pragma unroll 4
            for (int i = thread; i < KEYS * chunks; i += THREADS)
                copy_chunk(
                    of, past, fresh, past_row, fresh_row, first + i / chunks,
                    i % chunks * 8,
                    to + (uint32_t)(i / chunks * pitch + i % chunks * 8) * 2);
        }
    }

    __device__ static void copy(const keys *of, int first, uint32_t to)
    {
        copy_one(of, of->past_k, of->k, of->past_k_row, of->k_row, first, to);
        copy_one(of, of->past_v, of->v, of->past_v_row, of->v_row, first,
                 to + bytes);
    }

    __device__ __forceinline__ static void
    score(float (&scores)[KEYS / 8][4], const uint32_t (&query)[SIZE / 16][4],
          uint32_t memory)
    {
        const int lane = (int)threadIdx.x % 32;
        uint32_t four[4];
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++) {
            uint32_t row = memory + (uint32_t)((i * 8 + lane % 8) * pitch) * 2;
#pragma unroll
            for (int j = 0; j < SIZE / 32; j++) { // 32 values of a key at once
                load_matrices(four, row + (uint32_t)(j * 4 + lane / 8) * 16);
                multiply16(scores[i], query[2 * j], four[0], four[1]);
                multiply16(scores[i], query[2 * j + 1], four[2], four[3]);
            }
            if constexpr (SIZE % 32 != 0) {
                load_matrices(
                    four, row + (uint32_t)(SIZE / 32 * 4 + lane / 8 % 2) * 16);
                multiply16(scores[i], query[SIZE / 16 - 1], four[0], four[1]);
            }
        }
    }

    __device__ __forceinline__ static void hide(float (&scores)[KEYS / 8][4],
                                                int first, const sight *sees)
    {
        const int lane = (int)threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++)
            for (int j = 0; j < 4; j++) {
                int key = first + i * 8 + lane % 4 * 2 + j % 2;
                if (key < sees->from[j / 2] || key >= sees->to[j / 2])
                    scores[i][j] = -INFINITY;
            }
    }

    __device__ __forceinline__ static void
    take(running<SIZE> *r, const uint32_t (&query)[SIZE / 16][4],
         uint32_t memory, int first, const sight *sees, float scale)
    {
        const int lane = (int)threadIdx.x % 32;
        float scores[KEYS / 8][4] = {};
        uint32_t four[4];
        score(scores, query, memory);
        if (first < sees->from[0] || first < sees->from[1] ||
            first + KEYS > sees->to[0] || first + KEYS > sees->to[1])
            hide(scores, first, sees);
        r->template soften<KEYS>(scores, scale);
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            const uint32_t weight[4] = {
                pack(scores[2 * i][0], scores[2 * i][1]),
                pack(scores[2 * i][2], scores[2 * i][3]),
                pack(scores[2 * i + 1][0], scores[2 * i + 1][1]),
                pack(scores[2 * i + 1][2], scores[2 * i + 1][3])};
            uint32_t row =
                memory + bytes + (uint32_t)((i * 16 + lane % 16) * pitch) * 2;
#pragma unroll
            for (int j = 0; j < SIZE / 16; j++) {
                load_transposed(four, row + (uint32_t)(j * 2 + lane / 16) * 16);
                multiply16(r->sum[2 * j], weight, four[0], four[1]);
                multiply16(r->sum[2 * j + 1], weight, four[2], four[3]);
            }
        }
    }
};

// What TIMES groups of warps have seen of the same ROWS, in the shared memory
// of their block: sums and, of each row, the largest score and the total. The
// block joins them, and what it has then is joined with that of the other
// blocks of its cluster.
template <int SIZE, int TIMES, int ROWS> struct partial {
    static constexpr int pitch = SIZE + 8;
    static constexpr int stats = TIMES * ROWS * pitch; // where those begin
    static constexpr int joined = stats + TIMES * ROWS * 2;
    static constexpr int joined_stats = joined + ROWS * pitch;
    static constexpr uint32_t bytes = (joined_stats + ROWS * 2) * 4;
    float *memory;

    __device__ __forceinline__ void leave(const running<SIZE> *r) const
    {
        const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float all = r->whole(half);
            const int row = warp * 16 + lane / 4 + half * 8;
            if (lane % 4 == 0)
                *(float2 *)(memory + stats + row * 2) =
                    make_float2(r->most[half], all);
#pragma unroll
            for (int i = 0; i < SIZE / 8; i++)
                *(float2 *)(memory + row * pitch + i * 8 + lane % 4 * 2) =
                    make_float2(r->sum[i][2 * half], r->sum[i][2 * half + 1]);
        }
    }

    // Two columns of a row: what the warps have seen of it. Adds to *ret_two.
    __device__ __forceinline__ float2 join(int row, int column,
                                           float2 *ret_two) const
    {
        float2 of[TIMES];
        float largest = -INFINITY, all = 0;
#pragma unroll
        for (int time = 0; time < TIMES; time++) {
            of[time] =
                *(const float2 *)(memory + stats + (time * ROWS + row) * 2);
            largest = fmaxf(largest, of[time].x);
        }
        const float base = largest == -INFINITY ? 0 : largest;
#pragma unroll
        for (int time = 0; time < TIMES; time++) {
            const float2 two = *(
                const float2 *)(memory + (time * ROWS + row) * pitch + column);
            const float share = power_of_2(of[time].x - base);
            all += share * of[time].y;
            ret_two->x += share * two.x;
            ret_two->y += share * two.y;
        }
        return make_float2(largest, all);
    }

    // Of the block, for the others.
    __device__ __forceinline__ void keep(int row, int column, float2 two,
                                         float2 of) const
    {
        *(float2 *)(memory + joined + row * pitch + column) = two;
        if (column == 0) *(float2 *)(memory + joined_stats + row * 2) = of;
    }

    __device__ __forceinline__ float2 at(int place, int rank) const
    {
        float2 value;
        asm volatile("{\n.reg .b32 there;\n"
                     "mapa.shared::cluster.u32 there, %2, %3;\n"
                     "ld.shared::cluster.v2.f32 {%0, %1}, [there];\n}\n"
                     : "=f"(value.x), "=f"(value.y)
                     : "r"(shared_address(memory + place)), "r"(rank)
                     : "memory");
        return value;
    }

    // Two columns of a row, of all blocks.
    __device__ __forceinline__ uint32_t join_all(int blocks, int row,
                                                 int column) const
    {
        float2 of[MOST_CLUSTER], two[MOST_CLUSTER];
        float largest = -INFINITY, all = 0, low = 0, high = 0;
#pragma unroll
        for (int i = 0; i < MOST_CLUSTER; i++)
            if (i < blocks) {
                of[i] = at(joined_stats + row * 2, i);
                two[i] = at(joined + row * pitch + column, i);
            }
#pragma unroll
        for (int i = 0; i < MOST_CLUSTER; i++)
            if (i < blocks) largest = fmaxf(largest, of[i].x);
#pragma unroll
        for (int i = 0; i < MOST_CLUSTER; i++)
            if (i < blocks) {
                const float share = power_of_2(of[i].x - largest);
                all += share * of[i].y;
                low += share * two[i].x;
                high += share * two[i].y;
            }
        return pack(low / all, high / all);
    }
};

#endif
