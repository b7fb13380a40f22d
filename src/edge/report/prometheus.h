// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_REPORT_PROMETHEUS_H
#define TD_EDGE_REPORT_PROMETHEUS_H

// A robot's numbers for Prometheus: every counter, gauge and histogram that
// its metrics topic carries. The names are listed in the .c file's tables.

#include "base/http/prom.h"
#include "edge/report/report.h"

// Any thread; never blocks.
void td_edge_prometheus_write(td_prom *prom, const char *client,
                              const td_edge_report *report,
                              const td_edge_times *times);

#endif
