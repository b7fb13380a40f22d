// SPDX-License-Identifier: Apache-2.0
#include "config/factory/profile.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_times(const td_config_profile *profile)
{
    uint32_t most = td_config_profile_max_batch(profile);
    for (uint32_t n = 1; n <= most + 1; n++)
        if (!isfinite(td_config_profile_mean_ms(profile, n)) ||
            td_config_profile_quantile_ms(profile, n, 0.1) >
                td_config_profile_quantile_ms(profile, n, 0.9) ||
            !isfinite(td_config_profile_memory_gb(profile, n)))
            abort();
}

static void check_written(const td_config_profile *profile)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out || td_config_profile_write(profile, out) != TD_OK) abort();
    (void)fclose(out);
    TD_AUTO(td_config_profile) *again = NULL;
    td_errinfo info = {""};
    if (td_config_profile_parse("again.yaml", text, size, &again, &info) !=
        TD_OK)
        abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_config_profile) *profile = NULL;
    td_errinfo info = {""};
    if (td_config_profile_parse("fuzz.yaml", data, size, &profile, &info) !=
        TD_OK)
        return 0;
    check_times(profile);
    check_written(profile);
    return 0;
}
