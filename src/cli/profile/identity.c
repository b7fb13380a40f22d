// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/identity.h"

#include "base/sha256.h"
#include "server/load/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (1 << 20)
#define BYTES_PER_GB 1073741824.0

static td_err add_path(td_sha256 *hash, int folder, const char *name,
                       td_errinfo *info);

static td_err unreadable(const char *name, td_errinfo *info)
{
    return td_fail(info, TD_ERR_IO, "%.200s: %s", name, strerror(errno));
}

static td_err add_file(td_sha256 *hash, int fd, const char *name,
                       td_errinfo *info)
{
    uint8_t *piece = malloc(PIECE_BYTES);
    if (!piece) return TD_ERR_NOMEM;
    ssize_t size;
    while ((size = read(fd, piece, PIECE_BYTES)) > 0)
        td_sha256_add(hash, piece, (size_t)size);
    td_err err = size < 0 ? unreadable(name, info) : TD_OK;
    free(piece);
    return err;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static td_err add_folder(td_sha256 *hash, int fd, const char *name,
                         td_errinfo *info)
{
    struct dirent **entries = NULL;
    int count = scandirat(fd, ".", &entries, is_visible, alphasort);
    td_err err = count < 0 ? unreadable(name, info) : TD_OK;
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        td_sha256_add(hash, file, strlen(file) + 1);
        if (err == TD_OK) err = add_path(hash, fd, file, info);
        free(entries[i]);
    }
    free(entries);
    return err;
}

// Of a folder its files, in order and by name.
static td_err add_path(td_sha256 *hash, int folder, const char *name,
                       td_errinfo *info)
{
    struct stat about;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return unreadable(name, info);
    td_err err = TD_OK;
    if (fstat(fd, &about) < 0)
        err = unreadable(name, info);
    else
        err = S_ISDIR(about.st_mode) ? add_folder(hash, fd, name, info)
                                     : add_file(hash, fd, name, info);
    (void)close(fd);
    return err;
}

// Stays empty for what is not a file here, such as a name on a hub.
static td_err hash_of(const char *path, char ret_hash[TD_CLI_PROFILE_HASH],
                      td_errinfo *info)
{
    td_sha256 hash;
    char text[TD_SHA256_TEXT];
    if (!path[0] || access(path, F_OK) != 0) return TD_OK;
    td_sha256_init(&hash);
    TD_TRY(add_path(&hash, AT_FDCWD, path, info));
    td_sha256_text(&hash, text);
    (void)snprintf(ret_hash, TD_CLI_PROFILE_HASH, "sha256:%s", text);
    return TD_OK;
}

// The file that holds the model's code.
static void program_of(const td_config_engine *engine, char ret_path[4096])
{
    const char *path = "/proc/self/exe";
    if (engine->kind == TD_CONFIG_WORKER)
        path = engine->command_count ? engine->command[0] : engine->python;
    int size = engine->kind == TD_CONFIG_WORKER && !engine->command_count
                   ? (int)strcspn(path, ":")
                   : (int)strlen(path);
    (void)snprintf(ret_path, 4096, "%.*s", size, path);
}

static td_err look_at_gpu(const td_config_model *model, const char *gpu,
                          td_cli_profile_identity *identity, td_errinfo *info)
{
    bool synthetic = model->engine.kind == TD_CONFIG_SYNTHETIC;
    td_errinfo why = {.text = ""};
    identity->on_gpu = !synthetic && strncmp(model->device, "cuda", 4) == 0;
    td_err err = identity->on_gpu
                     ? td_cli_gpu_query(model->device, &identity->gpu, &why)
                     : TD_OK;
    if (err != TD_OK && !gpu)
        return td_fail(info, err, "%s; say which it is with --gpu", why.text);
    identity->on_gpu = identity->on_gpu && err == TD_OK;
    if (gpu || !identity->on_gpu)
        (void)snprintf(identity->gpu.name, sizeof identity->gpu.name, "%s",
                       gpu ? gpu : "CPU");
    return TD_OK;
}

double td_cli_profile_resident_gb(int pid)
{
    char path[64];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
    (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / BYTES_PER_GB;
}

td_err td_cli_profile_identity_find(const td_config_model *model,
                                    const char *gpu,
                                    td_cli_profile_identity *ret_identity,
                                    td_errinfo *info)
{
    td_cli_profile_identity identity = {.model_hash = ""};
    char program[4096];
    program_of(&model->engine, program);
    TD_TRY(hash_of(program, identity.engine_hash, info));
    char checkpoint[PATH_MAX];
    TD_TRY(td_server_engines_checkpoint(model, checkpoint, info));
    TD_TRY(hash_of(checkpoint, identity.model_hash, info));
    TD_TRY(look_at_gpu(model, gpu, &identity, info));
    identity.resident_gb = td_cli_profile_resident_gb(getpid());
    *ret_identity = identity;
    return TD_OK;
}

static double used_gb(const td_config_model *model,
                      const td_cli_profile_identity *identity, int pid)
{
    td_cli_gpu now;
    if (identity->on_gpu)
        return td_cli_gpu_query(model->device, &now, NULL) == TD_OK
                   ? now.used_gb - identity->gpu.used_gb
                   : 0;
    if (model->engine.kind == TD_CONFIG_SYNTHETIC) return 0;
    return pid ? td_cli_profile_resident_gb(pid)
               : td_cli_profile_resident_gb(getpid()) - identity->resident_gb;
}

double
td_cli_profile_identity_memory_gb(const td_config_model *model,
                                  const td_cli_profile_identity *identity,
                                  int pid)
{
    double gb = used_gb(model, identity, pid);
    return gb > 0 ? gb : 0;
}
