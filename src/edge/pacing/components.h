// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_PACING_COMPONENTS_H
#define TD_EDGE_PACING_COMPONENTS_H

// When the model components of one robot are asked.
//
// Component 0 is System 1: td_edge_ask decides for it, by its buffer and its
// own rate. The others go at a rate of their own, or with every n-th ask of
// component 0. One that is due while nobody can be asked stays due, once.
//
// Pure. One thread; never blocks or allocates, O(components).

#include "edge/pacing/rate.h"
#include "tendon/wire.h"

typedef struct td_edge_component {
    double rate_hz;      // 0 with `every`, and for component 0
    uint32_t every;      // asks of component 0; 0: at rate_hz
    double phase;        // 0 to 1: of 1/rate_hz, or of `every` asks
    int64_t deadline_ns; // from ask to answer; 0: none
} td_edge_component;

typedef struct td_edge_components {
    uint32_t count;
    uint64_t primary_asks; // of component 0
    struct {
        td_edge_component settings;
        td_edge_rate rate;
        bool owed; // due by `every`
        bool waiting;
        int64_t since_ns; // waiting, since the oldest ask without an answer
    } parts[TD_WIRE_MAX_COMPONENTS];
} td_edge_components;

// `tolerance_ns` is the rates', see edge/pacing/rate.h. INVALID for settings
// that make no sense.
TD_NODISCARD td_err td_edge_components_init(td_edge_components *components,
                                            const td_edge_component *settings,
                                            uint32_t count,
                                            int64_t tolerance_ns,
                                            int64_t now_ns);

// Those to be asked now, a bit each, and counts them as asked. `primary`:
// component 0 is asked now. `able`: those that can be asked, a bit each.
uint32_t td_edge_components_due(td_edge_components *components, int64_t now_ns,
                                bool primary, uint32_t able);

void td_edge_components_answered(td_edge_components *components,
                                 uint32_t index);

// Those whose answer is overdue, a bit each.
uint32_t td_edge_components_late(const td_edge_components *components,
                                 int64_t now_ns);

#endif
