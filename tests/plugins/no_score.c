// SPDX-License-Identifier: Apache-2.0
// A library that is no plug-in.
int nothing_to_see_here(void);

int nothing_to_see_here(void)
{
    return 0;
}
