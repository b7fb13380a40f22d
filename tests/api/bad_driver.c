// SPDX-License-Identifier: Apache-2.0
// bad_driver FILE blocks|fails|lies: a robot whose driver works for a second
// and then works.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tendon/robot.h>
#include <unistd.h>

static const char *wrong;
static float at[256];
static int reads;

static td_err read_joints(void *user, float *ret_state, uint32_t count)
{
    (void)user;
    memcpy(ret_state, at, count * sizeof *ret_state);
    if (reads++ < 100) return TD_OK;
    if (strcmp(wrong, "blocks") == 0) sleep(2);
    if (strcmp(wrong, "lies") == 0) ret_state[0] = NAN;
    return strcmp(wrong, "fails") == 0 ? TD_ERR_IO : TD_OK;
}

static td_err write_joints(void *user, const float *command, uint32_t count)
{
    (void)user;
    memcpy(at, command, count * sizeof *command);
    return TD_OK;
}

int main(int argc, char **argv)
{
    td_robot_driver driver = {
        .size = sizeof driver, .read = read_joints, .write = write_joints};
    td_robot *robot = NULL;
    td_errinfo info = {""};
    if (argc != 3) return 2;
    wrong = argv[2];
    td_err err = td_robot_open(argv[1], &driver, &robot, &info);
    if (err == TD_OK) err = td_robot_run(robot, &info);
    fprintf(stderr, "%s\n", info.text);
    return err != TD_OK;
}
