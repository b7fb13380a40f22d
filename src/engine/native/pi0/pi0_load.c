// SPDX-License-Identifier: Apache-2.0
// pi0 and pi0.5 from their checkpoints to the backend: options, weights,
// tables, memory.
//
// Options come from config.json and are checked before any weight is read,
// which is also all that `check` does. Sizes are the tensors'; the number of
// SigLIP's heads, the epsilons and the base of rotary angles are PaliGemma's,
// which LeRobot has in its code, too. Tensors may begin with "model." or, as
// openpi writes them, not.
//
// The times of the steps are known here. What they add in pi0, and how they
// modulate every norm of pi0.5's expert, are tables, computed once, in float32
// on the processor.
#include "engine/native/pi0/pi0.h"

#include <stdlib.h>
#include <string.h>

#define PALIGEMMA "paligemma_with_expert.paligemma.model."
#define LANGUAGE PALIGEMMA "language_model."
#define EXPERT "paligemma_with_expert.gemma_expert.model."
#define SIGLIP_HEADS 16
#define EPSILON 1e-6f
#define ROTARY_BASE 10000.0
#define MAX_STEPS 1000

static td_err read_options(const td_native_checkpoint *of,
                           td_native_pi0_options *ret_options, td_errinfo *info)
{
    td_json_at at = td_native_policy_options(&of->policy);
    td_native_pi0_options read = {.modulated =
                                      of->policy.type == TD_NATIVE_POLICY_PI05};
    TD_TRY(td_json_read_whole(&at, "num_inference_steps", 1, MAX_STEPS,
                              &read.steps, info));
    TD_TRY(td_json_read_whole(&at, "max_state_dim", 1,
                              TD_NATIVE_FLOW_MOST_STATE, &read.state_width,
                              info));
    TD_TRY(td_json_read_whole(&at, "max_action_dim", 1,
                              TD_NATIVE_FLOW_MOST_STATE, &read.action_width,
                              info));
    TD_TRY(td_json_read_number(&at, "min_period", &read.least_period, info));
    TD_TRY(td_json_read_number(&at, "max_period", &read.most_period, info));
    TD_TRY(td_native_guide_read(&at, &read.guide, info));
    if (!(read.least_period > 0) || !(read.most_period > 0))
        return td_json_read_fail(&at, "min_period", info, TD_ERR_FORMAT,
                                 "and max_period must be above 0");
    if (read.guide.trained && !read.modulated)
        return td_json_read_fail(&at, "rtc_config", info, TD_ERR_UNSUPPORTED,
                                 "mode: only pi05 can be trained for it");
    *ret_options = read;
    return TD_OK;
}

td_err td_native_pi0_check(const td_native_checkpoint *of, td_errinfo *info)
{
    td_native_pi0_options ignored;
    return read_options(of, &ignored, info);
}

// What a load works with.
typedef struct loading {
    td_native_model *model;
    td_native_pi0_network *to;
    const char *model_prefix; // "model." or ""
    td_errinfo *info;
} loading;

static void name_of(const loading *load, const char *name,
                    char ret_name[TD_NATIVE_NAME_BYTES])
{
    td_native_params_name(ret_name, "%s%s", load->model_prefix, name);
}

static td_err load_linear(const loading *load, const char *name, uint32_t in,
                          uint32_t out, td_ops_linear_weight **ret_weight)
{
    char whole[TD_NATIVE_NAME_BYTES];
    name_of(load, name, whole);
    return td_native_params_linear(load->model, whole, in, out, ret_weight,
                                   load->info);
}

static td_err load_siglip(const loading *load)
{
    char prefix[TD_NATIVE_NAME_BYTES];
    name_of(load, PALIGEMMA "vision_tower.vision_model", prefix);
    const td_native_siglip_config config = {
        .prefix = prefix,
        .heads = SIGLIP_HEADS,
        .epsilon = EPSILON,
        .side = load->model->checkpoint->policy.fit.width,
        .pictures = td_native_flow_pass(load->model),
    };
    return td_native_siglip_load(load->model, &config, &load->to->siglip,
                                 load->info);
}

static td_err load_flow(const loading *load, uint32_t vocabulary)
{
    td_native_pi0_network *to = load->to;
    td_native_siglip_shape seen = td_native_siglip_shape_of(to->siglip);
    uint32_t chunk = load->model->checkpoint->policy.chunk_rows;
    char name[TD_NATIVE_NAME_BYTES];
    uint64_t k[2];
    name_of(load, LANGUAGE "layers.0.self_attn.k_proj.weight", name);
    TD_TRY(td_native_params_shape(load->model, name, 2, k, load->info));
    name_of(load, LANGUAGE "layers", name);
    const td_native_flow_config config = {
        .picture_rows = seen.across * seen.across,
        .vocabulary = vocabulary,
        .state_width = to->options.modulated ? 0 : to->options.state_width,
        .action_width = to->options.action_width,
        .suffix_rows = to->options.modulated ? chunk : chunk + 1,
        .layers =
            td_native_params_layers(load->model, name, "mlp.up_proj.weight"),
        .kv_cols = 2 * (uint32_t)k[0],
        .holds = to->options.modulated,
        .guide = to->options.guide,
    };
    return td_native_flow_load(load->model, &config, &to->flow, load->info);
}

static td_err load_text(const loading *load)
{
    td_native_pi0_network *to = load->to;
    char prefix[TD_NATIVE_NAME_BYTES];
    name_of(load, LANGUAGE "layers", prefix);
    const td_native_tower_config config = {
        .prefix = prefix,
        .layers = to->flow.config.layers,
        .rows = to->flow.rows,
        .activation = TD_OPS_GELU_TANH,
        .norm = {.epsilon = EPSILON, .kind = TD_OPS_RMS_NORM, .base = 1},
        .ends_with_kv = true,
    };
    return td_native_tower_load(load->model, &config, &to->text, load->info);
}

static td_err load_expert(const loading *load)
{
    td_native_pi0_network *to = load->to;
    char prefix[TD_NATIVE_NAME_BYTES], last[TD_NATIVE_NAME_BYTES];
    name_of(load, EXPERT "layers", prefix);
    name_of(load, EXPERT "norm", last);
    const td_native_tower_config config = {
        .prefix = prefix,
        .last = last,
        .layers = to->text.layers,
        .rows = to->flow.config.suffix_rows,
        .activation = TD_OPS_GELU_TANH,
        .norm = {.epsilon = EPSILON, .kind = TD_OPS_RMS_NORM, .base = 1},
        .modulated = to->options.modulated,
    };
    TD_TRY(td_native_tower_load(load->model, &config, &to->expert, load->info));
    if (to->expert.heads != to->text.heads || to->expert.size != to->text.size)
        return td_fail(load->info, TD_ERR_MISMATCH,
                       "%s: the expert has %u heads of %u, the language model "
                       "%u of %u",
                       load->model->checkpoint->folder, to->expert.heads,
                       to->expert.size, to->text.heads, to->text.size);
    return TD_OK;
}

// pi0's: the state, and the layer that mixes times with actions, whose left
// half is the actions'.
static td_err load_mix(const loading *load)
{
    td_native_pi0_network *to = load->to;
    uint32_t d = to->expert.width;
    char name[TD_NATIVE_NAME_BYTES];
    const td_native_tensor *weight = NULL;
    TD_TRY(load_linear(load, "state_proj", to->options.state_width, d,
                       &to->state_proj));
    TD_TRY(load_linear(load, "action_time_mlp_out", d, d, &to->time_out));
    name_of(load, "action_time_mlp_in.weight", name);
    TD_TRY(td_native_params_tensor(load->model, name, 2,
                                   (const uint64_t[]){d, 2 * (uint64_t)d},
                                   &weight, load->info));
    const td_ops_linear_source source = {
        .weight = td_native_params_source(weight, 0),
        .in = d,
        .out = d,
        .stride = 2 * d,
    };
    TD_TRY(load->model->ops->linear_weight(load->model->backend, &source,
                                           &to->time_in, load->info));
    name_of(load, "action_time_mlp_in", name);
    const td_native_flow_times times = {
        .weight = name,
        .width = d,
        .steps = to->options.steps,
        .least = to->options.least_period,
        .most = to->options.most_period,
    };
    return td_native_flow_times_table(load->model, &times, &to->times,
                                      load->info);
}

// Norm n of the expert: two a layer, and the last.
static void norm_name(const loading *load, uint32_t norm,
                      char ret_name[TD_NATIVE_NAME_BYTES])
{
    uint32_t layer = norm / 2;
    if (layer == load->to->expert.layers)
        name_of(load, EXPERT "norm.dense", ret_name);
    else
        td_native_params_name(
            ret_name, "%s" EXPERT "layers.%u.%s.dense", load->model_prefix,
            layer, norm % 2 ? "post_attention_layernorm" : "input_layernorm");
}

// pi0.5's.
static td_err load_modulations(const loading *load)
{
    td_native_pi0_network *to = load->to;
    uint32_t count = 2 * to->expert.layers + 1;
    char in[TD_NATIVE_NAME_BYTES], out[TD_NATIVE_NAME_BYTES];
    TD_AUTO(td_native_flow_times_net) *net = NULL;
    name_of(load, "time_mlp_in", in);
    name_of(load, "time_mlp_out", out);
    const td_native_flow_times times = {
        .width = to->expert.width,
        .steps = to->options.steps,
        .least = to->options.least_period,
        .most = to->options.most_period,
    };
    to->modulations = calloc(count, sizeof *to->modulations);
    if (!to->modulations) return TD_ERR_NOMEM;
    TD_TRY(td_native_flow_times_net_new(load->model, &times, in, out, &net,
                                        load->info));
    for (uint32_t i = 0; i < count; i++) {
        char name[TD_NATIVE_NAME_BYTES];
        norm_name(load, i, name);
        TD_TRY(td_native_flow_times_modulate(net, name, &to->modulations[i],
                                             load->info));
    }
    return TD_OK;
}

static td_err alloc_rooms(const loading *load)
{
    td_native_pi0_network *to = load->to;
    const struct {
        uint32_t rows, cols;
        void **to;
    } each[] = {
        {to->flow.config.suffix_rows, to->flow.config.kv_cols, &to->kv},
        {to->flow.chunk, to->expert.width, &to->embedded},
        {to->flow.chunk, to->expert.width, &to->mixed},
        // Velocities are F32 whatever the backend computes in.
        {to->flow.chunk, 2 * to->options.action_width, &to->v},
    };
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        td_ops_view made = {0};
        TD_TRY(td_native_model_buffer(load->model, each[i].rows, each[i].cols,
                                      &made, load->info));
        *each[i].to = made.data;
    }
    return td_native_flow_angles(
        load->model, to->flow.rows + to->flow.config.suffix_rows, to->text.size,
        ROTARY_BASE, &to->angles, load->info);
}

// The table of words may be kept as the head that shares it.
static td_err load_words(const loading *load, uint32_t *ret_vocabulary,
                         uint32_t *ret_width)
{
    char name[TD_NATIVE_NAME_BYTES];
    name_of(load, LANGUAGE "embed_tokens.weight", name);
    if (!td_native_weights_find(load->model->checkpoint->weights, name))
        name_of(load, "paligemma_with_expert.paligemma.lm_head.weight", name);
    return td_native_flow_embedding(load->model, name, &load->to->embedding,
                                    ret_vocabulary, ret_width, load->info);
}

static td_err load_all(loading *load)
{
    td_native_pi0_network *to = load->to;
    uint32_t vocabulary = 0, width = 0;
    TD_TRY(read_options(load->model->checkpoint, &to->options, load->info));
    TD_TRY(load_siglip(load));
    TD_TRY(load_words(load, &vocabulary, &width));
    TD_TRY(load_linear(load, PALIGEMMA "multi_modal_projector.linear",
                       td_native_siglip_shape_of(to->siglip).width, width,
                       &to->projector));
    TD_TRY(load_flow(load, vocabulary));
    TD_TRY(load_text(load));
    TD_TRY(load_expert(load));
    TD_TRY(load_linear(load, "action_in_proj", to->options.action_width,
                       to->expert.width, &to->action_in));
    TD_TRY(load_linear(load, "action_out_proj", to->expert.width,
                       to->options.action_width, &to->action_out));
    TD_TRY(to->options.modulated ? load_modulations(load) : load_mix(load));
    return alloc_rooms(load);
}

td_err td_native_pi0_load(td_native_model *model, td_errinfo *info)
{
    td_native_pi0_network *network = calloc(1, sizeof *network);
    if (!network) return TD_ERR_NOMEM;
    model->network = network;
    bool bare = !td_native_weights_find(model->checkpoint->weights,
                                        "model.action_in_proj.weight");
    loading load = {model, network, bare ? "" : "model.", info};
    return load_all(&load);
}

void td_native_pi0_free(void *network)
{
    td_native_pi0_network *of = network;
    td_native_flow_done(&of->flow);
    td_native_tower_done(&of->text);
    td_native_tower_done(&of->expert);
    if (of->siglip) td_native_siglip_free(of->siglip);
    free(of->modulations);
    free(of);
}
