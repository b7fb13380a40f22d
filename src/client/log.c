// SPDX-License-Identifier: Apache-2.0
// The log belongs to the process, not to a client: it runs while there is one.
// Where the program has started it by itself, it is left alone.
#include "base/log.h"

#include "client/client.h"

#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards `process`
static struct {
    size_t clients;
    bool running; // started here
    td_client_log_fn log;
    void *user;
    td_log_level level;
} process = {.level = TD_LOG_INFO};

static void pass_on(void *user, td_log_level level, const char *line)
{
    (void)user;
    process.log(process.user, (td_client_level)level, line);
}

void td_client_log_hold(void)
{
    pthread_mutex_lock(&lock);
    if (process.clients++ == 0) {
        td_err err = process.log
                         ? td_log_start_sink(pass_on, NULL, process.level)
                         : td_log_start(STDERR_FILENO, process.level);
        process.running = err == TD_OK;
    }
    pthread_mutex_unlock(&lock);
}

void td_client_log_release(void)
{
    pthread_mutex_lock(&lock);
    if (--process.clients == 0 && process.running) td_log_stop();
    pthread_mutex_unlock(&lock);
}

td_err td_client_log(td_client_log_fn log, void *user, td_client_level level)
{
    td_err err = TD_ERR_BUSY;
    pthread_mutex_lock(&lock);
    if (process.clients == 0) {
        process.log = log;
        process.user = user;
        process.level = (td_log_level)level;
        err = TD_OK;
    }
    pthread_mutex_unlock(&lock);
    return err;
}
