// SPDX-License-Identifier: Apache-2.0
// A program that owns its loop and pulls one command a control period.
// cc pull_robot.c $(pkg-config --cflags --libs tendon) && ./a.out my_robot.yaml
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tendon/robot.h>
#include <time.h>

#define PERIOD_NS (1000000000 / 300) // control_hz in the file

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
}

static td_err frame(void *user, uint32_t camera, uint8_t *ret_rgb,
                    uint32_t height, uint32_t width)
{
    (void)user;
    memset(ret_rgb, 60 + (int)camera, (size_t)height * width * 3);
    return TD_OK;
}

static void loop(td_robot *robot)
{
    float state[256] = {0}, command[256];
    td_robot_result result = {.size = sizeof result};
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    while (!stopped) {
        due.tv_nsec += PERIOD_NS;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        if (td_robot_step(robot, state, command, &result) != TD_OK) return;
        if (result.doing == TD_ROBOT_IDLE) continue; // leave the robot be
        memcpy(state, command, td_robot_joints(robot) * sizeof *state);
    }
}

int main(int argc, char **argv)
{
    td_robot_driver driver = {.size = sizeof driver, .frame = frame};
    td_robot *robot = NULL;
    td_errinfo info = {""};
    td_err err = td_robot_open(argv[argc - 1], &driver, &robot, &info);
    if (err == TD_OK) err = td_robot_start(robot, &info);
    if (err == TD_OK && signal(SIGINT, on_signal) != SIG_ERR) loop(robot);
    if (err != TD_OK) fprintf(stderr, "pull_robot: %s\n", info.text);
    if (robot) td_robot_close(robot);
    return err != TD_OK;
}
