// SPDX-License-Identifier: Apache-2.0
// ask [FILE]: tendon.hpp against a real server. Asks a model in each way that
// the header has; with a robot's file, then plays it with a driver of its own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <tendon/tendon.hpp>
#include <thread>

namespace
{

void expect(bool is_so, const char *what)
{
    if (!is_so) throw std::logic_error(what);
}

tendon::Result next(tendon::Model &model)
{
    auto result = model.get_result(30000);
    expect(result.has_value(), "no result");
    return std::move(*result);
}

void answers_are_their_observations(tendon::Model &model)
{
    const std::vector<float> state{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
    const std::vector<std::int64_t> marks{1, 2, 3, 4};
    for (int i = 0; i < 10; i++) {
        auto seq = model.observe()
                       .urgency(0.8f)
                       .priority(0)
                       .steps_remaining(3)
                       .tensor_f32("state", state, {6})
                       .tensor("marks", marks, {2, 2})
                       .metadata("why", "a test")
                       .task("wave")
                       .send();
        tendon::Result result = next(model);
        expect(result.seq() == seq, "another's result");
        expect(result.actions().shape() == tendon::Shape{20, 6}, "a shape");
        expect(result.actions().values<float>().size() == 120, "values");
        expect(result->round_trip_us > 0, "a time");
    }
    expect(model.number("answered") == 10, "a number");
    expect(!model.get_result(1), "nothing more");
}

template <class Call> td_err thrown(Call call)
{
    try {
        call();
    } catch (const tendon::Error &error) {
        expect(*error.what() != 0, "a text");
        return error.code();
    }
    return TD_OK;
}

void what_is_wrong_is_thrown(tendon::Connection &connection,
                             tendon::Model &model)
{
    const std::vector<float> two{1, 2};
    model.observe().state(two).send();
    tendon::Result result = next(model);
    expect(result.outcome() == TD_MODEL_ERROR, "an error");
    expect(thrown([&] { result.actions(); }) == TD_ERR_MISMATCH, "MISMATCH");
    expect(thrown([&] { model.observe().tensor("t", two, {3}).send(); }) ==
               TD_ERR_INVALID,
           "INVALID");
    expect(thrown([&] { connection.model(""); }) == TD_ERR_EXISTS, "EXISTS");
    expect(thrown([] { tendon::Connection("", "no/id"); }) == TD_ERR_INVALID,
           "INVALID");
}

class Arm : public tendon::Driver
{
  public:
    std::atomic<int> writes{0}, blends{0};
    std::atomic<bool> breaks{false};

    void read(float *ret_state, std::uint32_t count) override
    {
        if (breaks) throw std::runtime_error("the cable came off");
        for (std::uint32_t i = 0; i < count; i++)
            ret_state[i] = 0;
    }
    void write(const float *, std::uint32_t) override
    {
        writes++;
    }
    bool has_blend() const override
    {
        return true;
    }
    void blend(const td_robot_overlap &overlap, float *ret_rows) override
    {
        std::copy_n(overlap.new_rows, overlap.rows * overlap.count, ret_rows);
        blends++;
    }
};

void a_driver_that_throws_is_heard_of(const char *file)
{
    Arm arm;
    tendon::Robot robot(file, arm);
    robot.start();
    while (arm.writes < 50 || arm.blends < 3)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    arm.breaks = true;
    while (robot.number("driver_failed") < 3)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    robot.stop();
    try {
        robot.wait();
    } catch (const std::runtime_error &error) {
        std::cout << "driver: " << error.what() << "\n";
    }
}

} // namespace

int main(int argc, char **argv)
{
    try {
        tendon::Connection connection;
        tendon::Model model = connection.model("");
        model.wait(30000);
        answers_are_their_observations(model);
        what_is_wrong_is_thrown(connection, model);
        if (argc > 1) a_driver_that_throws_is_heard_of(argv[1]);
    } catch (const std::exception &error) {
        std::cerr << "ask: " << error.what() << "\n";
        return 1;
    }
    return 0;
}
