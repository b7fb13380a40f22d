// SPDX-License-Identifier: Apache-2.0
// robot FILE: the C API from C++. Pulls until it has played, then tells of a
// new task and a new episode, and plays again. Prints its version and numbers.
#include <chrono>
#include <cstdio>
#include <string>
#include <tendon/robot.h>
#include <thread>
#include <vector>

namespace
{

struct Robot {
    td_robot *handle = nullptr;
    std::vector<float> state, command;

    explicit Robot(const char *file)
    {
        td_robot_driver driver{};
        td_errinfo info{};
        driver.size = sizeof driver;
        if (td_robot_open(file, &driver, &handle, &info) != TD_OK)
            throw std::string(info.text);
        state.resize(td_robot_joints(handle));
        command.resize(state.size());
    }

    ~Robot()
    {
        td_robot_close(handle);
    }

    void play(int fresh)
    {
        td_robot_result result{};
        result.size = sizeof result;
        while (fresh > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            if (td_robot_step(handle, state.data(), command.data(), &result))
                throw std::string("step");
            if (result.doing == TD_ROBOT_IDLE) continue;
            state = command;
            fresh -= result.doing == TD_ROBOT_FRESH;
        }
    }
};

void print(void *, const char *name, double value)
{
    std::printf("%s %g\n", name, value);
}

void run(const char *file)
{
    Robot robot(file);
    if (td_robot_start(robot.handle, nullptr)) throw std::string("start");
    robot.play(50);
    if (td_robot_set_task(robot.handle, "bow", nullptr) ||
        td_robot_reset(robot.handle, "the cup fell", nullptr))
        throw std::string("reset");
    robot.play(50);
    std::printf("version %s\n", td_version_text());
    if (td_robot_report(robot.handle, print, nullptr))
        throw std::string("report");
    td_robot_stop(robot.handle);
    if (td_robot_wait(robot.handle, nullptr)) throw std::string("wait");
}

void be_silent(void *, td_level, const char *)
{
}

} // namespace

int main(int argc, char **argv)
{
    if (td_log_to(be_silent, nullptr, TD_LEVEL_WARN)) return 2;
    try {
        run(argv[argc - 1]);
    } catch (const std::string &what) {
        std::fprintf(stderr, "robot: %s\n", what.c_str());
        return 1;
    }
    return 0;
}
