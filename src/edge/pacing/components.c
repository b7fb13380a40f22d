// SPDX-License-Identifier: Apache-2.0
#include "edge/pacing/components.h"

static bool makes_sense(const td_edge_component *part, bool primary)
{
    bool has_rate = part->rate_hz > 0;
    bool follows = part->every > 0;
    bool paced = primary ? !has_rate && !follows : has_rate != follows;
    return paced && part->phase >= 0 && part->phase <= 1 &&
           part->deadline_ns >= 0;
}

td_err td_edge_components_init(td_edge_components *components,
                               const td_edge_component *settings,
                               uint32_t count, int64_t tolerance_ns,
                               int64_t now_ns)
{
    if (count == 0 || count > TD_WIRE_MAX_COMPONENTS) return TD_ERR_INVALID;
    td_edge_components made = {.count = count};
    for (uint32_t i = 0; i < count; i++) {
        if (!makes_sense(&settings[i], i == 0)) return TD_ERR_INVALID;
        made.parts[i].settings = settings[i];
        TD_TRY(td_edge_rate_init(&made.parts[i].rate, settings[i].rate_hz,
                                 settings[i].phase, tolerance_ns, now_ns));
    }
    *components = made;
    return TD_OK;
}

// The ask of component 0 with which it goes, of `every`.
static uint64_t turn(const td_edge_component *part)
{
    return (uint64_t)(part->phase * part->every) % part->every;
}

static void count_primary(td_edge_components *components)
{
    for (uint32_t i = 1; i < components->count; i++) {
        const td_edge_component *part = &components->parts[i].settings;
        if (part->every > 0 &&
            components->primary_asks % part->every == turn(part))
            components->parts[i].owed = true;
    }
    components->primary_asks++;
}

static bool take(td_edge_components *components, uint32_t i, int64_t now_ns)
{
    if (components->parts[i].settings.every > 0) {
        bool owed = components->parts[i].owed;
        components->parts[i].owed = false;
        return owed;
    }
    td_edge_rate *rate = &components->parts[i].rate;
    if (!td_edge_rate_allows(rate, now_ns)) return false;
    td_edge_rate_take(rate, now_ns);
    return true;
}

uint32_t td_edge_components_due(td_edge_components *components, int64_t now_ns,
                                bool primary, uint32_t able)
{
    uint32_t due = 0;
    if (primary) count_primary(components);
    for (uint32_t i = 0; i < components->count; i++) {
        bool asked = i == 0
                         ? primary
                         : (able & 1u << i) != 0 && take(components, i, now_ns);
        if (!asked) continue;
        due |= 1u << i;
        if (!components->parts[i].waiting)
            components->parts[i].since_ns = now_ns;
        components->parts[i].waiting = true;
    }
    return due;
}

void td_edge_components_answered(td_edge_components *components, uint32_t index)
{
    components->parts[index].waiting = false;
}

uint32_t td_edge_components_late(const td_edge_components *components,
                                 int64_t now_ns)
{
    uint32_t late = 0;
    for (uint32_t i = 0; i < components->count; i++) {
        int64_t deadline_ns = components->parts[i].settings.deadline_ns;
        if (components->parts[i].waiting && deadline_ns > 0 &&
            now_ns - components->parts[i].since_ns > deadline_ns)
            late |= 1u << i;
    }
    return late;
}
