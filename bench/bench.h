// SPDX-License-Identifier: Apache-2.0
#ifndef TD_BENCH_BENCH_H
#define TD_BENCH_BENCH_H

// What every benchmark needs: rows, pairs of interleaved blocks, child
// processes, a folder that goes away, and Ctrl-C.
//
// To add a benchmark: write bench/NAME.c with td_bench_NAME(), declare it here
// and add a row to the table in bench/main.c.
//
// Main thread only, unless a function says otherwise.

#include "base/hist.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct td_bench_options {
    bool json;
    bool quick; // few and short blocks: to try a change, not to quote
    int64_t minutes;
    int64_t robots;
    int64_t fps;      // of the soak's robots, which ask at every tick
    int64_t kill_s;   // how often a model's process is killed; 0: it has none
    const char *only; // cases (rt: sizes) whose name holds this; NULL: all
    const char *plot; // where those that draw put their charts; NULL: nowhere
} td_bench_options;

// Each prints its rows. CANCELLED after Ctrl-C; MISMATCH when what must hold
// does not.
TD_NODISCARD td_err td_bench_rt(const td_bench_options *options,
                                td_errinfo *info);
TD_NODISCARD td_err td_bench_tick(const td_bench_options *options,
                                  td_errinfo *info);
TD_NODISCARD td_err td_bench_wire(const td_bench_options *options,
                                  td_errinfo *info);
TD_NODISCARD td_err td_bench_sim(const td_bench_options *options,
                                 td_errinfo *info);
TD_NODISCARD td_err td_bench_async(const td_bench_options *options,
                                   td_errinfo *info);
TD_NODISCARD td_err td_bench_worker(const td_bench_options *options,
                                    td_errinfo *info);
TD_NODISCARD td_err td_bench_engine(const td_bench_options *options,
                                    td_errinfo *info);
TD_NODISCARD td_err td_bench_net(const td_bench_options *options,
                                 td_errinfo *info);
TD_NODISCARD td_err td_bench_soak(const td_bench_options *options,
                                  td_errinfo *info);
TD_NODISCARD td_err td_bench_sched(const td_bench_options *options,
                                   td_errinfo *info);
TD_NODISCARD td_err td_bench_serve(const td_bench_options *options,
                                   td_errinfo *info);
TD_NODISCARD td_err td_bench_peers(const td_bench_options *options,
                                   td_errinfo *info);
TD_NODISCARD td_err td_bench_python(const td_bench_options *options,
                                    td_errinfo *info);
TD_NODISCARD td_err td_bench_record(const td_bench_options *options,
                                    td_errinfo *info);
TD_NODISCARD td_err td_bench_rosa(const td_bench_options *options,
                                  td_errinfo *info);
TD_NODISCARD td_err td_bench_factory(const td_bench_options *options,
                                     td_errinfo *info);
TD_NODISCARD td_err td_bench_plan(const td_bench_options *options,
                                  td_errinfo *info);

// The rows of this machine's GPU, if it has one: part of td_bench_engine.
TD_NODISCARD td_err td_bench_engine_cuda(const td_bench_options *options,
                                         td_errinfo *info);

// The other process of a benchmark: `tendon-bench NAME ARGUMENTS`, started by
// the benchmark itself. Return exit codes.
int td_bench_echo(int argc, char **argv);
int td_bench_ping(int argc, char **argv);
int td_bench_flood(int argc, char **argv);
int td_bench_relay(int argc, char **argv);
int td_bench_policy(int argc, char **argv);

// One figure.
typedef struct td_bench_row {
    const char *bench;
    const char *name; // words joined by '/', the percentile last
    double value;
    const char *unit;
    bool more;           // is better; else less
    const char *against; // what it is compared with; NULL: nothing
    double ratio;        // value / the other's value
    double other;        // the other's value, where the ratio is 0
    double low, high;    // where the ratio lies; 0, 0: not said
    enum {
        TD_BENCH_NO_LIMIT,
        TD_BENCH_RATIO,
        TD_BENCH_VALUE,
        TD_BENCH_RATIO_OFF, // the ratio is off 1 by no more, either way
        TD_BENCH_VALUE_OFF, // the value is off the other's by no more, likewise
    } limited;
    double limit; // of the ratio or of the value
} td_bench_row;

// Prints the row, for people or as a line of JSON.
void td_bench_print(const td_bench_options *options, const td_bench_row *row);

// A line for people; nothing with --json.
void td_bench_say(const td_bench_options *options, const char *fmt, ...)
    TD_PRINTF(2, 3);

// Keeps the CPUs awake, for both sides of a comparison, as `realtime.wake_us:
// 0` does it for a robot: what the host of a virtual machine does with a
// sleeping one is coarser than the limits. Says so where it may not. -1, or
// what to close.
int td_bench_stay_awake(const td_bench_options *options);

// Whether a case is one of those that were asked for.
bool td_bench_wanted(const td_bench_options *options, const char *name);

// Rows printed, and those beyond their limit.
void td_bench_tally(uint64_t *ret_rows, uint64_t *ret_missed);

// A line on stderr that the next one replaces, where that is a terminal.
void td_bench_progress(const char *fmt, ...) TD_PRINTF(1, 2);

// Blocks of two sides that took turns; each pair ran back to back.
#define TD_BENCH_MAX_PAIRS 64

typedef struct td_bench_pairs {
    double ours[TD_BENCH_MAX_PAIRS], theirs[TD_BENCH_MAX_PAIRS];
    size_t count;
} td_bench_pairs;

void td_bench_pairs_add(td_bench_pairs *pairs, double ours, double theirs);

// Our side's median, and the median of the pairs' ratios. Not the ratio of the
// medians: what disturbs both sides of a pair alike falls out.
double td_bench_pairs_value(const td_bench_pairs *pairs);
double td_bench_pairs_ratio(const td_bench_pairs *pairs);

// Between which two of the ratios their true median lies, 19 times out of 20,
// whatever they are spread like; 0 and 0 of fewer than six pairs.
void td_bench_pairs_range(const td_bench_pairs *pairs, double *ret_low,
                          double *ret_high);

// Sorts `values`.
double td_bench_median(double *values, size_t count);

// A quantile in microseconds.
double td_bench_quantile_us(const td_hist *hist, double quantile);

// Ctrl-C: wakes td_bench_sleep(). Any thread, signal handlers too.
void td_bench_stop(void *unused);

// CANCELLED after Ctrl-C.
TD_NODISCARD td_err td_bench_sleep(int64_t ns);

// A new path in a folder that is made when first asked for.
#define TD_BENCH_PATH_BYTES 96
TD_NODISCARD td_err td_bench_file(const char *ending,
                                  char ret_path[TD_BENCH_PATH_BYTES],
                                  td_errinfo *info);
void td_bench_folder_remove(void);

// Removes a folder and the files in it, if it is there.
void td_bench_folder_clear(const char *path);

// A line of its output, or a path.
#define TD_BENCH_LINE_BYTES 256

// Another process, which dies with this one.
typedef struct td_bench_child {
    pid_t pid; // 0: none
    char log[TD_BENCH_PATH_BYTES];
} td_bench_child;

// This program again, as the other process of a benchmark. `args` begins with
// that one's name and ends with NULL. IO.
TD_NODISCARD td_err td_bench_child_start(const char *const *args,
                                         td_bench_child *ret_child,
                                         td_errinfo *info);

// `tendon`, which stands beside this program: where it is, and as a process.
// `args` begins with the command and ends with NULL. NOTFOUND, IO.
TD_NODISCARD td_err td_bench_tendon(char ret_path[TD_BENCH_LINE_BYTES],
                                    td_errinfo *info);
TD_NODISCARD td_err td_bench_tendon_start(const char *const *args,
                                          td_bench_child *ret_child,
                                          td_errinfo *info);

// Waits for a line of the child's output, 0 the first. IO if it ended instead.
TD_NODISCARD td_err td_bench_child_line(const td_bench_child *child,
                                        size_t index,
                                        char ret_line[TD_BENCH_LINE_BYTES],
                                        td_errinfo *info);

// Waits until the first line is this one. IO if it is another.
#define TD_BENCH_READY "ready"
TD_NODISCARD td_err td_bench_child_ready(const td_bench_child *child,
                                         td_errinfo *info);

// Asks it to end, insists after a while, and waits. Nothing to do for none.
void td_bench_child_end(td_bench_child *child);
void td_bench_child_kill(td_bench_child *child);

// A file or folder (`name` "": itself) as seen from the folder that this
// program is in. False: not there; the path is where it was looked for, or
// empty.
bool td_bench_find(const char *relative, const char *name,
                   char ret_path[TD_BENCH_LINE_BYTES]);

// A program of somebody else's to compare with: a script of bench/peers, run by
// the Python of the environment that `tools/setup --bench` makes, or --lerobot.
typedef struct td_bench_peer {
    td_bench_child child;
    size_t blocks; // so far
} td_bench_peer;

// Whether a script can run; if not, says in one line who is missing, or older
// than what it is to be, and what brings it.
bool td_bench_peer_can(const td_bench_options *options, const char *name,
                       const char *script);

// The same of Inferential.
bool td_bench_peer_there(const td_bench_options *options);

// `args` begins with the script and ends with NULL. Waits until it is ready.
// IO, NOTFOUND.
TD_NODISCARD td_err td_bench_peer_start(const char *const *args,
                                        td_bench_peer *ret_peer,
                                        td_errinfo *info);

// Has it run a block and waits for the numbers that it prints. IO.
TD_NODISCARD td_err td_bench_peer_block(td_bench_peer *peer, double *ret_values,
                                        size_t count, td_errinfo *info);

#endif
