// SPDX-License-Identifier: Apache-2.0
// The other process of tick: what robot and server meet at, which floods robots
// with junk answers.
#include "base/clock.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "net/zenoh/zenoh.h"

#include <signal.h>
#include <stdio.h>

#define JUNK_BYTES 2800

static _Atomic bool flooding, flood_over;

static void on_switch(int number)
{
    flooding = number == SIGUSR1;
}

static void end_flooding(void *unused)
{
    (void)unused;
    flood_over = true;
}

static void sleep_a_little(void)
{
    td_clock_sleep_until(td_clock_monotonic_ns() + TD_NS_PER_MS);
}

// Puts junk as fast as it can between SIGUSR1 and SIGUSR2.
static td_err flood(td_net_pub *pub)
{
    static const char junk[JUNK_BYTES];
    const td_slice part = {junk, sizeof junk};
    (void)puts(TD_BENCH_READY);
    (void)fflush(stdout);
    while (!flood_over)
        if (flooding)
            TD_TRY(td_net_put(pub, &part, 1, NULL, NULL));
        else
            sleep_a_little();
    return TD_OK;
}

static td_err run_flood(const char *endpoint, const char *key, td_errinfo *info)
{
    const td_net_zenoh_config config = {
        .mode = TD_NET_ZENOH_ROUTER, .listen = &endpoint, .listen_count = 1};
    const td_net_qos qos = {
        .priority = TD_NET_INTERACTIVE_HIGH, .reliable = true, .express = true};
    TD_AUTO(td_net) *net = NULL;
    TD_AUTO(td_net_pub) *pub = NULL;
    TD_TRY(td_net_zenoh_open(&config, &net, info));
    TD_TRY(td_net_publish(net, key, &qos, &pub, info));
    return flood(pub);
}

int td_bench_flood(int argc, char **argv)
{
    td_errinfo info = {.text = ""};
    if (argc != 3) return 2;
    td_cli_on_stop(end_flooding, NULL);
    (void)signal(SIGUSR1, on_switch);
    (void)signal(SIGUSR2, on_switch);
    td_err err = run_flood(argv[1], argv[2], &info);
    return err == TD_OK ? 0 : td_cli_fail("bench flood", err, &info);
}
