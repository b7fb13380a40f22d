// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "server/process/process.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: tendon serve MANIFEST.yaml [--check] [--log LEVEL]\n"
    "       tendon serve --fields\n"
    "       tendon serve --metrics\n"
    "\n"
    "Serves the models of a manifest to the robots listed there, until "
    "Ctrl-C.\n"
    "\n"
    "  --check      only read the manifest and say what it would serve\n"
    "  --log LEVEL  debug, info (default), warn or error\n"
    "  --fields     print the manifest's fields as a table (Markdown)\n"
    "  --metrics    print what a server shows of itself as a table (Markdown)\n"
    "\n"
    "SIGHUP reads the manifest again: fields marked \"reloads\" change at "
    "once,\n"
    "the others are named and wait for a restart. SIGTERM and Ctrl-C answer\n"
    "what waits and end; a second one ends at once. It ends with 0 when "
    "stopped,\n"
    "1 when something is wrong, 3 when one of its models runs already.\n"
    "\n"
    "examples:\n"
    "  tendon serve examples/manifest.yaml\n"
    "  tendon serve examples/manifest.yaml --check\n"
    "  tendon serve examples/two_models.yaml --log debug\n"
    "  kill -HUP $(pidof tendon)    # read the manifest again\n";

static bool is_stopping(void *user)
{
    (void)user;
    return td_cli_is_stopping();
}

static const td_server_extras extras = {.is_stopping = is_stopping};

static void serve(td_server_process *process, const char *path)
{
    td_log_text(TD_LOG_INFO, "serve: ready; Ctrl-C stops");
    while (td_cli_wait_signal() == TD_CLI_RELOAD)
        td_server_process_reload(process, path);
    td_log_text(TD_LOG_INFO, "serve: draining");
    (void)td_server_process_drain(process, INT64_MAX);
}

static int run(td_config_manifest *manifest, const td_cli_file *file)
{
    td_server_process *process = NULL;
    td_errinfo info = {.text = ""};
    td_cli_keep_stop();
    td_cli_keep_reload();
    td_err err = td_server_process_new(manifest, &extras, &process);
    if (err == TD_OK) err = td_server_process_open(process, &info);
    if (err == TD_OK) serve(process, file->path);
    if (process) td_server_process_close(process);
    if (err == TD_OK || err == TD_ERR_CANCELLED) {
        td_log_stop();
        return 0;
    }
    int code = td_cli_fail("serve", err, &info);
    return err == TD_ERR_EXISTS ? 3 : code;
}

static void print_batches(const td_config_model *model)
{
    int64_t most = model->batch.max_size;
    if (most == 0) most = model->engine.max_batch;
    if (most == 0)
        (void)printf("batches as its worker takes them");
    else
        (void)printf("batches of up to %lld", (long long)most);
}

static void print_model(const td_config_model *model)
{
    (void)printf("  %s: %s/%s for %s at %s, ", model->server_id,
                 model->model_id, model->model_version, model->application_tag,
                 model->endpoint);
    print_batches(model);
    (void)printf("; %zu robots listed%s\n", model->client_count,
                 model->accept_unknown ? ", others are taken too" : "");
}

static bool is_first_on_device(const td_config_manifest *manifest, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(manifest->models[i].device,
                   manifest->models[index].device) == 0)
            return false;
    return true;
}

static void print_device(const td_config_manifest *manifest, const char *device)
{
    const td_config_scheduling *scheduling = &manifest->scheduling;
    (void)printf("%s: %s%s%s\n", device,
                 td_config_strategies[scheduling->strategy],
                 scheduling->score[0] ? " by the manifest's score" : "",
                 scheduling->plugin[0] ? " by a plug-in's score" : "");
    for (size_t i = 0; i < manifest->model_count; i++)
        if (strcmp(manifest->models[i].device, device) == 0)
            print_model(&manifest->models[i]);
}

static int check(const td_config_manifest *manifest, const char *path)
{
    td_errinfo info = {.text = ""};
    td_sched_policy policy;
    TD_AUTO(td_server_plugin) *plugin = NULL;
    td_err err = td_server_process_check_functions(manifest, &extras, &info);
    if (err == TD_OK)
        err = td_server_settings_policy(&manifest->scheduling, &policy, &plugin,
                                        &info);
    if (err != TD_OK) return td_cli_fail("serve", err, &info);
    (void)printf("%s: %zu model%s\n", path, manifest->model_count,
                 manifest->model_count == 1 ? "" : "s");
    for (size_t i = 0; i < manifest->model_count; i++)
        if (is_first_on_device(manifest, i))
            print_device(manifest, manifest->models[i].device);
    (void)printf("fine\n");
    return 0;
}

int td_cli_serve(int argc, char **argv)
{
    td_cli_file file;
    int code;
    if (argc == 2 && strcmp(argv[1], "--metrics") == 0) {
        td_server_metrics_page(stdout);
        return 0;
    }
    if (!td_cli_parse_file(argc, argv, help, &td_config_manifest_table, NULL,
                           &file, &code))
        return code;
    td_errinfo info = {.text = ""};
    TD_AUTO(td_config_manifest) *manifest = NULL;
    td_err err = td_config_manifest_load(file.path, &manifest, &info);
    if (err != TD_OK) return td_cli_fail("serve", err, &info);
    if (file.check) return check(manifest, file.path);
    if (!td_cli_start_log("serve", file.level)) return 2;
    return run(TD_TAKE(manifest), &file);
}
