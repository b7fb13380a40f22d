// SPDX-License-Identifier: Apache-2.0
// The innermost loops of a kernel, included once by each file that defines
// KERNEL_NAME, KERNEL_TEXT and LANES, the floats in a vector. The compiler's
// vector types make the same C fit all instruction sets.
//
// multiply: STRIP rows times a panel of two vectors, in registers from end to
// end; a row's sum is added up in the same order however many rows there are,
// which is why answers are the same bits in every batch. softmax, norms
// and sigmoid: a row at a time, exp by a polynomial. tile_in and tile_out:
// Winograd's two transforms, for tiles of 4 x 4 and 6 x 6 numbers, a vector of
// channels at a time.
//
// Everything is static but the table at the end. Files that include this are
// compiled with the flags of cmake/native.cmake.

#include "engine/native/cpu/kernel.h"

#include <math.h>
#include <string.h>

#define PANEL ((size_t)2 * LANES)
#define STRIP 6 // rows: 12 sums, two vectors of the panel and one of a row

_Static_assert(PANEL <= TD_NATIVE_CPU_MAX_PANEL, "room for a panel");

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t whole __attribute__((vector_size(LANES * 4)));
typedef float loose
    __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec load(const float *from)
{
    return *(const loose *)from;
}

static inline void store(float *to, vec value)
{
    *(loose *)to = value;
}

static inline vec all(float value)
{
    return (vec){0} + value;
}

static inline vec larger(vec a, vec b)
{
    whole mask = a > b;
    return (vec)(((whole)a & mask) | ((whole)b & ~mask));
}

static inline float sum_of(vec value)
{
    float sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += value[i];
    return sum;
}

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)

// STRIP rows of a product.
static inline void strip(const td_native_cpu_product *p, const float *const *a,
                         float *const *c)
{
    const float *b = p->panel;
#define BEGIN(r) vec low##r = {0}, high##r = {0};
#define TAKE(r) low##r = load(c[r]), high##r = load(c[r] + LANES);
    EACH_ROW(BEGIN)
    if (!p->fresh) {
        EACH_ROW(TAKE)
    }
    for (uint32_t run = 0; run < p->runs; run++) {
        size_t start = p->starts[run];
#define ROW(r) const float *a##r = a[r] + start;
        EACH_ROW(ROW)
        for (uint32_t k = 0; k < p->depth; k++, b += PANEL) {
            vec low = load(b), high = load(b + LANES);
#define ADD(r)                                                                 \
    low##r += a##r[k] * low;                                                   \
    high##r += a##r[k] * high;
            EACH_ROW(ADD)
        }
    }
#define END(r) store(c[r], low##r), store(c[r] + LANES, high##r);
    EACH_ROW(END)
#undef BEGIN
#undef TAKE
#undef ROW
#undef ADD
#undef END
}

// The last columns, of which there are fewer than a panel has.
static void strip_narrow(const td_native_cpu_product *p, const float *const *a,
                         float *const *c)
{
    float room[STRIP][PANEL] = {{0}};
    float *sums[STRIP];
    for (int r = 0; r < STRIP; r++) {
        memcpy(room[r], c[r], p->cols * sizeof(float));
        sums[r] = room[r];
    }
    strip(p, a, sums);
    for (int r = 0; r < STRIP; r++)
        memcpy(c[r], room[r], p->cols * sizeof(float));
}

// The last strip repeats its last row: all copies hold the same.
static void multiply(const td_native_cpu_product *p)
{
    for (uint32_t first = 0; first < p->rows; first += STRIP) {
        const float *a[STRIP];
        float *c[STRIP];
        for (uint32_t r = 0; r < STRIP; r++) {
            uint32_t row = first + r < p->rows ? first + r : p->rows - 1;
            a[r] = p->a + row * p->a_stride;
            c[r] = p->c + row * p->c_stride;
        }
        if (p->cols == PANEL)
            strip(p, a, c);
        else
            strip_narrow(p, a, c);
    }
}

// e^x for x <= 0, to the last bits (Cephes): 2^n times a polynomial.
static inline vec exponential(vec x)
{
    const float to_whole = 12582912.0f; // 1.5 * 2^23: what is added is rounded
    x = larger(x, all(-87.0f));
    vec n = x * 1.44269504f + to_whole;
    n -= to_whole;
    vec r = x - n * 0.693359375f;
    r += n * 2.12194440e-4f;
    vec y = r * 1.9875691500e-4f + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    whole power = (__builtin_convertvector(n, whole) + 127) << 23;
    return y * (vec)power;
}

static float largest(const float *row, uint32_t count)
{
    vec most = all(row[0]);
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        most = larger(load(row + i), most);
    float value = most[0];
    for (int lane = 1; lane < LANES; lane++)
        value = most[lane] > value ? most[lane] : value;
    for (; i < count; i++)
        value = row[i] > value ? row[i] : value;
    return value;
}

static void softmax(float *row, uint32_t count, float scale)
{
    float most = largest(row, count) * scale;
    vec sums = {0};
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec value = exponential(load(row + i) * scale - most);
        store(row + i, value);
        sums += value;
    }
    float sum = sum_of(sums);
    for (; i < count; i++)
        sum += row[i] = exponential(all(row[i] * scale - most))[0];
    float part = 1.0f / sum;
    for (i = 0; i + LANES <= count; i += LANES)
        store(row + i, load(row + i) * part);
    for (; i < count; i++)
        row[i] *= part;
}

static float mean_of(const float *row, uint32_t count)
{
    vec sums = {0};
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        sums += load(row + i);
    float sum = sum_of(sums);
    for (; i < count; i++)
        sum += row[i];
    return sum / (float)count;
}

static float variance_of(const float *row, uint32_t count, float mean)
{
    vec sums = {0};
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec away = load(row + i) - mean;
        sums += away * away;
    }
    float sum = sum_of(sums);
    for (; i < count; i++)
        sum += (row[i] - mean) * (row[i] - mean);
    return sum / (float)count;
}

static void norm(const float *row, const float *weight, const float *bias,
                 uint32_t count, float epsilon, float *out)
{
    float mean = mean_of(row, count);
    float factor = 1.0f / sqrtf(variance_of(row, count, mean) + epsilon);
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(out + i, (load(row + i) - mean) * factor * load(weight + i) +
                           load(bias + i));
    for (; i < count; i++)
        out[i] = (row[i] - mean) * factor * weight[i] + bias[i];
}

static float square_of(const float *row, uint32_t count)
{
    vec sums = {0};
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec value = load(row + i);
        sums += value * value;
    }
    float sum = sum_of(sums);
    for (; i < count; i++)
        sum += row[i] * row[i];
    return sum / (float)count;
}

static void rms(const float *row, const float *weight, const float *bias,
                float base, uint32_t count, float epsilon, float *out)
{
    float factor = 1.0f / sqrtf(square_of(row, count) + epsilon);
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vec value = load(row + i) * factor * (load(weight + i) + base);
        store(out + i, bias ? value + load(bias + i) : value);
    }
    for (; i < count; i++)
        out[i] = row[i] * factor * (weight[i] + base) + (bias ? bias[i] : 0);
}

// With e^-|z|, which is at most 1, nothing overflows.
static inline vec sigmoid_of(vec x, vec z)
{
    vec one = all(1.0f), size = larger(z, -z);
    vec power = exponential(-size);
    whole below = z < (vec){0};
    vec top = (vec)(((whole)power & below) | ((whole)one & ~below));
    return x * top / (one + power);
}

static inline vec sigmoid_at(vec x, bool tanh)
{
    return sigmoid_of(x, tanh ? x * (x * x * 0.071354814f + 1.5957691f) : x);
}

static void sigmoid(float *row, uint32_t count, bool tanh)
{
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store(row + i, sigmoid_at(load(row + i), tanh));
    for (; i < count; i++)
        row[i] = sigmoid_at(all(row[i]), tanh)[0];
}

// One line of a tile of 6, or of 4, into the space of Winograd (Lavin and Gray,
// 2015: the points 0, 1, -1, 2, -2; or 0, 1, -1). Lines lie `step` apart.
static inline void line_in(size_t side, const vec *d, size_t step, vec *to)
{
    if (side == 6) {
        vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step],
            d4 = d[4 * step], d5 = d[5 * step];
        to[0] = 4 * d0 - 5 * d2 + d4;
        to[step] = d4 + d3 - 4 * (d1 + d2);
        to[2 * step] = d4 - d3 + 4 * (d1 - d2);
        to[3 * step] = d4 - d2 + 2 * (d3 - d1);
        to[4 * step] = d4 - d2 - 2 * (d3 - d1);
        to[5 * step] = 4 * d1 - 5 * d3 + d5;
    } else {
        vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
        to[0] = d0 - d2;
        to[step] = d1 + d2;
        to[2 * step] = d2 - d1;
        to[3 * step] = d1 - d3;
    }
}

// And back: side - 2 numbers.
static inline void line_out(size_t side, const vec *m, size_t step, vec *to)
{
    if (side == 6) {
        vec plus = m[step] + m[2 * step], minus = m[step] - m[2 * step];
        vec wide = m[3 * step] + m[4 * step], odd = m[3 * step] - m[4 * step];
        vec m0 = m[0], m5 = m[5 * step];
        to[0] = m0 + plus + wide;
        to[step] = minus + 2 * odd;
        to[2 * step] = plus + 4 * wide;
        to[3 * step] = minus + 8 * odd + m5;
    } else {
        vec m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step];
        to[0] = m0 + m1 + m2;
        to[step] = m1 - m2 - m3;
    }
}

static inline __attribute__((always_inline)) void
tile_in_of(size_t side, const td_native_cpu_tile *tile,
           const float *const *pixels, float *to)
{
    for (uint32_t at = 0; at < tile->channels; at += LANES) {
        vec d[36];
        for (size_t i = 0; i < side * side; i++)
            d[i] = load(pixels[i] + at);
        for (size_t i = 0; i < side; i++)
            line_in(side, d + i, side, d + i);
        for (size_t i = 0; i < side; i++)
            line_in(side, d + i * side, 1, d + i * side);
        for (size_t i = 0; i < side * side; i++)
            store(to + i * tile->step + at, d[i]);
    }
}

static void tile_in(const td_native_cpu_tile *tile, const float *const *pixels,
                    float *to)
{
    if (tile->side == 6)
        tile_in_of(6, tile, pixels, to);
    else
        tile_in_of(4, tile, pixels, to);
}

static inline __attribute__((always_inline)) void
tile_out_of(size_t side, const td_native_cpu_tile *tile, const float *from,
            const float *bias, const float *const *adds, int relu,
            float *const *pixels)
{
    size_t wide = side - 2;
    for (uint32_t at = 0; at < tile->channels; at += LANES) {
        vec m[36];
        for (size_t i = 0; i < side * side; i++)
            m[i] = load(from + i * tile->step + at);
        for (size_t i = 0; i < side; i++)
            line_out(side, m + i, side, m + i);
        for (size_t i = 0; i < wide; i++)
            line_out(side, m + i * side, 1, m + i * side);
        vec shift = load(bias + at);
        for (size_t i = 0; i < wide * wide; i++) {
            if (!pixels[i]) continue;
            vec value = m[i / wide * side + i % wide] + shift;
            if (adds) value += load(adds[i] + at);
            if (relu) value = larger(value, (vec){0});
            store(pixels[i] + at, value);
        }
    }
}

static void tile_out(const td_native_cpu_tile *tile, const float *from,
                     const float *bias, const float *const *adds, int relu,
                     float *const *pixels)
{
    if (tile->side == 6)
        tile_out_of(6, tile, from, bias, adds, relu, pixels);
    else
        tile_out_of(4, tile, from, bias, adds, relu, pixels);
}

extern const td_native_cpu_kernel KERNEL_NAME;
const td_native_cpu_kernel KERNEL_NAME = {
    .name = KERNEL_TEXT,
    .panel = PANEL,
    .multiply = multiply,
    .softmax = softmax,
    .norm = norm,
    .rms = rms,
    .sigmoid = sigmoid,
    .tile_in = tile_in,
    .tile_out = tile_out,
};
