// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BASE_CHART_SVG_H
#define TD_BASE_CHART_SVG_H

// Text and numbers as SVG wants them. Failures to write show in ferror().

#include <stddef.h>
#include <stdio.h>

// The first `bytes` of `text`, escaped; what is no character of XML becomes
// '?'.
void td_chart_svg_text(const char *text, size_t bytes, FILE *file);

// How many characters the first `bytes` of `text` are.
size_t td_chart_svg_length(const char *text, size_t bytes);

// To a tenth of a pixel, whatever the locale.
void td_chart_svg_number(double px, FILE *file);

// Every '#' in `format` is replaced by the next of `px`:
// td_chart_svg_shape("M# #h#", (double[]){1, 2, 3}, file).
void td_chart_svg_shape(const char *format, const double *px, FILE *file);

#endif
