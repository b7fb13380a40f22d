// SPDX-License-Identifier: Apache-2.0

// The gate against wanted rows that mean it harm: whatever goes in, what comes
// out keeps the limits.

#include "edge/safety/gate_fixture.h"

#include "base/rand.h"

#define WALKS 100000 // of one channel each
#define CHANNELS 10
#define SHORT_TICKS 40
#define LONG_TICKS 2000 // one walk in a hundred

static double between(td_rand *rand, double low, double high)
{
    return low + (high - low) * td_rand_unit(rand);
}

static bool one_in(td_rand *rand, uint32_t n)
{
    return td_rand_u64(rand) % n == 0;
}

static double power_of_ten(td_rand *rand, double low, double high)
{
    return pow(10, between(rand, low, high));
}

static td_edge_gate_channel random_channel(td_rand *rand, double scale)
{
    double middle = between(rand, -2, 2) * scale;
    td_edge_gate_channel channel = {
        .kind = one_in(rand, 4) ? TD_WIRE_ANGLE : TD_WIRE_LINEAR,
        .min = middle - scale * td_rand_unit(rand),
        .max = middle + scale * td_rand_unit(rand),
        .max_step = scale * power_of_ten(rand, -3, 0),
    };
    channel.max_accel_step = channel.max_step * power_of_ten(rand, -3, 0.5);
    if (one_in(rand, 5)) channel.min = -INFINITY;
    if (one_in(rand, 5)) channel.max = INFINITY;
    if (one_in(rand, 5)) channel.max_step = INFINITY;
    if (one_in(rand, 5)) channel.max_accel_step = INFINITY;
    return channel;
}

// Inside the limits mostly, or up to a range outside.
static float random_start(td_rand *rand, const td_edge_gate_channel *channel,
                          double scale)
{
    double low = isinf(channel->min) ? -scale : channel->min;
    double high = isinf(channel->max) ? low + scale : channel->max;
    if (high < low) low = high - scale;
    double beyond = one_in(rand, 5) ? high - low : 0;
    return (float)between(rand, low - beyond, high + beyond);
}

// Somebody who wants: for a while one thing, then another.
typedef struct demand {
    td_rand *rand;
    double scale;
    double value, drift;
    uint32_t kind, left;
} demand;

static float wanted_next(demand *w, double last, double max_step)
{
    td_rand *rand = w->rand;
    if (w->left-- == 0) {
        w->left = (uint32_t)between(rand, 0, 60);
        w->kind = (uint32_t)(td_rand_u64(rand) % 7);
        w->value = between(rand, -3, 3) * w->scale;
        double most = isinf(max_step) ? w->scale : max_step;
        w->drift = between(rand, -1.5, 1.5) * most;
    }
    switch (w->kind) {
    case 0: // stands
        return (float)w->value;
    case 1: // runs
        return (float)(w->value += w->drift);
    case 2: // trembles
        return (float)(w->value + w->scale * td_rand_normal(rand));
    case 3: // trembles at the command
        return (float)(last + 0.01 * w->scale * td_rand_normal(rand));
    case 4: // flips
        return (float)(w->value = -w->value);
    case 5: // pulls along
        return (float)(last + w->drift);
    default: // is out of its mind
        return (float[]){NAN, INFINITY, -FLT_MAX, FLT_MAX, 0, FLT_TRUE_MIN}
            [td_rand_u64(rand) % 6];
    }
}

static void walk(td_rand *rand, uint32_t ticks)
{
    td_edge_gate_channel channels[CHANNELS];
    demand who[CHANNELS];
    float wanted[CHANNELS], command[CHANNELS];
    for (uint32_t i = 0; i < CHANNELS; i++) {
        double scale = power_of_ten(rand, -3, 3);
        channels[i] = random_channel(rand, scale);
        command[i] = random_start(rand, &channels[i], scale);
        who[i] = (demand){.rand = rand, .scale = scale};
    }
    td_edge_gate gate = gate_new(channels, CHANNELS, command);
    gate_watch watches[CHANNELS];
    for (uint32_t i = 0; i < CHANNELS; i++)
        watches[i] = gate_watch_from(&gate, i);
    while (ticks-- > 0) {
        for (uint32_t i = 0; i < CHANNELS; i++)
            wanted[i] = wanted_next(&who[i], command[i], channels[i].max_step);
        gate_pass(&gate, wanted, command);
        for (uint32_t i = 0; i < CHANNELS; i++)
            gate_watch_command(&watches[i], &command[i]);
    }
}

static void no_wanted_row_leads_beyond_a_limit(void **state)
{
    (void)state;
    td_rand all, rand;
    td_rand_init(&all, 1);
    for (uint32_t i = 0; i < WALKS / CHANNELS; i++) {
        td_rand_fork(&all, i, &rand);
        walk(&rand, i % 100 == 0 ? LONG_TICKS : SHORT_TICKS);
    }
}

// Wanted rows that keep the limits themselves, made by a gate of their own.
static void rows_inside_the_limits_pass_bit_for_bit(void **state)
{
    (void)state;
    td_rand all, rand;
    td_rand_init(&all, 2);
    for (uint32_t i = 0; i < 1000; i++) {
        td_rand_fork(&all, i, &rand);
        double scale = power_of_ten(&rand, -3, 3);
        td_edge_gate_channel channel = random_channel(&rand, scale);
        float row = random_start(&rand, &channel, scale);
        td_edge_gate made = gate_new(&channel, 1, &row);
        channel.max_step *= 1 + 1e-5;
        channel.max_accel_step *= 1 + 1e-2;
        td_edge_gate gate = gate_new(&channel, 1, &row);
        demand who = {.rand = &rand, .scale = scale};
        for (uint32_t j = 0; j < 200; j++) {
            row =
                gate_pass_one(&made, wanted_next(&who, row, channel.max_step));
            float command;
            td_edge_gate_hits hits = gate_pass(&gate, &row, &command);
            assert_memory_equal(&command, &row, sizeof row);
            assert_int_equal(hits.consecutive, 0);
        }
    }
}

// From any motion: comes to it, and never leaves again.
static void a_wanted_that_stands_is_reached_exactly_and_kept(void **state)
{
    (void)state;
    td_rand all, rand;
    td_rand_init(&all, 3);
    for (uint32_t i = 0; i < 2000; i++) {
        td_rand_fork(&all, i, &rand);
        td_edge_gate_channel channel = {
            .kind = TD_WIRE_LINEAR,
            .min = -1,
            .max = 1,
            .max_step = power_of_ten(&rand, -2, 0),
            .max_accel_step = power_of_ten(&rand, -4, 0),
        };
        float command = (float)between(&rand, -1, 1);
        td_edge_gate gate = gate_new(&channel, 1, &command);
        demand who = {.rand = &rand, .scale = 1};
        for (uint32_t j = 0; j < 50; j++)
            command = gate_pass_one(&gate, wanted_next(&who, command, 0.1));
        float wanted = (float)between(&rand, -1, 1);
        uint32_t ticks = 0;
        // To stop, to turn back and to cover 2 units, each with some room.
        double most =
            4 * sqrt(4 / channel.max_accel_step) + 4 / channel.max_step + 10;
        while (gate.at[0] != wanted || gate.step[0] != 0) {
            gate_pass_one(&gate, wanted);
            if (ticks++ > most) fail_msg("still at %.17g", gate.at[0]);
        }
        for (uint32_t j = 0; j < 10; j++)
            assert_float_equal(gate_pass_one(&gate, wanted), wanted, 0);
    }
}

static void random_quaternion(td_rand *rand, float *ret_quaternion)
{
    for (int i = 0; i < 4; i++)
        ret_quaternion[i] = (float)td_rand_normal(rand);
    if (one_in(rand, 50)) memset(ret_quaternion, 0, 4 * sizeof(float));
    if (one_in(rand, 50)) ret_quaternion[2] = NAN;
}

static td_edge_gate random_rotation(td_rand *rand)
{
    td_edge_gate_channel channels[] = {ROTATION, ROTATION, ROTATION, ROTATION};
    channels[0].max_step = power_of_ten(rand, -3, 0);
    channels[0].max_accel_step =
        channels[0].max_step * power_of_ten(rand, -2, 0.5);
    if (one_in(rand, 5)) channels[0].max_step = INFINITY;
    if (one_in(rand, 5)) channels[0].max_accel_step = INFINITY;
    return gate_new(channels, 4, (float[]){0.5F, -0.5F, 0.5F, -0.5F});
}

static void no_wanted_orientation_leads_beyond_a_limit(void **state)
{
    (void)state;
    td_rand all, rand;
    td_rand_init(&all, 4);
    for (uint32_t i = 0; i < 5000; i++) {
        td_rand_fork(&all, i, &rand);
        td_edge_gate gate = random_rotation(&rand);
        gate_watch watch = gate_watch_from(&gate, 0);
        float wanted[4] = {0, 0, 0, 1}, command[4];
        for (uint32_t j = 0; j < 100; j++) {
            if (one_in(&rand, 10)) random_quaternion(&rand, wanted);
            gate_pass(&gate, wanted, command);
            gate_watch_command(&watch, command);
            double length = 0;
            for (int k = 0; k < 4; k++)
                length += (double)command[k] * command[k];
            assert_float_equal(length, 1, 1e-5);
        }
    }
}

static void a_wanted_orientation_is_reached_exactly_and_kept(void **state)
{
    (void)state;
    td_rand all, rand;
    td_rand_init(&all, 5);
    for (uint32_t i = 0; i < 1000; i++) {
        td_rand_fork(&all, i, &rand);
        td_edge_gate gate = random_rotation(&rand);
        float wanted[4], command[4];
        for (uint32_t j = 0; j < 100; j++) {
            if (one_in(&rand, 10)) random_quaternion(&rand, wanted);
            gate_pass(&gate, wanted, command);
        }
        for (int k = 0; k < 4; k++)
            wanted[k] = (float)td_rand_normal(&rand);
        uint32_t ticks = 0;
        td_edge_gate_hits hits;
        do {
            hits = gate_pass(&gate, wanted, command);
            if (ticks++ > 20000) fail_msg("walk %u never arrives", i);
        } while (hits.consecutive > 0 || gate.step[0] != 0);
        float kept[4];
        memcpy(kept, command, sizeof kept);
        gate_pass(&gate, wanted, command);
        assert_memory_equal(command, kept, sizeof kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_wanted_row_leads_beyond_a_limit),
        cmocka_unit_test(rows_inside_the_limits_pass_bit_for_bit),
        cmocka_unit_test(a_wanted_that_stands_is_reached_exactly_and_kept),
        cmocka_unit_test(no_wanted_orientation_leads_beyond_a_limit),
        cmocka_unit_test(a_wanted_orientation_is_reached_exactly_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
