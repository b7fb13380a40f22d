// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/table.h"

#define QUANTILES(member) offsetof(td_wire_quantiles, member)
#define METRICS(member) offsetof(td_wire_metrics, member)

static const td_wire_list counters = {
    .member = {.type = &td_wire_type_u64,
               .offset = offsetof(td_wire_counter, value)},
    .stride = sizeof(td_wire_counter),
    .max = TD_WIRE_MAX_METRICS,
    .count = METRICS(counter_count),
};

static const td_wire_list gauges = {
    .member = {.type = &td_wire_type_f64,
               .offset = offsetof(td_wire_gauge, value)},
    .stride = sizeof(td_wire_gauge),
    .max = TD_WIRE_MAX_METRICS,
    .count = METRICS(gauge_count),
};

static const td_wire_field quantile_fields[] = {
    TD_WIRE_FIELD("count", u64, QUANTILES(count), .required = true),
    TD_WIRE_FIELD("min", f64, QUANTILES(min), .always = true),
    TD_WIRE_FIELD("max", f64, QUANTILES(max), .always = true),
    TD_WIRE_FIELD("mean", f64, QUANTILES(mean), .always = true),
    TD_WIRE_FIELD("p50", f64, QUANTILES(p50), .always = true),
    TD_WIRE_FIELD("p95", f64, QUANTILES(p95), .always = true),
    TD_WIRE_FIELD("p99", f64, QUANTILES(p99), .always = true),
    TD_WIRE_FIELD("p999", f64, QUANTILES(p999), .always = true),
};
static const td_wire_table quantile = TD_WIRE_TABLE(quantile_fields);

static const td_wire_list quantiles = {
    .member = {.type = &td_wire_type_map, .table = &quantile},
    .stride = sizeof(td_wire_quantiles),
    .max = TD_WIRE_MAX_METRICS,
    .count = METRICS(quantiles_count),
};

static const td_wire_field fields[] = {
    TD_WIRE_FIELD("schema", schema, 0, .always = true),
    TD_WIRE_FIELD("source", id, METRICS(source), .required = true),
    TD_WIRE_FIELD("boot", u64, METRICS(boot)),
    TD_WIRE_FIELD("uptime_us", duration, METRICS(uptime_us)),
    TD_WIRE_FIELD("state", name, METRICS(state)),
    TD_WIRE_FIELD("counters", names, METRICS(counters), .list = &counters),
    TD_WIRE_FIELD("gauges", names, METRICS(gauges), .list = &gauges),
    TD_WIRE_FIELD("quantiles", names, METRICS(quantiles), .list = &quantiles),
};

static const td_wire_message message = {"metrics", sizeof(td_wire_metrics),
                                        sizeof(td_wire_metrics),
                                        TD_WIRE_TABLE(fields), NULL};

td_err td_wire_metrics_decode(td_wire_decoder *decoder, const void *data,
                              size_t size, td_wire_metrics *ret_metrics,
                              td_errinfo *info)
{
    td_wire_metrics metrics;
    return td_wire_decode(&message, decoder, data, size, &metrics, ret_metrics,
                          info);
}

td_err td_wire_metrics_encode(td_wire_encoder *encoder,
                              const td_wire_metrics *metrics, td_errinfo *info)
{
    return td_wire_encode(&message, encoder, metrics, info);
}
