// SPDX-License-Identifier: Apache-2.0
#include "cli/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const td_config_model *model_of(const td_config_manifest *manifest,
                                       const char *id)
{
    if (!id && manifest->model_count == 1) return &manifest->models[0];
    for (size_t i = 0; id && i < manifest->model_count; i++)
        if (strcmp(manifest->models[i].server_id, id) == 0)
            return &manifest->models[i];
    return NULL;
}

td_err td_cli_policy_model(const td_config_manifest *manifest, const char *id,
                           const td_config_model **ret_model, td_errinfo *info)
{
    const td_config_model *model = model_of(manifest, id);
    if (!model && id)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "the manifest has no model with server_id %.100s", id);
    if (!model)
        return td_fail(info, TD_ERR_NOTFOUND,
                       "the manifest has several models; say which with "
                       "--server");
    if (model->engine.kind == TD_CONFIG_CALLBACK)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "%s runs a function of another program, which is not "
                       "here to be run",
                       model->server_id);
    *ret_model = model;
    return TD_OK;
}

// Between single quotes of YAML, where only they need care.
static void put_quoted(FILE *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '\'') (void)fputc('\'', out);
        (void)fputc(*at, out);
    }
}

static td_err write_manifest(const char *folder, const char *device,
                             char **ret_text, size_t *ret_size)
{
    FILE *out = open_memstream(ret_text, ret_size);
    if (!out) return TD_ERR_NOMEM;
    (void)fputs("cluster_uuid: here\nexperiment_tag: here\nmodels:\n"
                "- model_id: policy\n  model_version: v1\n"
                "  application_tag: here\n  endpoint: tcp/127.0.0.1:7447\n"
                "  accept_unknown: true\n"
                "  pretrained_path: '",
                out);
    put_quoted(out, folder);
    (void)fputs("'\n  device: '", out);
    put_quoted(out, device ? device : "cpu");
    (void)fputs("'\n", out);
    return fclose(out) == 0 ? TD_OK : TD_ERR_NOMEM;
}

td_err td_cli_policy_manifest(const char *path, const char *device,
                              td_config_manifest **ret_manifest,
                              td_errinfo *info)
{
    struct stat found;
    bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    if (!folder && device)
        return td_fail(info, TD_ERR_INVALID,
                       "--device is for a checkpoint's folder; a manifest "
                       "says it itself");
    if (!folder) return td_config_manifest_load(path, ret_manifest, info);
    char *text = NULL;
    size_t size = 0;
    TD_TRY(write_manifest(path, device, &text, &size));
    td_err err = td_config_manifest_parse(path, text, size, ret_manifest, info);
    free(text);
    return err;
}
