// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/tokenizer.h"

#include "base/library.h"

#include "tendon_formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_BYTES (128 << 20)

static td_library library = {
    .name = "libtendon_formats.so",
    .variable = "TENDON_FORMATS_LIBRARY",
    .entry = "tdr_tokenizer_library",
    .version = TDR_FORMATS_VERSION,
    .table_bytes = sizeof(tdr_tokenizer_ops),
    .lack = "no tokenizer",
    .missing = "build it with `make all`, put it beside the program",
    .broken = "build it again with `make all`",
};

struct td_native_tokenizer {
    const tdr_tokenizer_ops *ops;
    tdr_tokenizer *rust;
    uint32_t most_ids;
};

static td_err check_file(const char *path, td_errinfo *info)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return td_fail(info, errno == ENOENT ? TD_ERR_NOTFOUND : TD_ERR_IO,
                       "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return td_fail(info, TD_ERR_IO, "%s: is no file", path);
    if (about.st_size > MAX_BYTES)
        return td_fail(info, TD_ERR_LIMIT, "%s: has %lld bytes, at most %d",
                       path, (long long)about.st_size, MAX_BYTES);
    return TD_OK;
}

td_err td_native_tokenizer_open(const char *path, uint32_t most_ids,
                                td_native_tokenizer **ret_tokenizer,
                                td_errinfo *info)
{
    char why[300] = "";
    TD_TRY(check_file(path, info));
    TD_AUTO(td_native_tokenizer) *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer) return TD_ERR_NOMEM;
    tokenizer->most_ids = most_ids;
    TD_TRY(td_library_load(&library, info));
    tokenizer->ops = library.table;
    if (tokenizer->ops->open(path, most_ids, &tokenizer->rust, why,
                             sizeof why) != TDR_OK)
        return td_fail(info, TD_ERR_FORMAT, "%s: is no tokenizer: %s", path,
                       why);
    *ret_tokenizer = TD_TAKE(tokenizer);
    return TD_OK;
}

void td_native_tokenizer_close(td_native_tokenizer *tokenizer)
{
    if (tokenizer->rust) tokenizer->ops->close(tokenizer->rust);
    free(tokenizer);
}

td_err td_native_tokenizer_encode(const td_native_tokenizer *tokenizer,
                                  td_slice text, uint32_t *ret_ids,
                                  uint32_t *ret_count, td_errinfo *info)
{
    char why[300] = "";
    size_t count = 0;
    int code =
        tokenizer->ops->encode(tokenizer->rust, text, tokenizer->most_ids,
                               ret_ids, &count, why, sizeof why);
    if (code != TDR_OK)
        return td_fail(info,
                       code == TDR_INVALID ? TD_ERR_INVALID : TD_ERR_INTERNAL,
                       "the tokenizer failed: %s", why);
    *ret_count = (uint32_t)count;
    return TD_OK;
}
