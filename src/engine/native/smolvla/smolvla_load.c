// SPDX-License-Identifier: Apache-2.0
// SmolVLA from its checkpoint to the backend: options, the backbone's
// configuration, weights, tables, memory.
//
// Options come from config.json and are checked before any weight is read,
// which is also all that `check` does. Sizes are the tensors'. What neither
// says (how large a head is, the norms' epsilon) is in the configuration of the
// language model, which a checkpoint does not hold: vlm_config.json in its
// folder, else the config.json of `vlm_model_name` where that is a folder or in
// the hub's local cache, else what is known of that name.
//
// The times of the steps are known here, and so is what they add to the layer
// that mixes them with the actions: a table, a row a step.
#include "engine/native/smolvla/smolvla.h"

#include "engine/native/checkpoint/hub.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL "model."
#define VLM MODEL "vlm_with_expert.vlm.model."
#define EXPERT MODEL "vlm_with_expert.lm_expert."
#define VLM_CONFIG "vlm_config.json"
#define MAX_STEPS 1000
#define MAX_JSON_BYTES (1 << 20)
#define ROTARY_BASE 10000.0

// What the tensors do not say.
typedef struct backbone {
    uint32_t head, vision_heads;
    double epsilon, vision_epsilon;
} backbone;

static const struct {
    const char *name;
    backbone is;
} known[] = {
    {"HuggingFaceTB/SmolVLM2-500M-Video-Instruct", {64, 12, 1e-5, 1e-6}},
    {"HuggingFaceTB/SmolVLM2-256M-Video-Instruct", {64, 12, 1e-5, 1e-6}},
    {"HuggingFaceTB/SmolVLM2-2.2B-Instruct", {64, 16, 1e-5, 1e-6}},
    {"HuggingFaceTB/SmolVLM-500M-Instruct", {64, 12, 1e-5, 1e-6}},
    {"HuggingFaceTB/SmolVLM-256M-Instruct", {64, 12, 1e-5, 1e-6}},
};

bool td_native_smolvla_is_cross(const td_native_smolvla_options *options,
                                uint32_t layer)
{
    return options->cross &&
           (options->self_each == 0 || layer % options->self_each != 0);
}

// A number of layers that may be below 1: none, or all.
static td_err read_any(const td_json_at *at, const char *name,
                       uint32_t *ret_value, td_errinfo *info)
{
    json_t *value = json_object_get(at->object, name);
    *ret_value = 0;
    if (json_is_integer(value) && json_integer_value(value) <= 0) return TD_OK;
    return td_json_read_whole(at, name, 1, TD_NATIVE_MOST_LAYERS, ret_value,
                              info);
}

static td_err check_flags(const td_json_at *at, td_errinfo *info)
{
    uint32_t experts = 0, layers = 0;
    bool special = false, caches = true;
    TD_TRY(td_json_read_bool(at, "add_image_special_tokens", &special, info));
    TD_TRY(td_json_read_bool(at, "use_cache", &caches, info));
    TD_TRY(read_any(at, "num_expert_layers", &experts, info));
    TD_TRY(read_any(at, "num_vlm_layers", &layers, info));
    if (special)
        return td_json_read_fail(at, "add_image_special_tokens", info,
                                 TD_ERR_UNSUPPORTED, "is not supported");
    if (!caches)
        return td_json_read_fail(at, "use_cache", info, TD_ERR_UNSUPPORTED,
                                 "must be true");
    if (experts != 0 && experts != layers)
        return td_json_read_fail(at, "num_expert_layers", info,
                                 TD_ERR_UNSUPPORTED,
                                 "must be as many as num_vlm_layers");
    return TD_OK;
}

static td_err read_options(const td_native_checkpoint *of,
                           td_native_smolvla_options *ret_options,
                           td_errinfo *info)
{
    td_json_at at = td_native_policy_options(&of->policy);
    td_native_smolvla_options read = {0};
    const char *mode = NULL;
    TD_TRY(check_flags(&at, info));
    TD_TRY(td_json_read_text(&at, "attention_mode", &mode, info));
    TD_TRY(read_any(&at, "self_attn_every_n_layers", &read.self_each, info));
    TD_TRY(read_any(&at, "num_vlm_layers", &read.layers, info));
    TD_TRY(
        td_json_read_whole(&at, "num_steps", 1, MAX_STEPS, &read.steps, info));
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
    if (of->policy.state_dim == 0)
        return td_json_read_fail(&at, "input_features", info,
                                 TD_ERR_UNSUPPORTED, "have no state");
    read.cross = strstr(mode, "cross") != NULL;
    *ret_options = read;
    return TD_OK;
}

td_err td_native_smolvla_check(const td_native_checkpoint *of, td_errinfo *info)
{
    td_native_smolvla_options ignored;
    return read_options(of, &ignored, info);
}

// A member that transformers has a default for.
static td_err read_default(const td_json_at *at, const char *name,
                           uint32_t otherwise, uint32_t *ret_value,
                           td_errinfo *info)
{
    *ret_value = otherwise;
    if (td_json_read_is_null(at, name)) return TD_OK;
    return td_json_read_whole(at, name, 1, UINT16_MAX, ret_value, info);
}

static td_err read_epsilon(const td_json_at *at, const char *name,
                           double otherwise, double *ret_value,
                           td_errinfo *info)
{
    *ret_value = otherwise;
    if (td_json_read_is_null(at, name)) return TD_OK;
    return td_json_read_number(at, name, ret_value, info);
}

static td_err read_backbone_from(const char *path, backbone *ret_backbone,
                                 td_errinfo *info)
{
    TD_AUTO(json_t) *config = NULL;
    backbone read = {0};
    uint32_t width = 0, heads = 0;
    TD_TRY(td_json_read_file(path, MAX_JSON_BYTES, &config, info));
    const td_json_at at = {path, "", config};
    td_json_at text = {path, "text_config.", NULL};
    td_json_at vision = {path, "vision_config.", NULL};
    TD_TRY(td_json_read_object(&at, "text_config", &text.object, info));
    TD_TRY(td_json_read_object(&at, "vision_config", &vision.object, info));
    TD_TRY(
        td_json_read_whole(&text, "hidden_size", 1, UINT16_MAX, &width, info));
    TD_TRY(read_default(&text, "num_attention_heads", 32, &heads, info));
    TD_TRY(read_default(&text, "head_dim", width / heads, &read.head, info));
    TD_TRY(read_epsilon(&text, "rms_norm_eps", 1e-6, &read.epsilon, info));
    TD_TRY(read_default(&vision, "num_attention_heads", 16, &read.vision_heads,
                        info));
    TD_TRY(read_epsilon(&vision, "layer_norm_eps", 1e-6, &read.vision_epsilon,
                        info));
    *ret_backbone = read;
    return TD_OK;
}

static td_err find_backbone(const td_native_checkpoint *of,
                            backbone *ret_backbone, td_errinfo *info)
{
    td_json_at at = td_native_policy_options(&of->policy);
    char path[TD_NATIVE_MAX_PATH];
    const char *name = NULL;
    TD_TRY(td_json_read_text(&at, "vlm_model_name", &name, info));
    TD_TRY(td_native_path_join(of->folder, VLM_CONFIG, path, info));
    if (access(path, R_OK) == 0 ||
        td_native_hub_find(name, "config.json", path, NULL) == TD_OK)
        return read_backbone_from(path, ret_backbone, info);
    for (size_t i = 0; i < TD_COUNT_OF(known); i++)
        if (strcmp(known[i].name, name) == 0) {
            *ret_backbone = known[i].is;
            return TD_OK;
        }
    return td_fail(info, TD_ERR_NOTFOUND,
                   "%s: vlm_model_name: nothing is known of %.200s: put its "
                   "config.json into the checkpoint's folder as " VLM_CONFIG,
                   of->policy.file, name);
}

// What a load works with.
typedef struct loading {
    td_native_model *model;
    td_native_smolvla_network *to;
    backbone is;
    td_errinfo *info;
} loading;

static td_err load_text(const loading *load, uint32_t rows)
{
    td_native_smolvla_network *to = load->to;
    uint32_t there = td_native_params_layers(
        load->model, VLM "text_model.layers", "mlp.up_proj.weight");
    const td_native_tower_config config = {
        .prefix = VLM "text_model.layers",
        .layers = to->options.layers ? to->options.layers : there,
        .size = load->is.head,
        .rows = rows,
        .activation = TD_OPS_SILU,
        .norm = {.epsilon = (float)load->is.epsilon, .kind = TD_OPS_RMS_NORM},
        .ends_with_kv = true,
    };
    return td_native_tower_load(load->model, &config, &to->text, load->info);
}

static bool is_cross(const void *user, uint32_t layer)
{
    return td_native_smolvla_is_cross(user, layer);
}

static td_err load_expert(const loading *load)
{
    td_native_smolvla_network *to = load->to;
    const td_native_tower_config config = {
        .prefix = EXPERT "layers",
        .last = EXPERT "norm",
        .layers = to->text.layers,
        .size = load->is.head,
        .rows = to->flow.chunk,
        .activation = TD_OPS_SILU,
        .norm = {.epsilon = (float)load->is.epsilon, .kind = TD_OPS_RMS_NORM},
        .is_cross = is_cross,
        .user = &to->options,
    };
    TD_TRY(td_native_tower_load(load->model, &config, &to->expert, load->info));
    if (to->expert.heads != to->text.heads ||
        to->expert.kv_heads != to->text.kv_heads)
        return td_fail(load->info, TD_ERR_MISMATCH,
                       "%s: the expert has %u and %u heads, the language model "
                       "%u and %u",
                       load->model->checkpoint->folder, to->expert.heads,
                       to->expert.kv_heads, to->text.heads, to->text.kv_heads);
    return TD_OK;
}

static td_err load_cross(const loading *load)
{
    td_native_smolvla_network *to = load->to;
    uint32_t cols = to->flow.config.kv_cols / 2;
    to->cross_k = calloc(to->expert.layers, sizeof(td_ops_linear_weight *));
    to->cross_v = calloc(to->expert.layers, sizeof(td_ops_linear_weight *));
    if (!to->cross_k || !to->cross_v) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < to->expert.layers; i++) {
        const td_native_params_rows k = {"self_attn.k_proj", cols};
        const td_native_params_rows v = {"self_attn.v_proj", cols};
        td_native_params_stack stack = {.rows = &k, .count = 1, .in = cols};
        char prefix[TD_NATIVE_NAME_BYTES];
        if (!td_native_smolvla_is_cross(&to->options, i)) continue;
        td_native_params_name(prefix, EXPERT "layers.%u", i);
        TD_TRY(td_native_params_stacked(load->model, prefix, &stack,
                                        &to->cross_k[i], load->info));
        stack.rows = &v;
        TD_TRY(td_native_params_stacked(load->model, prefix, &stack,
                                        &to->cross_v[i], load->info));
    }
    return TD_OK;
}

static td_err load_siglip(const loading *load)
{
    td_native_smolvla_network *to = load->to;
    const td_native_policy *policy = &load->model->checkpoint->policy;
    const td_native_siglip_config config = {
        .prefix = VLM "vision_model",
        .heads = load->is.vision_heads,
        .epsilon = (float)load->is.vision_epsilon,
        .side = policy->fit.width,
        .pictures = td_native_flow_pass(load->model),
        .spreads = true,
    };
    return td_native_siglip_load(load->model, &config, &to->siglip, load->info);
}

// The projection says how many patches become a row.
static td_err load_connector(const loading *load)
{
    static const char name[] = VLM "connector.modality_projection";
    td_native_smolvla_network *to = load->to;
    td_native_siglip_shape seen = td_native_siglip_shape_of(to->siglip);
    uint64_t shape[2];
    TD_TRY(td_native_params_shape(load->model,
                                  VLM "connector.modality_projection.proj."
                                      "weight",
                                  2, shape, load->info));
    to->shuffle = (uint32_t)lround(sqrt((double)shape[1] / (double)seen.width));
    if (to->shuffle == 0 || seen.across % to->shuffle != 0 ||
        (uint64_t)seen.width * to->shuffle * to->shuffle != shape[1])
        return td_fail(load->info, TD_ERR_MISMATCH,
                       "%s: %s: %llu numbers are no square of %u x %u patches "
                       "of %u",
                       load->model->checkpoint->folder, name,
                       (unsigned long long)shape[1], seen.across, seen.across,
                       seen.width);
    uint32_t across = seen.across / to->shuffle;
    to->picture_rows = across * across;
    to->picture_scale = sqrtf((float)shape[0]);
    const td_native_params_rows rows = {"proj", (uint32_t)shape[0]};
    const td_native_params_stack stack = {
        .rows = &rows, .count = 1, .in = (uint32_t)shape[1]};
    return td_native_params_stacked(load->model, name, &stack, &to->connector,
                                    load->info);
}

static td_err load_flow(const loading *load, uint32_t width,
                        uint32_t vocabulary)
{
    td_native_smolvla_network *to = load->to;
    uint64_t k[2];
    TD_TRY(td_native_params_shape(load->model,
                                  VLM "text_model.layers.0.self_attn.k_proj."
                                      "weight",
                                  2, k, load->info));
    const td_native_flow_config config = {
        .picture_rows = to->picture_rows,
        .vocabulary = vocabulary,
        .state_in_prefix = true,
        .state_width = to->options.state_width,
        .action_width = to->options.action_width,
        .suffix_rows = load->model->checkpoint->policy.chunk_rows,
        .layers = to->options.layers ? to->options.layers
                                     : td_native_params_layers(
                                           load->model, VLM "text_model.layers",
                                           "mlp.up_proj.weight"),
        .kv_cols = 2 * (uint32_t)k[0],
        .guide = to->options.guide,
    };
    TD_TRY(td_native_flow_load(load->model, &config, &to->flow, load->info));
    return td_native_params_linear(load->model, MODEL "state_proj",
                                   config.state_width, width, &to->state_proj,
                                   load->info);
}

// Of the layer that mixes times with actions: its left half is the actions'.
static td_err load_mix(const loading *load)
{
    td_native_smolvla_network *to = load->to;
    uint32_t d = to->expert.width;
    const td_native_tensor *weight = NULL;
    TD_TRY(td_native_params_tensor(
        load->model, MODEL "action_time_mlp_in.weight", 2,
        (const uint64_t[]){d, 2 * (uint64_t)d}, &weight, load->info));
    const td_ops_linear_source source = {
        .weight = td_native_params_source(weight, 0),
        .in = d,
        .out = d,
        .stride = 2 * d,
    };
    TD_TRY(load->model->ops->linear_weight(load->model->backend, &source,
                                           &to->time_in, load->info));
    const td_native_flow_times times = {
        .weight = MODEL "action_time_mlp_in",
        .width = d,
        .steps = to->options.steps,
        .least = to->options.least_period,
        .most = to->options.most_period,
    };
    return td_native_flow_times_table(load->model, &times, &to->times,
                                      load->info);
}

static td_err load_actions(const loading *load)
{
    td_native_smolvla_network *to = load->to;
    uint32_t d = to->expert.width, actions = to->options.action_width;
    td_native_model *model = load->model;
    TD_TRY(td_native_params_linear(model, MODEL "action_in_proj", actions, d,
                                   &to->action_in, load->info));
    TD_TRY(td_native_params_linear(model, MODEL "action_out_proj", d, actions,
                                   &to->action_out, load->info));
    TD_TRY(td_native_params_linear(model, MODEL "action_time_mlp_out", d, d,
                                   &to->time_out, load->info));
    return load_mix(load);
}

static td_err alloc_rooms(const loading *load)
{
    td_native_smolvla_network *to = load->to;
    td_native_model *model = load->model;
    td_native_siglip_shape seen = td_native_siglip_shape_of(to->siglip);
    uint32_t rows =
        to->flow.rows > to->flow.chunk ? to->flow.rows : to->flow.chunk;
    const struct {
        uint32_t rows, cols;
        void **to;
    } each[] = {
        {to->flow.cameras * to->picture_rows,
         seen.width * to->shuffle * to->shuffle, &to->shuffled},
        {rows, to->flow.config.kv_cols, &to->kv},
        {to->flow.chunk, to->expert.width, &to->embedded},
        {to->flow.chunk, to->expert.width, &to->mixed},
        // Velocities are F32 whatever the backend computes in.
        {to->flow.chunk, 2 * to->options.action_width, &to->v},
    };
    for (size_t i = 0; i < TD_COUNT_OF(each); i++) {
        td_ops_view made = {0};
        TD_TRY(td_native_model_buffer(model, each[i].rows, each[i].cols, &made,
                                      load->info));
        *each[i].to = made.data;
    }
    return td_native_flow_angles(model, to->flow.rows + to->flow.chunk,
                                 load->is.head, ROTARY_BASE, &to->angles,
                                 load->info);
}

static td_err load_all(loading *load)
{
    td_native_smolvla_network *to = load->to;
    uint32_t width = 0, vocabulary = 0;
    TD_TRY(read_options(load->model->checkpoint, &to->options, load->info));
    TD_TRY(find_backbone(load->model->checkpoint, &load->is, load->info));
    TD_TRY(load_siglip(load));
    TD_TRY(load_connector(load));
    TD_TRY(td_native_flow_embedding(
        load->model, VLM "text_model.embed_tokens.weight", &to->embedding,
        &vocabulary, &width, load->info));
    TD_TRY(load_flow(load, width, vocabulary));
    TD_TRY(load_text(load, to->flow.rows));
    TD_TRY(load_expert(load));
    TD_TRY(load_cross(load));
    TD_TRY(load_actions(load));
    return alloc_rooms(load);
}

td_err td_native_smolvla_load(td_native_model *model, td_errinfo *info)
{
    td_native_smolvla_network *network = calloc(1, sizeof *network);
    if (!network) return TD_ERR_NOMEM;
    model->network = network;
    loading load = {.model = model, .to = network, .info = info};
    return load_all(&load);
}

void td_native_smolvla_free(void *network)
{
    td_native_smolvla_network *of = network;
    td_native_flow_done(&of->flow);
    td_native_tower_done(&of->text);
    td_native_tower_done(&of->expert);
    if (of->siglip) td_native_siglip_free(of->siglip);
    free(of->cross_k);
    free(of->cross_v);
    free(of);
}
