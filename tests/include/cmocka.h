// SPDX-License-Identifier: Apache-2.0
#ifndef TD_TESTS_CMOCKA_H
#define TD_TESTS_CMOCKA_H

// The system's cmocka.h, with another assert_float_equal: cmocka's lets NaN
// pass as equal to anything, compares as float, and allows a rounding of
// float32 whatever epsilon says. This one is exact where epsilon is 0.

#include_next <cmocka.h>

#undef assert_float_equal
#define assert_float_equal(a, b, epsilon)                                      \
    td_tests_near((double)(a), (double)(b), (double)(epsilon), __FILE__,       \
                  __LINE__)

static inline void td_tests_near(double a, double b, double epsilon,
                                 const char *file, int line)
{
    if (a == b || (a - b <= epsilon && b - a <= epsilon)) return;
    print_error("%.17g is not %.17g, within %g\n", a, b, epsilon);
    _fail(file, line);
}

#endif
