// SPDX-License-Identifier: Apache-2.0
// A server in C++: server MANIFEST. It answers with the state and two results,
// changes its scheduling all the time, and at the end prints what it knows.
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "tendon/robot.h"
#include "tendon/server.h"

static td_server *server;
static std::atomic<unsigned> asked;
static std::mutex lock;
static std::map<std::string, unsigned> counted;

static td_infer_text text_of(const char *text)
{
    td_infer_text made = {text, static_cast<uint32_t>(std::strlen(text))};
    return made;
}

static td_err answer(td_infer_request *one, td_errinfo *info)
{
    uint32_t count = one->chunk_rows * one->action_count;
    for (uint32_t i = 0; i < count; i++)
        one->actions[i] = one->state[i % one->action_count];
    if (std::string(one->task.data, one->task.size) == "surprise me")
        return td_fail(info, TD_ERR_INVALID, "what am I to do?");
    float brightness = one->images[0].rgb[0];
    td_infer_tensor result = {};
    result.name = text_of("brightness");
    result.dtype = TD_INFER_F32;
    result.rank = 1;
    result.shape[0] = 1;
    result.data = &brightness;
    result.bytes = sizeof brightness;
    result.age_us = -1;
    td_err err = td_infer_result(one, &result, info);
    return err == TD_OK ? td_infer_set_text(one, one->task, info) : err;
}

static td_err infer(void *, td_infer_request *const *requests, uint32_t count,
                    td_errinfo *info)
{
    for (uint32_t i = 0; i < count; i++) {
        td_err err = answer(requests[i], info);
        if (err != TD_OK) return err;
    }
    return TD_OK;
}

static double score(void *, const td_score_request *request)
{
    return ++asked % 2 ? request->urgency : NAN;
}

static void on_metric(void *, const char *name, double,
                      const td_server_labels *)
{
    std::lock_guard<std::mutex> held(lock);
    counted[name]++;
}

static void on_event(void *, const td_server_event *event)
{
    std::lock_guard<std::mutex> held(lock);
    counted[std::string("event/") + event->kind]++;
}

static void on_signal(int)
{
    td_server_stop(server);
}

static td_err change(unsigned turn, td_errinfo *info)
{
    static const char *const ways[] = {
        "strategy: round_robin", "strategy: tiered_deadline",
        "strategy: deadline_aware\nscore: urgency - age_ms", nullptr};
    const char *way = ways[turn % 4];
    return td_server_use_scheduling(server, way, way ? nullptr : score, nullptr,
                                    info);
}

static td_err report(td_errinfo *info)
{
    td_server_labels labels = {};
    labels.size = sizeof labels;
    labels.client = "robot-1";
    td_server_spread spread = {};
    spread.size = sizeof spread;
    double answered = 0;
    td_err err = td_server_get_stats(server, "inference_latency_ms", &labels,
                                     60, &spread, info);
    if (err == TD_OK)
        err =
            td_server_get_latest(server, "answered", nullptr, &answered, info);
    std::printf("count %llu\nanswered %g\ndropped %llu\n",
                static_cast<unsigned long long>(spread.count), answered,
                static_cast<unsigned long long>(td_server_dropped(server)));
    return err;
}

static td_err run(const char *path, td_errinfo *info)
{
    td_err err = td_server_open(path, &server, info);
    if (err == TD_OK)
        err = td_server_use_model(server, "synthetic", infer, nullptr, info);
    if (err == TD_OK) err = td_server_on_metric(server, on_metric, nullptr);
    if (err == TD_OK) err = td_server_on_event(server, on_event, nullptr);
    if (err == TD_OK) err = td_server_start(server, info);
    std::signal(SIGINT, on_signal);
    for (unsigned turn = 0; err == TD_OK && !td_server_wait(server, 20); turn++)
        err = change(turn, info);
    if (err == TD_OK) err = td_server_drain(server, 10000, info);
    return err == TD_OK ? report(info) : err;
}

int main(int, char **argv)
{
    td_errinfo info = {""};
    td_err err = run(argv[1], &info);
    if (err != TD_OK) std::printf("%s: %s\n", td_err_name(err), info.text);
    if (server) td_server_close(server);
    for (const auto &each : counted)
        std::printf("reported/%s %u\n", each.first.c_str(), each.second);
    return err != TD_OK;
}
