// SPDX-License-Identifier: Apache-2.0
// Your own robot on a remote policy: put your hardware into these functions.
// cc my_robot.c $(pkg-config --cflags --libs tendon) && ./a.out my_robot.yaml
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tendon/robot.h>

static td_robot *robot;

static td_err read_joints(void *angles, float *ret_state, uint32_t count)
{
    memcpy(ret_state, angles, count * sizeof *ret_state);
    return TD_OK; // or TD_ERR_IO: it is counted, and the fail-safe acts
}

// The fast controller, 300 times a second: torques that lead to the command.
static td_err control(void *angles, const float *command, const float *state,
                      uint32_t count, float *ret_torque)
{
    (void)angles;
    for (uint32_t i = 0; i < count; i++)
        ret_torque[i] = state ? 30 * (command[i] - state[i]) : 0;
    return TD_OK;
}

static td_err write_torques(void *angles, const float *torque, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ((float *)angles)[i] += torque[i] / 300;
    return TD_OK;
}

static td_err frame(void *angles, uint32_t camera, uint8_t *ret_rgb,
                    uint32_t height, uint32_t width)
{
    (void)angles;
    memset(ret_rgb, 60 + (int)camera, (size_t)height * width * 3);
    return TD_OK;
}

static void on_signal(int number) // a second Ctrl-C waits for nobody
{
    if (signal(number, SIG_DFL) != SIG_ERR) td_robot_stop(robot);
}

int main(int argc, char **argv)
{
    float angles[6] = {0}; // joints that turn as fast as they are pushed
    td_robot_driver driver = {.size = sizeof driver, .user = angles};
    driver.read = read_joints, driver.write = write_torques;
    driver.control = control, driver.frame = frame;
    td_errinfo info = {""};
    td_err err = td_robot_open(argv[argc - 1], &driver, &robot, &info);
    if (err == TD_OK && signal(SIGINT, on_signal) != SIG_ERR)
        err = td_robot_run(robot, &info);
    if (err != TD_OK) fprintf(stderr, "my_robot: %s\n", info.text);
    if (robot) td_robot_close(robot);
    return err != TD_OK;
}
