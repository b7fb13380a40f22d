// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_REPORT_PLOT_H
#define TD_EDGE_REPORT_PLOT_H

// A trace as charts (SVG):
//   - queue.svg: how many actions were left, with asks, chunks and idle times
//   - select.svg: how long a tick took to choose its action, how late it was
//   - overlaps.svg: which steps each chunk covered, and which it shared
//   - roundtrip.svg: how long answers took
//   - trajectory.svg: what each channel was commanded, with holds and limits

#include "edge/report/trace.h"

// Writes the five files into `dir`, which is made if it is not there; files of
// the same names are replaced. Blocks. IO with the path and what was wrong with
// it, NOMEM.
TD_NODISCARD td_err td_edge_plot(const td_edge_trace *trace, const char *dir,
                                 td_errinfo *info);

#endif
