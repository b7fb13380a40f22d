// SPDX-License-Identifier: Apache-2.0
#include "config/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_config_manifest) *manifest = NULL;
    td_errinfo info = {""};
    (void)!td_config_manifest_parse("fuzz.yaml", data, size, &manifest, &info);
    return 0;
}
