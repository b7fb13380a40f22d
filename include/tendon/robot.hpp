// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_EDGE_HPP
#define TENDON_EDGE_HPP

// Your own robot on a remote policy: tendon/robot.h for C++17.

#include "tendon/err.hpp"
#include "tendon/robot.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tendon
{

// Your hardware, as td_robot_driver has it. What a function throws is counted
// as its failure, kept, and thrown again by Robot::run() and wait() (the
// first).
class Driver
{
  public:
    virtual ~Driver() = default;

    virtual void read(float *ret_state, std::uint32_t count) = 0;
    virtual void write(const float *command, std::uint32_t count) = 0;

    virtual void frame(std::uint32_t /*camera*/, std::uint8_t * /*ret_rgb*/,
                       std::uint32_t /*height*/, std::uint32_t /*width*/)
    {
        throw Error(TD_ERR_UNSUPPORTED, "this driver has no cameras");
    }

    // For cameras that compress: a JPEG of at most `room` bytes, and how many
    // they are; 0: it is a frame.
    virtual std::size_t picture(std::uint32_t camera, std::uint8_t *ret_bytes,
                                std::size_t /*room*/, std::uint32_t height,
                                std::uint32_t width)
    {
        frame(camera, ret_bytes, height, width);
        return 0;
    }

    // Used only where the driver says so.
    virtual bool has_control() const
    {
        return false;
    }
    virtual void control(const float * /*command*/, const float * /*state*/,
                         std::uint32_t /*count*/, float * /*ret_out*/)
    {
    }

    virtual bool has_blend() const
    {
        return false;
    }
    virtual void blend(const td_robot_overlap & /*overlap*/,
                       float * /*ret_rows*/)
    {
    }

  private:
    friend class Robot;

    template <class Call> td_err guarded(Call call) noexcept
    {
        try {
            call();
            return TD_OK;
        } catch (const Error &error) {
            note();
            return error.code();
        } catch (...) {
            note();
            return TD_ERR_IO;
        }
    }

    void note() noexcept
    {
        std::lock_guard<std::mutex> hold(lock_);
        if (!thrown_) thrown_ = std::current_exception();
    }

    void rethrow()
    {
        std::lock_guard<std::mutex> hold(lock_);
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

    std::mutex lock_; // guards `thrown_`
    std::exception_ptr thrown_;
};

// A robot on a remote policy. With a driver the library owns the loop; without,
// you do, and call step().
class Robot
{
  public:
    // The driver is borrowed until the robot is gone, and its read() and
    // frame() are called from here on.
    Robot(const std::string &path, Driver &driver) : driver_(&driver)
    {
        td_robot_driver table = table_of(driver);
        open(path, table);
    }

    explicit Robot(const std::string &path)
    {
        td_robot_driver table{};
        table.size = sizeof table;
        open(path, table);
    }

    // Until stop(). Throws why it cannot start, or what the driver threw.
    void run()
    {
        td_errinfo info{};
        detail::check(td_robot_run(robot_.get(), &info), info);
        if (driver_) driver_->rethrow();
    }

    void start()
    {
        td_errinfo info{};
        detail::check(td_robot_start(robot_.get(), &info), info);
    }

    void wait()
    {
        td_errinfo info{};
        detail::check(td_robot_wait(robot_.get(), &info), info);
        if (driver_) driver_->rethrow();
    }

    void stop() noexcept
    {
        td_robot_stop(robot_.get());
    }

    // One control period; with IDLE the command is untouched.
    td_robot_result step(const std::vector<float> &state,
                         std::vector<float> &command)
    {
        td_robot_result result{};
        result.size = sizeof result;
        if (state.size() != joints())
            throw Error(TD_ERR_INVALID, "the state is not one of this robot");
        command.resize(joints());
        detail::check(
            td_robot_step(robot_.get(), state.data(), command.data(), &result));
        return result;
    }

    std::uint32_t joints() const
    {
        return td_robot_joints(robot_.get());
    }

    void reset(const std::string &reason = "")
    {
        td_errinfo info{};
        detail::check(td_robot_reset(robot_.get(), reason.c_str(), &info),
                      info);
    }

    void set_task(const std::string &task)
    {
        td_errinfo info{};
        detail::check(td_robot_set_task(robot_.get(), task.c_str(), &info),
                      info);
    }

    void episode_begin()
    {
        td_errinfo info{};
        detail::check(td_robot_episode_begin(robot_.get(), &info), info);
    }

    void episode_end(bool keep = true)
    {
        td_errinfo info{};
        detail::check(td_robot_episode_end(robot_.get(), keep, &info), info);
    }

    std::string state() const
    {
        return td_robot_state(robot_.get());
    }

    double number(const std::string &name)
    {
        double value = 0;
        detail::check(td_robot_number(robot_.get(), name.c_str(), &value));
        return value;
    }

  private:
    static Driver &driver_of(void *user)
    {
        return *static_cast<Driver *>(user);
    }

    static td_err control(void *user, const float *command, const float *state,
                          std::uint32_t count, float *ret_out)
    {
        Driver &own = driver_of(user);
        return own.guarded(
            [&] { own.control(command, state, count, ret_out); });
    }

    static td_err blend(void *user, const td_robot_overlap *overlap,
                        float *ret_rows)
    {
        Driver &own = driver_of(user);
        return own.guarded([&] { own.blend(*overlap, ret_rows); });
    }

    static td_robot_driver table_of(Driver &driver)
    {
        td_robot_driver table{};
        table.size = sizeof table;
        table.user = &driver;
        table.read = [](void *user, float *ret_state, std::uint32_t count) {
            Driver &own = driver_of(user);
            return own.guarded([&] { own.read(ret_state, count); });
        };
        table.write = [](void *user, const float *command,
                         std::uint32_t count) {
            Driver &own = driver_of(user);
            return own.guarded([&] { own.write(command, count); });
        };
        table.picture = [](void *user, std::uint32_t camera,
                           std::uint8_t *ret_bytes, std::size_t room,
                           std::uint32_t height, std::uint32_t width,
                           std::size_t *ret_jpeg) {
            Driver &own = driver_of(user);
            return own.guarded([&] {
                *ret_jpeg = own.picture(camera, ret_bytes, room, height, width);
            });
        };
        if (driver.has_control()) table.control = control;
        if (driver.has_blend()) table.blend = blend;
        return table;
    }

    void open(const std::string &path, const td_robot_driver &table)
    {
        td_errinfo info{};
        td_robot *robot = nullptr;
        detail::check(td_robot_open(path.c_str(), &table, &robot, &info), info);
        robot_.reset(robot);
    }

    Driver *driver_ = nullptr;
    detail::Owned<td_robot, td_robot_close> robot_;
};

} // namespace tendon

#endif
