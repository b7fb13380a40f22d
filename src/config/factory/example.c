// SPDX-License-Identifier: Apache-2.0
#include "config/factory/factory.h"

// The file itself, so that there is only one.
__asm__(".pushsection .rodata\n"
        ".globl td_config_factory_example\n"
        ".hidden td_config_factory_example\n"
        "td_config_factory_example:\n"
        ".incbin \"" TD_EXAMPLES "/factory.yaml\"\n"
        ".byte 0\n"
        ".popsection\n");
