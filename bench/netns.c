// SPDX-License-Identifier: Apache-2.0
#include "bench/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512

static const char *const devices[] = {
    [TD_BENCH_NEAR] = "td-near",
    [TD_BENCH_FAR] = "td-far",
};
static const char *const addresses[] = {
    [TD_BENCH_NEAR] = TD_BENCH_NEAR_ADDRESS,
    [TD_BENCH_FAR] = TD_BENCH_FAR_ADDRESS,
};

// Runs a line of the shell where this thread is. IO with the first thing that
// it says.
TD_PRINTF(2, 3)
static td_err command(td_errinfo *info, const char *fmt, ...)
{
    char line[LINE_BYTES];
    char whole[LINE_BYTES + 16];
    char said[LINE_BYTES / 4] = "";
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    (void)snprintf(whole, sizeof whole, "%s 2>&1", line);
    FILE *pipe = popen(whole, "re");
    if (!pipe) return td_fail(info, TD_ERR_IO, "popen: %s", strerror(errno));
    if (!fgets(said, sizeof said, pipe)) said[0] = 0;
    said[strcspn(said, "\n")] = 0;
    if (pclose(pipe) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "%.200s: %s", line, said);
}

static td_err check_tools(td_errinfo *info)
{
    static const struct {
        const char *name, *package;
    } tools[] = {{"ip", "iproute2"}, {"tc", "iproute2"}, {"nft", "nftables"}};
    for (size_t i = 0; i < TD_COUNT_OF(tools); i++)
        if (command(NULL, "command -v %s", tools[i].name) != TD_OK)
            return td_fail(info, TD_ERR_NOTFOUND,
                           "needs %s, which is not here: install %s",
                           tools[i].name, tools[i].package);
    return TD_OK;
}

static int open_here(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static td_err enter_new_netns(int *ret_fd, td_errinfo *info)
{
    if (unshare(CLONE_NEWNET) == 0) {
        *ret_fd = open_here();
        return TD_OK;
    }
    if (errno != EPERM)
        return td_fail(info, TD_ERR_IO, "unshare: %s", strerror(errno));
    return td_fail(info, TD_ERR_DENIED,
                   "makes networks of its own, which only root may: try "
                   "it with sudo");
}

td_err td_bench_netns_enter(const td_bench_netns *netns, td_bench_side side,
                            td_errinfo *info)
{
    if (setns(netns->side_fds[side], CLONE_NEWNET) == 0) return TD_OK;
    return td_fail(info, TD_ERR_IO, "setns: %s", strerror(errno));
}

static td_err raise_end(const td_bench_netns *netns, td_bench_side side,
                        td_errinfo *info)
{
    const char *device = devices[side];
    TD_TRY(td_bench_netns_enter(netns, side, info));
    TD_TRY(
        command(info, "ip address add %s/24 dev %s", addresses[side], device));
    // A packet is a frame as on a real cable, so that a lost one is one.
    TD_TRY(command(info, "ip link set %s gso_max_segs 1 up", device));
    return command(info, "ip link set lo up");
}

static td_err create_link(td_bench_netns *netns, td_errinfo *info)
{
    TD_TRY(enter_new_netns(&netns->side_fds[TD_BENCH_FAR], info));
    TD_TRY(enter_new_netns(&netns->side_fds[TD_BENCH_NEAR], info));
    TD_TRY(check_tools(info));
    TD_TRY(command(info,
                   "ip link add %s type veth peer name %s netns /proc/%d/fd/%d",
                   devices[TD_BENCH_NEAR], devices[TD_BENCH_FAR], (int)getpid(),
                   netns->side_fds[TD_BENCH_FAR]));
    TD_TRY(raise_end(netns, TD_BENCH_FAR, info));
    return raise_end(netns, TD_BENCH_NEAR, info);
}

td_err td_bench_netns_open(td_bench_netns **ret_netns, td_errinfo *info)
{
    TD_AUTO(td_bench_netns) *netns = calloc(1, sizeof *netns);
    if (!netns) return TD_ERR_NOMEM;
    netns->side_fds[TD_BENCH_NEAR] = netns->side_fds[TD_BENCH_FAR] = -1;
    netns->home_fd = open_here();
    TD_TRY(create_link(netns, info));
    *ret_netns = TD_TAKE(netns);
    return TD_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0) (void)close(fd);
}

void td_bench_netns_close(td_bench_netns *netns)
{
    if (netns->home_fd >= 0) (void)setns(netns->home_fd, CLONE_NEWNET);
    close_fd(netns->side_fds[TD_BENCH_NEAR]);
    close_fd(netns->side_fds[TD_BENCH_FAR]);
    close_fd(netns->home_fd);
    free(netns);
}

static td_err slow_down(const char *device, unsigned mbit, td_errinfo *info)
{
    (void)command(NULL, "tc qdisc del dev %s root", device);
    if (mbit == 0) return TD_OK;
    return command(
        info,
        "tc qdisc add dev %s root tbf rate %umbit burst 32kb latency 50ms",
        device, mbit);
}

static td_err lose(const char *device, unsigned percent, td_errinfo *info)
{
    TD_TRY(command(info, "nft flush ruleset"));
    if (percent == 0) return TD_OK;
    TD_TRY(command(info, "nft 'add table inet cable; add chain inet cable in "
                         "{ type filter hook input priority 0; }'"));
    return command(info,
                   "nft 'add rule inet cable in iifname %s "
                   "numgen random mod 100 < %u drop'",
                   device, percent);
}

td_err td_bench_netns_shape(const td_bench_netns *netns, unsigned mbit,
                            unsigned loss_percent, td_errinfo *info)
{
    static const td_bench_side sides[] = {TD_BENCH_FAR, TD_BENCH_NEAR};
    for (size_t i = 0; i < TD_COUNT_OF(sides); i++) {
        TD_TRY(td_bench_netns_enter(netns, sides[i], info));
        TD_TRY(slow_down(devices[sides[i]], mbit, info));
        TD_TRY(lose(devices[sides[i]], loss_percent, info));
    }
    return TD_OK;
}

td_err td_bench_netns_sent(uint64_t *ret_bytes, td_errinfo *info)
{
    char line[LINE_BYTES];
    const char *device = devices[TD_BENCH_NEAR];
    unsigned long long sent;
    FILE *file = fopen("/proc/thread-self/net/dev", "re");
    if (!file) return td_fail(info, TD_ERR_IO, "net/dev: %s", strerror(errno));
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, device);
        // Eight numbers of what was received come first.
        found =
            at && sscanf(at + strlen(device),
                         ": %*u %*u %*u %*u %*u %*u %*u %*u %llu", &sent) == 1;
    }
    (void)fclose(file);
    if (!found) return td_fail(info, TD_ERR_IO, "net/dev: no %s", device);
    *ret_bytes = sent;
    return TD_OK;
}
