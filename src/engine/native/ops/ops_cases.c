// SPDX-License-Identifier: Apache-2.0
// The cases of tests/golden/ops.json on any backend, against PyTorch's numbers.
//
// A case names an operation and its sizes; its inputs and weights are made from
// the case's name (hashed.h), as tests/golden/make_ops.py made them, so that
// the file only holds what PyTorch gave. Each case is built as a graph of its
// own, run, and its output compared, with a tolerance of the largest value.
// What a backend says it does not support is counted and printed, and is no
// failure.
//
// To add an operation: its function here or in ops_token_cases.c, its row in
// `operations`, and its cases in make_ops.py.
#include "engine/native/ops/ops_cases.h"

#include "base/err.h"
#include "engine/native/ops/hashed.h"
#include "engine/native/ops/ops_case.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GOLDEN TD_SOURCE_DIR "/tests/golden/"

uint32_t td_ops_case_size(const td_ops_case *w, const char *name)
{
    return (uint32_t)json_integer_value(json_object_get(w->sizes, name));
}

bool td_ops_case_is(const td_ops_case *w, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(w->sizes, name));
    return text && strcmp(text, value) == 0;
}

bool td_ops_case_holds(const td_ops_case *w, const char *name)
{
    return json_is_true(json_object_get(w->sizes, name));
}

// Numbers of the case: "ops/12/x".
float *td_ops_case_numbers(td_ops_case *w, const char *part, uint32_t rank,
                           uint64_t inputs, size_t count)
{
    char name[2 * TD_OPS_CASE_NAME];
    (void)snprintf(name, sizeof name, "%s/%s", w->name, part);
    float *values = malloc((count + 1) * sizeof *values);
    if (!values || w->kept_count == TD_OPS_CASE_INPUTS) abort();
    if (rank)
        td_native_hashed_weights(name, rank, inputs, count, values);
    else
        td_native_hashed_floats(name, count, values);
    w->kept[w->kept_count++] = values;
    return values;
}

td_ops_source td_ops_case_source(td_ops_case *w, const char *part,
                                 uint32_t rank, uint64_t inputs, size_t count)
{
    return (td_ops_source){td_ops_case_numbers(w, part, rank, inputs, count),
                           TD_OPS_F32};
}

// A view with a gap after each row and member, so that strides are used, which
// are multiples of 8.
td_err td_ops_case_room(td_ops_case *w, uint32_t batch, uint32_t rows,
                        uint32_t cols, td_ops_view *ret_view)
{
    void *data = NULL;
    size_t stride = ((size_t)cols + 15) / 8 * 8;
    td_ops_view view = {.dtype = w->dtype,
                        .batch = batch,
                        .rows = rows,
                        .cols = cols,
                        .row_stride = stride,
                        .batch_stride = (rows + 1) * stride};
    TD_TRY(w->ops->alloc(w->backend,
                         batch * view.batch_stride * td_ops_bytes(w->dtype),
                         &data, &w->info));
    view.data = data;
    *ret_view = view;
    return TD_OK;
}

static td_err dense(td_ops_case *w, uint32_t batch, uint32_t rows,
                    uint32_t cols, td_ops_view *ret_view)
{
    void *data = NULL;
    size_t count = (size_t)batch * rows * cols;
    TD_TRY(w->ops->alloc(w->backend, count * td_ops_bytes(w->dtype), &data,
                         &w->info));
    *ret_view = td_ops_dense(data, w->dtype, batch, rows, cols);
    return TD_OK;
}

td_err td_ops_case_fill(td_ops_case *w, const char *part, td_ops_view view)
{
    uint32_t members = view.batch_stride ? view.batch : 1;
    float *values = td_ops_case_numbers(
        w, part, 0, 0, (size_t)members * view.rows * view.cols);
    return w->ops->upload(w->backend, &view, values, &w->info);
}

td_err td_ops_case_open_out(td_ops_case *w, uint32_t batch, uint32_t rows,
                            uint32_t cols)
{
    size_t count = (size_t)batch * rows * cols;
    TD_TRY(
        w->ops->alloc_io(w->backend, count * sizeof(float), &w->out, &w->info));
    w->out_view = td_ops_dense(w->out.device, TD_OPS_F32, batch, rows, cols);
    return TD_OK;
}

td_err td_ops_case_give(td_ops_case *w)
{
    const td_ops_view *view = &w->out_view;
    return w->ops->copy_out(w->backend, &w->out,
                            view->batch * view->batch_stride * sizeof(float),
                            &w->info);
}

// Out through a linear that changes nothing.
td_err td_ops_case_give_as_it_is(td_ops_case *w, td_ops_view from,
                                 td_ops_linear_weight *same)
{
    const td_ops_linear op = {.weight = same, .x = from, .out = w->out_view};
    TD_TRY(w->ops->linear(w->backend, &op, &w->info));
    return td_ops_case_give(w);
}

td_err td_ops_case_make_same(td_ops_case *w, uint32_t cols,
                             td_ops_linear_weight **ret)
{
    float *one = calloc((size_t)cols * cols, sizeof *one);
    if (!one) abort();
    for (uint32_t i = 0; i < cols; i++)
        one[(size_t)i * cols + i] = 1;
    w->kept[w->kept_count++] = one;
    const td_ops_linear_source same = {
        .weight = {one, TD_OPS_F32}, .in = cols, .out = cols};
    return w->ops->linear_weight(w->backend, &same, ret, &w->info);
}

static td_err make_norm(td_ops_case *w, uint32_t cols, td_ops_norm **ret_norm)
{
    const td_ops_norm_source norm = {
        .weight = td_ops_case_source(w, "n.weight", 1, 1, cols),
        .bias = td_ops_case_source(w, "n", 1, 1, cols),
        .cols = cols,
        .epsilon = 1e-5f,
    };
    return w->ops->norm_weight(w->backend, &norm, ret_norm, &w->info);
}

// x of a linear: of any width where it comes from outside.
static td_err linear_input(td_ops_case *w, td_ops_view *ret_x)
{
    uint32_t batch = td_ops_case_size(w, "batch"),
             rows = td_ops_case_size(w, "rows");
    uint32_t cols = td_ops_case_size(w, "inputs");
    if (cols % 8 == 0) {
        TD_TRY(td_ops_case_room(w, batch, rows, cols, ret_x));
        return td_ops_case_fill(w, "x", *ret_x);
    }
    size_t count = (size_t)batch * rows * cols;
    TD_TRY(
        w->ops->alloc_io(w->backend, count * sizeof(float), &w->in, &w->info));
    memcpy(w->in.host, td_ops_case_numbers(w, "x", 0, 0, count),
           count * sizeof(float));
    *ret_x = td_ops_dense(w->in.device, TD_OPS_F32, batch, rows, cols);
    return TD_OK;
}

static td_ops_activation act_of(const td_ops_case *w)
{
    if (td_ops_case_is(w, "act", "relu")) return TD_OPS_RELU;
    return td_ops_case_is(w, "act", "gelu") ? TD_OPS_GELU
                                            : TD_OPS_NO_ACTIVATION;
}

static td_err linear_operands(td_ops_case *w, td_ops_linear *op)
{
    uint32_t in = td_ops_case_size(w, "inputs"),
             out = td_ops_case_size(w, "outputs");
    uint32_t batch = td_ops_case_size(w, "batch"),
             rows = td_ops_case_size(w, "rows");
    td_ops_linear_weight *weight = NULL;
    td_ops_norm *norm = NULL;
    const td_ops_linear_source from = {
        .weight = td_ops_case_source(w, "w", 2, in, (size_t)in * out),
        .bias = td_ops_case_source(w, "b", 1, 1, out),
        .in = in,
        .out = out,
    };
    TD_TRY(w->ops->linear_weight(w->backend, &from, &weight, &w->info));
    op->weight = weight;
    op->activation = act_of(w);
    if (!td_ops_case_is(w, "add", "none")) {
        TD_TRY(td_ops_case_room(w, batch, rows, out, &op->add));
        if (td_ops_case_is(w, "add", "table"))
            op->add = td_ops_shared(op->add, batch);
        TD_TRY(td_ops_case_fill(w, "add", op->add));
    }
    if (!td_ops_case_holds(w, "norm")) return TD_OK;
    TD_TRY(make_norm(w, out, &norm));
    op->norm = norm;
    return td_ops_case_room(w, batch, rows, out, &op->normed);
}

static td_err build_linear(td_ops_case *w)
{
    uint32_t out = td_ops_case_size(w, "outputs");
    uint32_t batch = td_ops_case_size(w, "batch"),
             rows = td_ops_case_size(w, "rows");
    bool straight = out % 8 != 0; // out of the backend
    td_ops_linear op = {0};
    td_ops_linear_weight *same = NULL;
    TD_TRY(linear_operands(w, &op));
    TD_TRY(linear_input(w, &op.x));
    TD_TRY(td_ops_case_make_same(w, out, &same));
    TD_TRY(td_ops_case_open_out(w, batch, rows, out));
    if (straight)
        op.out = w->out_view;
    else if (!op.norm)
        TD_TRY(td_ops_case_room(w, batch, rows, out, &op.out));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    if (w->in.host)
        TD_TRY(w->ops->copy_in(w->backend, &w->in,
                               op.x.batch * op.x.batch_stride * sizeof(float),
                               &w->info));
    TD_TRY(w->ops->linear(w->backend, &op, &w->info));
    if (straight) return td_ops_case_give(w);
    return td_ops_case_give_as_it_is(w, op.norm ? op.normed : op.out, same);
}

static td_err build_norm(td_ops_case *w)
{
    uint32_t cols = td_ops_case_size(w, "cols");
    td_ops_norm *norm = NULL;
    td_ops_linear_weight *same = NULL;
    td_ops_view x, out;
    TD_TRY(make_norm(w, cols, &norm));
    TD_TRY(td_ops_case_make_same(w, cols, &same));
    TD_TRY(td_ops_case_room(w, td_ops_case_size(w, "batch"),
                            td_ops_case_size(w, "rows"), cols, &x));
    TD_TRY(td_ops_case_room(w, x.batch, x.rows, cols, &out));
    TD_TRY(td_ops_case_fill(w, "x", x));
    TD_TRY(td_ops_case_open_out(w, x.batch, x.rows, cols));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    TD_TRY(w->ops->norm(w->backend, norm, &x, &out, &w->info));
    return td_ops_case_give_as_it_is(w, out, same);
}

static td_err build_attention(td_ops_case *w)
{
    uint32_t batch = td_ops_case_size(w, "batch"),
             heads = td_ops_case_size(w, "heads");
    uint32_t cols = heads * td_ops_case_size(w, "size");
    td_ops_linear_weight *same = NULL;
    td_ops_attention op = {
        .heads = heads,
        .scale = 3.0f / sqrtf((float)td_ops_case_size(w, "size")),
    };
    TD_TRY(td_ops_case_make_same(w, cols, &same));
    TD_TRY(td_ops_case_room(w, batch, td_ops_case_size(w, "queries"), cols,
                            &op.q));
    if (td_ops_case_holds(w, "shared")) op.q = td_ops_shared(op.q, batch);
    TD_TRY(
        td_ops_case_room(w, batch, td_ops_case_size(w, "keys"), cols, &op.k));
    TD_TRY(td_ops_case_room(w, batch, op.k.rows, cols, &op.v));
    TD_TRY(td_ops_case_room(w, batch, op.q.rows, cols, &op.out));
    TD_TRY(td_ops_case_fill(w, "q", op.q));
    TD_TRY(td_ops_case_fill(w, "k", op.k));
    TD_TRY(td_ops_case_fill(w, "v", op.v));
    TD_TRY(td_ops_case_open_out(w, batch, op.q.rows, cols));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    TD_TRY(w->ops->attention(w->backend, &op, &w->info));
    return td_ops_case_give_as_it_is(w, op.out, same);
}

static td_err make_conv(td_ops_case *w, const char *weight, const char *bias,
                        const char *scale, td_ops_conv_source from,
                        td_ops_conv_weight **ret_weight)
{
    size_t area = (size_t)from.kernel * from.kernel;
    from.weight = td_ops_case_source(w, weight, 4, area * from.in,
                                     area * from.in * from.out);
    from.bias = td_ops_case_numbers(w, bias, 1, 1, from.out);
    if (scale) from.scale = td_ops_case_numbers(w, scale, 1, 1, from.out);
    from.pad = from.kernel / 2 * from.dilation;
    return w->ops->conv_weight(w->backend, &from, ret_weight, &w->info);
}

static td_err add_shortcut(td_ops_case *w, td_ops_conv *op)
{
    const json_t *shortcut = json_object_get(w->sizes, "joined");
    uint32_t sizes[4];
    if (!json_is_array(shortcut)) return TD_OK;
    for (size_t i = 0; i < 4; i++)
        sizes[i] = (uint32_t)json_integer_value(json_array_get(shortcut, i));
    op->shortcut_height = sizes[0];
    op->shortcut_width = sizes[1];
    TD_TRY(make_conv(w, "jw", "jb", NULL,
                     (td_ops_conv_source){.in = sizes[2],
                                          .out = td_ops_case_size(w, "outputs"),
                                          .kernel = 1,
                                          .stride = sizes[3],
                                          .dilation = 1},
                     &op->shortcut_weight));
    TD_TRY(dense(w, op->x.batch, sizes[0] * sizes[1], sizes[2], &op->shortcut));
    return td_ops_case_fill(w, "joined", op->shortcut);
}

static td_err conv_input(td_ops_case *w, td_ops_conv *op)
{
    uint32_t batch = td_ops_case_size(w, "batch"),
             rows = op->height * op->width;
    if (!op->pixels) {
        TD_TRY(dense(w, batch, rows, td_ops_case_size(w, "inputs"), &op->x));
        return td_ops_case_fill(w, "x", op->x);
    }
    char name[2 * TD_OPS_CASE_NAME];
    size_t count = (size_t)batch * rows * 3;
    (void)snprintf(name, sizeof name, "%s/x", w->name);
    TD_TRY(w->ops->alloc_io(w->backend, count, &w->in, &w->info));
    td_native_hashed_pixels(name, count, w->in.host);
    op->x = td_ops_dense(w->in.device, TD_OPS_U8, batch, rows, 3);
    return TD_OK;
}

static td_ops_pixels colours(td_ops_case *w)
{
    td_ops_pixels pixels;
    const float *scale = td_ops_case_numbers(w, "scale", 1, 1, 3);
    const float *shift = td_ops_case_numbers(w, "shift", 1, 1, 3);
    for (int i = 0; i < 3; i++) {
        pixels.scale[i] = scale[i] / 255;
        pixels.shift[i] = shift[i];
    }
    return pixels;
}

static uint32_t conv_side(const td_ops_case *w, uint32_t side)
{
    uint32_t kernel = td_ops_case_size(w, "kernel"),
             dilation = td_ops_case_size(w, "dilation");
    side = td_ops_conv_size(side, kernel, td_ops_case_size(w, "stride"),
                            kernel / 2 * dilation, dilation);
    return td_ops_case_holds(w, "pool") ? td_ops_conv_size(side, 3, 2, 1, 1)
                                        : side;
}

static td_err build_conv(td_ops_case *w)
{
    td_ops_pixels pixels;
    td_ops_linear_weight *same = NULL;
    td_ops_conv op = {
        .height = td_ops_case_size(w, "height"),
        .width = td_ops_case_size(w, "width"),
        .activation = act_of(w),
        .pool = td_ops_case_holds(w, "pool"),
    };
    uint32_t out = td_ops_case_size(w, "outputs");
    uint32_t rows = conv_side(w, op.height) * conv_side(w, op.width);
    if (td_ops_case_holds(w, "pixels")) {
        pixels = colours(w);
        op.pixels = &pixels;
    }
    TD_TRY(conv_input(w, &op));
    TD_TRY(make_conv(
        w, "w", "b", "n.weight",
        (td_ops_conv_source){.in = td_ops_case_size(w, "inputs"),
                             .out = out,
                             .kernel = td_ops_case_size(w, "kernel"),
                             .stride = td_ops_case_size(w, "stride"),
                             .dilation = td_ops_case_size(w, "dilation")},
        &op.weight));
    TD_TRY(td_ops_case_make_same(w, out, &same));
    TD_TRY(dense(w, op.x.batch, rows, out, &op.out));
    if (td_ops_case_holds(w, "add")) {
        TD_TRY(dense(w, op.x.batch, rows, out, &op.add));
        TD_TRY(td_ops_case_fill(w, "add", op.add));
    }
    TD_TRY(add_shortcut(w, &op));
    TD_TRY(td_ops_case_open_out(w, op.x.batch, rows, out));
    TD_TRY(w->ops->begin(w->backend, &w->info));
    if (op.pixels)
        TD_TRY(w->ops->copy_in(w->backend, &w->in,
                               (size_t)op.x.batch * op.x.rows * 3, &w->info));
    TD_TRY(w->ops->conv(w->backend, &op, &w->info));
    return td_ops_case_give_as_it_is(w, op.out, same);
}

static const struct {
    const char *name;
    td_err (*build)(td_ops_case *w);
} operations[] = {
    {"linear", build_linear},         {"norm", build_norm},
    {"attention", build_attention},   {"conv", build_conv},
    {"rms", td_ops_case_rms},         {"token", td_ops_case_token},
    {"grouped", td_ops_case_grouped}, {"embed", td_ops_case_embed},
    {"blocks", td_ops_case_blocks},   {"step", td_ops_case_step},
};

static td_err compute(td_ops_case *w)
{
    td_ops_graph *graph = NULL;
    for (size_t i = 0; i < TD_COUNT_OF(operations); i++)
        if (td_ops_case_is(w, "op", operations[i].name))
            TD_TRY(operations[i].build(w));
    TD_TRY(w->ops->end(w->backend, &graph, &w->info));
    return w->ops->run(w->backend, graph, &w->info);
}

// How far off the worst number is, in parts of the largest.
static double compare(const td_ops_case *w, const float *want, size_t count)
{
    const float *got = w->out.host;
    double most = 0, off = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)want[i]));
        off = fmax(off, fabs((double)got[i] - (double)want[i]));
        if (!isfinite(got[i])) return INFINITY;
    }
    return off / most;
}

typedef struct tally {
    int failed, unsupported, cases;
    double worst;
} tally;

static void run_case(const td_ops *ops, const td_ops_config *config,
                     const json_t *sizes, size_t index, const float *want,
                     double tolerance, tally *sum)
{
    td_ops_case w = {.ops = ops, .sizes = sizes};
    td_ops_info backend;
    (void)snprintf(w.name, sizeof w.name, "ops/%zu", index);
    td_err err = ops->open(config, &w.backend, &w.info);
    double off = INFINITY;
    if (err == TD_OK) {
        ops->info(w.backend, &backend);
        w.dtype = backend.dtype;
        err = compute(&w);
        if (err == TD_OK)
            off = compare(&w, want, td_ops_case_size(&w, "count"));
        ops->close(w.backend);
    }
    sum->cases++;
    if (err == TD_ERR_UNSUPPORTED) {
        sum->unsupported++;
    } else if (err != TD_OK || !(off <= tolerance)) {
        char *text = json_dumps(sizes, JSON_COMPACT);
        (void)fprintf(stderr, "%s: case %zu: %s %s, off by %g: %s\n", ops->name,
                      index, td_err_name(err), w.info.text, off, text);
        free(text);
        sum->failed++;
    } else {
        sum->worst = fmax(sum->worst, off);
    }
    for (size_t i = 0; i < w.kept_count; i++)
        free(w.kept[i]);
}

static float *read_results(size_t *ret_count)
{
    struct stat seen;
    FILE *file = fopen(GOLDEN "ops.f32", "rbe");
    if (!file || fstat(fileno(file), &seen) != 0) abort();
    size_t bytes = (size_t)seen.st_size;
    float *results = malloc(bytes);
    if (!results || fread(results, 1, bytes, file) != bytes) abort();
    (void)fclose(file);
    *ret_count = bytes / sizeof *results;
    return results;
}

int td_ops_cases(const td_ops *ops, const td_ops_config *config,
                 double tolerance)
{
    td_errinfo info = {.text = ""};
    td_ops_backend *backend = NULL;
    json_t *golden = json_load_file(GOLDEN "ops.json", 0, NULL);
    if (!golden) abort();
    if (ops->open(config, &backend, &info) != TD_OK) {
        (void)fprintf(stderr, "%s: %s\n", ops->name, info.text);
        json_decref(golden);
        return -1;
    }
    ops->close(backend);
    size_t count = 0, index, at = 0;
    json_t *sizes;
    tally sum = {0};
    float *results = read_results(&count);
    json_array_foreach(json_object_get(golden, "cases"), index, sizes)
    {
        size_t size =
            (size_t)json_integer_value(json_object_get(sizes, "count"));
        if (at + size > count) abort();
        run_case(ops, config, sizes, index, results + at, tolerance, &sum);
        at += size;
    }
    (void)printf("%s: %d cases, %d not supported, worst off by %.1e\n",
                 ops->name, sum.cases, sum.unsupported, sum.worst);
    free(results);
    json_decref(golden);
    return sum.failed;
}
