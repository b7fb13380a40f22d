// SPDX-License-Identifier: Apache-2.0
// The other processes of rt: both ends of a bare Zenoh ping, on the same
// threads of Zenoh as ours (ZENOH_RUNTIME) and with nothing else of ours.
#include "base/clock.h"
#include "bench/bare.h"
#include "tendon_zenoh.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "bench/ping"

// Signals are waited for, so that no thread is interrupted by one.
static void block_signals(sigset_t *ret_signals)
{
    (void)sigemptyset(ret_signals);
    (void)sigaddset(ret_signals, SIGINT);
    (void)sigaddset(ret_signals, SIGTERM);
    (void)sigaddset(ret_signals, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, ret_signals, NULL);
}

static int next_signal(const sigset_t *signals)
{
    int number = 0;
    while (sigwait(signals, &number) != 0)
        continue;
    return number;
}

static int fail(const char *what, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", what, text);
    return 1;
}

static void report_ready(void)
{
    (void)puts(TD_BENCH_READY);
    (void)fflush(stdout);
}

int td_bench_echo(int argc, char **argv)
{
    char err[256] = "";
    sigset_t signals;
    tdr_echo *echo = NULL;
    if (argc != 5) return 2;
    block_signals(&signals);
    if (tdr_echo_open(argv[1], KEY, strcmp(argv[2], "shm") == 0,
                      strcmp(argv[3], "handed-over") == 0,
                      strtoul(argv[4], NULL, 10), &echo, err,
                      sizeof err) != TDR_OK)
        return fail("echo", err);
    report_ready();
    while (next_signal(&signals) == SIGUSR1)
        continue;
    tdr_echo_close(echo);
    return 0;
}

static bool run_block(tdr_ping *ping, int64_t period_ns, size_t samples,
                      td_hist *ret_hist)
{
    int64_t due_ns = td_clock_monotonic_ns();
    td_hist_init(ret_hist);
    for (size_t i = 0; i < TD_BENCH_BARE_WARM + samples; i++) {
        int64_t took_ns;
        due_ns += period_ns;
        td_clock_sleep_until(due_ns);
        if (tdr_ping_run(ping, 1, &took_ns) != TDR_OK) return false;
        if (i >= TD_BENCH_BARE_WARM) td_hist_record(ret_hist, took_ns);
    }
    return true;
}

// A block for each SIGUSR1, and a line "P50_US P99_US" when it is done.
int td_bench_ping(int argc, char **argv)
{
    static td_hist hist;
    char err[256] = "";
    sigset_t signals;
    tdr_ping *ping = NULL;
    if (argc != 6) return 2;
    block_signals(&signals);
    if (tdr_ping_open(argv[1], KEY, strcmp(argv[2], "shm") == 0,
                      strtoul(argv[3], NULL, 10), &ping, err,
                      sizeof err) != TDR_OK)
        return fail("ping", err);
    int64_t period_ns = TD_NS_PER_S / strtol(argv[4], NULL, 10);
    report_ready();
    bool ok = true;
    while (ok && next_signal(&signals) == SIGUSR1) {
        ok = run_block(ping, period_ns, strtoul(argv[5], NULL, 10), &hist);
        (void)printf("%.3f %.3f\n", td_bench_quantile_us(&hist, 0.5),
                     td_bench_quantile_us(&hist, 0.99));
        (void)fflush(stdout);
    }
    tdr_ping_close(ping);
    return ok ? 0 : fail("ping", "one was lost");
}
