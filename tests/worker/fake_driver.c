// SPDX-License-Identifier: Apache-2.0
// Stands for libcuda.so.1, which is only looked for.
int td_fake_driver(void);

int td_fake_driver(void)
{
    return 0;
}
