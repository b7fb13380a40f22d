// SPDX-License-Identifier: Apache-2.0
#include "config/manifest/manifest.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void never(void *user, const td_config_change *change)
{
    (void)user, (void)change;
    abort(); // nothing differs from itself
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_config_manifest) *manifest = NULL;
    td_errinfo info = {""};
    if (td_config_manifest_parse("fuzz.yaml", data, size, &manifest, &info) ==
        TD_OK)
        td_config_manifest_diff(manifest, manifest, never, NULL);
    return 0;
}
