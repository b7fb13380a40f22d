// SPDX-License-Identifier: Apache-2.0
// `tendon doctor`: what this machine has, what it lacks, and what to do about
// it.
//
// One check a function; each prints one line, or a few, through say(): fine,
// could be better, or missing, then what was found and what to do.
// check_machine() calls them in order. With an endpoint the link to it is tried
// as well; with a manifest each of its models is loaded and asked for a second
// (doctor_model.c).
//
// Nothing here changes the machine. The check of Zenoh opens two sessions over
// a socket in a folder that goes again; the check of the real-time priority
// starts a thread that does nothing.
//
// `first_link` is written by the transport's thread and guarded by its event:
// it is read only after the event was signalled.
#include "base/clock.h"
#include "base/sync/event.h"
#include "base/sync/thread.h"
#include "cli/cli.h"
#include "cli/doctor_model.h"
#include "config/manifest/manifest.h"
#include "dataset/table/table.h"
#include "media/video.h"
#include "net/zenoh/zenoh.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char help[] =
    "usage: tendon doctor [ENDPOINT | MANIFEST.yaml [--profiles DIR]]\n"
    "\n"
    "Says what this machine has, what it lacks and what to do about it. With "
    "an\n"
    "endpoint it also tries to reach whoever listens there. With a manifest it "
    "also\n"
    "loads each of its models, one after the other and as `tendon serve` "
    "would, and\n"
    "says where it runs, in which precision and how long a chunk takes.\n"
    "\n"
    "  --profiles DIR  what to expect of them: profiles that `tendon profile` "
    "wrote\n"
    "\n"
    "examples:\n"
    "  tendon doctor\n"
    "  tendon doctor tcp/192.168.1.50:7447\n"
    "  tendon doctor examples/manifest.yaml\n"
    "  tendon doctor serve.yaml --profiles profiles\n";

#define LINK_WAIT_NS (3 * TD_NS_PER_S)

static const char *const marks[] = {[TD_CLI_DOCTOR_FINE] = "ok  ",
                                    [TD_CLI_DOCTOR_WORSE] = "warn",
                                    [TD_CLI_DOCTOR_BROKEN] = "FAIL"};

static bool broken;

static void print_verdict(td_cli_doctor_verdict found, const char *what,
                          const char *fmt, ...) TD_PRINTF(3, 4);

static void print_verdict(td_cli_doctor_verdict found, const char *what,
                          const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)printf("%s  %-14s ", marks[found], what);
    (void)vprintf(fmt, args);
    (void)printf("\n");
    va_end(args);
    if (found == TD_CLI_DOCTOR_BROKEN) broken = true;
}

static void cpu_name(char *ret_name, size_t size)
{
    (void)snprintf(ret_name, size, "unknown CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *colon = strchr(line, ':');
        if (!colon) continue;
        (void)snprintf(ret_name, size, "%.*s", (int)strcspn(colon + 2, "\n"),
                       colon + 2);
        break;
    }
    if (file) (void)fclose(file);
}

static void check_cpu(void)
{
    char name[200];
    struct utsname system;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_name(name, sizeof name);
    (void)uname(&system);
    print_verdict(cores >= 2 ? TD_CLI_DOCTOR_FINE : TD_CLI_DOCTOR_WORSE, "cpu",
                  "%ld x %s, Linux %s%s", cores, name, system.release,
                  cores >= 2 ? "" : "; a robot wants 2 cores or more");
}

static void do_nothing(void *user)
{
    (void)user;
}

static void check_realtime(void)
{
    td_thread_config config = {
        .name = "td-doctor", .realtime_priority = 80, .cpu = -1};
    td_thread *thread = NULL;
    td_errinfo info = {.text = ""};
    if (td_thread_start(&config, do_nothing, NULL, &thread, &info) != TD_OK) {
        print_verdict(TD_CLI_DOCTOR_BROKEN, "threads", "%s", info.text);
        return;
    }
    const char *refusal = td_thread_refusal(thread);
    if (refusal)
        print_verdict(TD_CLI_DOCTOR_WORSE, "real-time", "%s", refusal);
    else
        print_verdict(TD_CLI_DOCTOR_FINE, "real-time", "SCHED_FIFO is allowed");
    td_thread_join(thread);
}

// What the kernel was started with where that can be chosen; empty: it does not
// say. Its file names all modes and puts the one that counts in brackets.
static void chosen_preemption(char ret_mode[32])
{
    char line[4096] = "";
    ret_mode[0] = '\0';
    FILE *file = fopen("/sys/kernel/debug/sched/preempt", "re");
    if (!file) file = fopen("/proc/cmdline", "re");
    if (!file) return;
    if (!fgets(line, sizeof line, file)) line[0] = '\0';
    (void)fclose(file);
    const char *mode = strchr(line, '(');
    const char *option = strstr(line, "preempt=");
    if (mode)
        (void)sscanf(mode, "(%31[a-z]", ret_mode);
    else if (option)
        (void)sscanf(option, "preempt=%31[a-z]", ret_mode);
}

static void check_preemption(void)
{
    struct utsname system;
    char mode[32];
    (void)uname(&system);
    chosen_preemption(mode);
    bool dynamic = strstr(system.version, "PREEMPT_DYNAMIC");
    if (!mode[0])
        (void)snprintf(mode, sizeof mode, "%s", dynamic ? "not said" : "none");
    if (strstr(system.version, "PREEMPT_RT"))
        print_verdict(TD_CLI_DOCTOR_FINE, "preemption",
                      "PREEMPT_RT: the tick goes before everything");
    else if (dynamic ? strcmp(mode, "full") == 0
                     : strstr(system.version, "PREEMPT") != NULL)
        print_verdict(TD_CLI_DOCTOR_FINE, "preemption",
                      "full: the tick goes before system calls");
    else
        print_verdict(
            TD_CLI_DOCTOR_WORSE, "preemption",
            "%s: a tick may wait for another program's system call; start the "
            "kernel with preempt=full, or take one with PREEMPT_RT",
            mode);
}

static void check_memlock(void)
{
    td_errinfo info = {.text = ""};
    if (td_thread_lock_memory(&info) == TD_OK)
        print_verdict(TD_CLI_DOCTOR_FINE, "locked memory", "allowed");
    else
        print_verdict(TD_CLI_DOCTOR_WORSE, "locked memory", "%s", info.text);
}

static void check_awake(void)
{
    int fd = -1;
    td_errinfo info = {.text = ""};
    if (td_thread_stay_awake(INT32_MAX, &fd, &info) == TD_OK)
        print_verdict(TD_CLI_DOCTOR_FINE, "awake CPUs", "allowed");
    else
        print_verdict(TD_CLI_DOCTOR_WORSE, "awake CPUs", "%s", info.text);
    if (fd >= 0) (void)close(fd);
}

static void check_shm(void)
{
    struct statvfs shm;
    if (statvfs("/dev/shm", &shm) != 0) {
        print_verdict(TD_CLI_DOCTOR_WORSE, "/dev/shm",
                      "not there: large messages are copied instead");
        return;
    }
    uint64_t free_mib = ((uint64_t)shm.f_bavail * shm.f_frsize) >> 20;
    print_verdict(free_mib >= 128 ? TD_CLI_DOCTOR_FINE : TD_CLI_DOCTOR_WORSE,
                  "/dev/shm", "%" PRIu64 " MiB free%s", free_mib,
                  free_mib >= 128 ? "" : "; 128 MiB or more is wanted");
}

// What the first link says of itself.
typedef struct first_link {
    td_event seen;
    bool shared_memory;
    char address[256];
} first_link;

// Transport's thread.
static void on_link(void *user, const td_net_link *link)
{
    first_link *first = user;
    if (!link->up || first->address[0]) return;
    first->shared_memory = link->shared_memory;
    (void)snprintf(first->address, sizeof first->address, "%s", link->address);
    td_event_signal(&first->seen);
}

static bool wait_for_link(td_net *net, first_link *link, td_errinfo *info)
{
    td_net_decl *decl = NULL;
    td_event_init(&link->seen);
    if (td_net_links(net, on_link, link, &decl, info) != TD_OK) return false;
    int64_t until_ns = td_clock_monotonic_ns() + LINK_WAIT_NS;
    bool seen = td_event_wait_until(&link->seen, until_ns);
    (void)td_net_undeclare(decl);
    if (!seen)
        (void)td_fail(info, TD_ERR_TIMEOUT, "no link within %d s",
                      (int)(LINK_WAIT_NS / TD_NS_PER_S));
    return seen;
}

static td_err dial(const char *endpoint, td_net **ret_net, td_errinfo *info)
{
    td_net_zenoh_config config = {
        .mode = TD_NET_ZENOH_CLIENT,
        .connect = &endpoint,
        .connect_count = 1,
        .shared_memory = true,
    };
    return td_net_zenoh_open(&config, ret_net, info);
}

static void check_link(const char *what, const char *endpoint)
{
    td_errinfo info = {.text = ""};
    first_link link = {0};
    TD_AUTO(td_net) *net = NULL;
    if (dial(endpoint, &net, &info) != TD_OK ||
        !wait_for_link(net, &link, &info)) {
        print_verdict(TD_CLI_DOCTOR_BROKEN, what,
                      "%s: %s; is somebody listening there?", endpoint,
                      info.text);
        return;
    }
    print_verdict(
        TD_CLI_DOCTOR_FINE, what, "%s, %s", link.address,
        link.shared_memory
            ? "through shared memory"
            : "large messages are copied: the other end is on another "
              "machine, or has no shared memory");
}

// Two sessions of our own, over a socket in a folder that goes again.
static void check_zenoh(void)
{
    char folder[] = "/tmp/tendon-doctor-XXXXXX";
    char endpoint[128];
    const char *listen = endpoint;
    td_errinfo info = {.text = ""};
    if (!mkdtemp(folder)) {
        print_verdict(TD_CLI_DOCTOR_BROKEN, "zenoh",
                      "cannot make a folder in /tmp");
        return;
    }
    (void)snprintf(endpoint, sizeof endpoint, "unixsock-stream/%s/socket",
                   folder);
    td_net_zenoh_config config = {
        .mode = TD_NET_ZENOH_ROUTER,
        .listen = &listen,
        .listen_count = 1,
        .shared_memory = true,
    };
    td_net *net = NULL;
    print_verdict(TD_CLI_DOCTOR_FINE, "zenoh", "version %s",
                  td_net_zenoh_version());
    if (td_net_zenoh_open(&config, &net, &info) == TD_OK) {
        const char *refusal = td_net_zenoh_shm_refusal(net);
        if (refusal)
            print_verdict(TD_CLI_DOCTOR_WORSE, "shared memory", "%s", refusal);
        check_link("zenoh link", endpoint);
        td_net_close(net);
    } else {
        print_verdict(TD_CLI_DOCTOR_BROKEN, "zenoh link", "%s", info.text);
    }
    (void)rmdir(folder);
}

// The driver's own library tells; nothing of CUDA is needed to ask.
static void check_gpu(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        print_verdict(TD_CLI_DOCTOR_FINE, "gpu",
                      "no NVIDIA driver: robots and synthetic servers need "
                      "none");
        return;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*count)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    int (*name)(char *, int, int) =
        (int (*)(char *, int, int))dlsym(library, "cuDeviceGetName");
    int devices = 0;
    if (!init || !count || !name || init(0) != 0 || count(&devices) != 0)
        print_verdict(TD_CLI_DOCTOR_WORSE, "gpu",
                      "a driver that does not start: see `nvidia-smi`");
    for (int i = 0; i < devices; i++) {
        char text[128] = "";
        (void)name(text, sizeof text, i);
        print_verdict(TD_CLI_DOCTOR_FINE, "gpu", "%d: %s", i, text);
    }
    (void)dlclose(library);
}

static void check_videos(void)
{
    char codecs[64] = "";
    td_errinfo info = {.text = ""};
    for (int i = 0; i < TD_MEDIA_CODEC_COUNT; i++) {
        size_t used = strlen(codecs);
        if (td_media_codec_check((td_media_codec)i, &info) != TD_OK) {
            print_verdict(TD_CLI_DOCTOR_WORSE, "videos", "%s", info.text);
            return;
        }
        (void)snprintf(codecs + used, sizeof codecs - used, "%s%s",
                       i > 0 ? " and " : "",
                       td_media_codec_name((td_media_codec)i));
    }
    print_verdict(TD_CLI_DOCTOR_FINE, "videos", "%s can be recorded", codecs);
}

static void check_datasets(void)
{
    td_errinfo info = {.text = ""};
    if (td_dataset_table_load(&info) == TD_OK)
        print_verdict(TD_CLI_DOCTOR_FINE, "datasets",
                      "can be recorded and read");
    else
        print_verdict(TD_CLI_DOCTOR_WORSE, "datasets", "%s", info.text);
}

static bool is_manifest(const char *operand)
{
    struct stat about;
    const char *dot = strrchr(operand, '.');
    if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0))
        return true;
    return stat(operand, &about) == 0 && S_ISREG(about.st_mode);
}

static void check_models(const char *path, const char *folder)
{
    td_errinfo info = {.text = ""};
    TD_AUTO(td_config_manifest) *manifest = NULL;
    TD_AUTO(td_config_profiles) *profiles = NULL;
    td_err err = td_config_manifest_load(path, &manifest, &info);
    if (err == TD_OK && folder)
        err = td_config_profiles_load(folder, &profiles, &info);
    if (err != TD_OK) {
        print_verdict(TD_CLI_DOCTOR_BROKEN, "manifest", "%s", info.text);
        return;
    }
    for (size_t i = 0; i < manifest->model_count && !td_cli_is_stopping();
         i++) {
        const td_config_model *model = &manifest->models[i];
        char text[TD_CLI_DOCTOR_TEXT];
        td_cli_doctor_verdict found =
            td_cli_doctor_model(model, profiles, text);
        print_verdict(found, model->model_id, "%s", text);
    }
}

static void check_machine(void)
{
    check_cpu();
    check_realtime();
    check_preemption();
    check_memlock();
    check_awake();
    check_shm();
    check_zenoh();
    check_gpu();
    check_datasets();
    check_videos();
}

int td_cli_doctor(int argc, char **argv)
{
    const char *operand = NULL, *profiles = NULL;
    const td_cli_option options[] = {{"profiles", &profiles, NULL}, {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (!td_cli_parse(argc, argv, options, &operand)) return 2;
    bool manifest = operand && is_manifest(operand);
    if (profiles && !manifest) {
        (void)fprintf(stderr, "tendon doctor: --profiles is for a manifest's "
                              "models; which manifest?\n");
        return 2;
    }
    if (manifest && !td_cli_start_log("doctor", "warn")) return 2;
    check_machine();
    if (manifest) {
        td_cli_keep_stop();
        check_models(operand, profiles);
        td_log_stop();
    } else if (operand) {
        check_link("reach", operand);
    }
    (void)printf("\n%s\n", broken ? "Something is broken: see FAIL above."
                                  : "This machine can run Tendon.");
    return broken ? 1 : 0;
}
