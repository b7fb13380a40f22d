// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_CONNECT_HPP
#define TENDON_CONNECT_HPP

// Asks models on servers: tendon/connect.h for C++17.
//
//   Connection  ->  Model  ->  ObservationBuilder, Result  ->  Tensor

#include "tendon/connect.h"
#include "tendon/err.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tendon
{

using Shape = std::vector<std::uint32_t>;

namespace detail
{

inline const char *given(const std::string &text)
{
    return text.empty() ? nullptr : text.c_str();
}

template <class T> struct dtype_of;
template <td_model_dtype Value> struct is_dtype {
    static constexpr td_model_dtype value = Value;
};
template <> struct dtype_of<float> : is_dtype<TD_MODEL_F32> {
};
template <> struct dtype_of<double> : is_dtype<TD_MODEL_F64> {
};
template <> struct dtype_of<std::uint8_t> : is_dtype<TD_MODEL_U8> {
};
template <> struct dtype_of<std::int8_t> : is_dtype<TD_MODEL_I8> {
};
template <> struct dtype_of<std::int16_t> : is_dtype<TD_MODEL_I16> {
};
template <> struct dtype_of<std::int32_t> : is_dtype<TD_MODEL_I32> {
};
template <> struct dtype_of<std::int64_t> : is_dtype<TD_MODEL_I64> {
};
template <> struct dtype_of<bool> : is_dtype<TD_MODEL_BOOL> {
};

} // namespace detail

// A tensor of a result, which must outlive it.
class Tensor
{
  public:
    explicit Tensor(const td_model_tensor &tensor) : tensor_(&tensor)
    {
    }

    td_model_dtype dtype() const
    {
        return tensor_->dtype;
    }

    Shape shape() const
    {
        return Shape(tensor_->shape, tensor_->shape + tensor_->rank);
    }

    std::size_t bytes() const
    {
        return tensor_->bytes;
    }

    // Its values, in C order. MISMATCH if they are of another type.
    template <class T> const T *data() const
    {
        if (tensor_->dtype != detail::dtype_of<T>::value)
            throw Error(TD_ERR_MISMATCH, "a tensor is of another dtype");
        return static_cast<const T *>(tensor_->data);
    }

    template <class T> std::vector<T> values() const
    {
        const T *first = data<T>();
        return std::vector<T>(first, first + tensor_->bytes / sizeof(T));
    }

  private:
    const td_model_tensor *tensor_;
};

// How an observation ended. Owns the memory that its tensors lie in.
class Result
{
  public:
    explicit Result(td_model_result *result) : result_(result)
    {
    }

    std::uint64_t seq() const
    {
        return result_->seq;
    }
    td_model_outcome outcome() const
    {
        return result_->outcome;
    }
    bool answered() const
    {
        return result_->outcome == TD_MODEL_ANSWERED;
    }
    const char *error_text() const
    {
        return result_->error_text;
    }

    // Throws what it ended with, unless it was answered.
    const Result &check() const
    {
        if (!answered()) throw Error(result_->error, result_->error_text);
        return *this;
    }

    // The actions, rows x channels. Throws like check(); EMPTY if there are
    // none.
    Tensor actions() const
    {
        check();
        if (result_->actions.rank == 0)
            throw Error(TD_ERR_EMPTY, "the answer has no actions");
        return Tensor(result_->actions);
    }

    // Another result of the model, by its name. Throws like check(); NOTFOUND.
    Tensor tensor(const std::string &name) const
    {
        check();
        for (std::uint32_t i = 0; i < result_->result_count; i++)
            if (name == result_->results[i].name)
                return Tensor(result_->results[i]);
        throw Error(TD_ERR_NOTFOUND, "the answer has no result " + name);
    }

    std::vector<std::string> names() const
    {
        std::vector<std::string> names;
        for (std::uint32_t i = 0; i < result_->result_count; i++)
            names.emplace_back(result_->results[i].name);
        return names;
    }

    std::vector<std::uint64_t> superseded() const
    {
        return std::vector<std::uint64_t>(result_->superseded,
                                          result_->superseded +
                                              result_->superseded_count);
    }

    const td_model_result *operator->() const // all the rest
    {
        return result_.get();
    }

  private:
    detail::Owned<td_model_result, td_model_result_free> result_;
};

// An observation that is being put together. Tensors and pictures are borrowed
// until send() has returned; names and texts are copied.
class ObservationBuilder
{
  public:
    explicit ObservationBuilder(td_model *model) : model_(model)
    {
        given_.size = sizeof given_;
    }
    ObservationBuilder(const ObservationBuilder &) = delete;
    ObservationBuilder &operator=(const ObservationBuilder &) = delete;

    ObservationBuilder &urgency(float urgency)
    {
        given_.urgency = urgency;
        return *this;
    }
    ObservationBuilder &priority(std::uint32_t priority)
    {
        given_.has_priority = true;
        given_.priority = priority;
        return *this;
    }
    ObservationBuilder &steps_remaining(std::uint32_t steps)
    {
        given_.has_steps_remaining = true;
        given_.steps_remaining = steps;
        return *this;
    }
    ObservationBuilder &must_go(bool must_go = true)
    {
        given_.must_go = must_go;
        return *this;
    }
    ObservationBuilder &episode(std::uint64_t episode)
    {
        given_.episode = episode;
        return *this;
    }
    ObservationBuilder &cursor(std::uint64_t cursor)
    {
        given_.cursor = cursor;
        return *this;
    }
    ObservationBuilder &latency_budget_ms(std::int64_t ms)
    {
        given_.latency_budget_ms = ms;
        return *this;
    }
    ObservationBuilder &limit_ms(std::int64_t ms)
    {
        given_.limit_ms = ms;
        return *this;
    }
    ObservationBuilder &task(const std::string &task)
    {
        given_.task = keep(task);
        return *this;
    }
    ObservationBuilder &metadata(const std::string &name,
                                 const std::string &text)
    {
        metadata_.push_back({keep(name), keep(text)});
        return *this;
    }

    // The one called "state" is the state.
    template <class T>
    ObservationBuilder &tensor(const std::string &name, const T *data,
                               const Shape &shape)
    {
        td_model_tensor tensor{};
        tensor.name = keep(name);
        tensor.dtype = detail::dtype_of<T>::value;
        if (shape.size() > TD_MODEL_MAX_RANK)
            throw Error(TD_ERR_LIMIT, name + ": has more than 8 sides");
        tensor.rank = static_cast<std::uint32_t>(shape.size());
        std::size_t side = 0;
        for (std::uint32_t length : shape)
            tensor.shape[side++] = length;
        tensor.data = data;
        if (name == "state")
            given_.state = tensor;
        else
            tensors_.push_back(tensor);
        return *this;
    }
    template <class T>
    ObservationBuilder &tensor(const std::string &name,
                               const std::vector<T> &values, Shape shape = {})
    {
        if (shape.empty()) shape = {static_cast<std::uint32_t>(values.size())};
        std::size_t count = 1;
        for (std::uint32_t side : shape)
            count *= side;
        if (count != values.size())
            throw Error(TD_ERR_INVALID,
                        name + ": the shape is not that of the values");
        return tensor(name, values.data(), shape);
    }
    ObservationBuilder &tensor_f32(const std::string &name,
                                   const std::vector<float> &values,
                                   Shape shape = {})
    {
        return tensor(name, values, std::move(shape));
    }
    ObservationBuilder &tensor_f32(const std::string &name, const float *data,
                                   const Shape &shape)
    {
        return tensor(name, data, shape);
    }
    ObservationBuilder &state(const std::vector<float> &values)
    {
        return tensor("state", values);
    }

    ObservationBuilder &image(const std::string &name, const std::uint8_t *data,
                              std::uint32_t height, std::uint32_t width,
                              std::uint32_t channels = 3)
    {
        td_model_image image{};
        image.codec = TD_MODEL_RAW;
        image.height = height;
        image.width = width;
        image.channels = channels;
        return add(name, image, data);
    }
    ObservationBuilder &jpeg(const std::string &name, const std::uint8_t *data,
                             std::size_t bytes)
    {
        td_model_image image{};
        image.codec = TD_MODEL_JPEG;
        image.bytes = bytes;
        return add(name, image, data);
    }
    ObservationBuilder &png(const std::string &name, const std::uint8_t *data,
                            std::size_t bytes)
    {
        td_model_image image{};
        image.codec = TD_MODEL_PNG;
        image.bytes = bytes;
        return add(name, image, data);
    }

    // Sends it; its seq.
    std::uint64_t send()
    {
        td_errinfo info{};
        std::uint64_t seq = 0;
        given_.tensors = tensors_.data();
        given_.tensor_count = static_cast<std::uint32_t>(tensors_.size());
        given_.images = images_.data();
        given_.image_count = static_cast<std::uint32_t>(images_.size());
        given_.metadata = metadata_.data();
        given_.metadata_count = static_cast<std::uint32_t>(metadata_.size());
        detail::check(td_model_observe(model_, &given_, &seq, &info), info);
        return seq;
    }

  private:
    const char *keep(const std::string &text)
    {
        return texts_.emplace_back(text).c_str();
    }

    ObservationBuilder &add(const std::string &name, td_model_image image,
                            const std::uint8_t *data)
    {
        image.name = keep(name);
        image.data = data;
        images_.push_back(image);
        return *this;
    }

    td_model *model_;
    td_model_observation given_{};
    std::deque<std::string> texts_; // which stay where they are
    std::vector<td_model_tensor> tensors_;
    std::vector<td_model_image> images_;
    std::vector<td_model_pair> metadata_;
};

class Model
{
  public:
    explicit Model(td_model *model) : model_(model)
    {
    }

    ObservationBuilder observe()
    {
        return ObservationBuilder(model_.get());
    }

    // The next outcome; nothing if none came in time. Negative: no limit.
    std::optional<Result> get_result(std::int64_t timeout_ms = 100)
    {
        td_model_result *result = nullptr;
        td_err err = td_model_get_result(model_.get(), timeout_ms, &result);
        if (err == TD_ERR_TIMEOUT) return std::nullopt;
        detail::check(err);
        return Result(result);
    }

    // Waits for a server. Throws the reason when there is none.
    void wait(std::int64_t timeout_ms = -1)
    {
        td_errinfo info{};
        detail::check(td_model_wait(model_.get(), timeout_ms, &info), info);
    }

    std::string state() const
    {
        return td_model_state(model_.get());
    }

    int fd()
    {
        int fd = -1;
        detail::check(td_model_fd(model_.get(), &fd));
        return fd;
    }

    double number(const std::string &name)
    {
        double value = 0;
        detail::check(td_model_number(model_.get(), name.c_str(), &value));
        return value;
    }

    void stop()
    {
        td_model_stop(model_.get());
    }

    td_model *get() const
    {
        return model_.get();
    }

  private:
    detail::Owned<td_model, td_model_close> model_;
};

// How a model is asked. What is empty comes from the environment.
struct ModelOptions {
    std::string version, application;
    std::int64_t latency_budget_ms = 0;
    std::optional<std::uint32_t> priority;
    std::int64_t limit_ms = 0;
    std::uint32_t jpeg_quality = 0;
    bool raw_if_shared = false;
};

struct ConnectionOptions {
    std::string cluster, experiment;
    bool peer = false;
    bool shared_memory = true;
    bool every = false; // each observation is answered, or told why not
};

class Connection
{
  public:
    // What is empty comes from the environment.
    explicit Connection(const std::string &server = "",
                        const std::string &client_id = "",
                        const std::string &client_type = "",
                        const ConnectionOptions &options = {})
    {
        td_errinfo info{};
        td_connection_settings settings{};
        td_connection *connection = nullptr;
        settings.size = sizeof settings;
        settings.server = detail::given(server);
        settings.client_id = detail::given(client_id);
        settings.client_type = detail::given(client_type);
        settings.cluster = detail::given(options.cluster);
        settings.experiment = detail::given(options.experiment);
        settings.peer = options.peer;
        settings.no_shared_memory = !options.shared_memory;
        settings.every = options.every;
        detail::check(td_connection_open(&settings, &connection, &info), info);
        connection_.reset(connection);
    }

    Model model(const std::string &model_id, const ModelOptions &options = {})
    {
        td_errinfo info{};
        td_model_settings settings{};
        td_model *model = nullptr;
        settings.size = sizeof settings;
        settings.model_id = detail::given(model_id);
        settings.version = detail::given(options.version);
        settings.application = detail::given(options.application);
        settings.latency_budget_ms = options.latency_budget_ms;
        settings.has_priority = options.priority.has_value();
        settings.priority = options.priority.value_or(0);
        settings.limit_ms = options.limit_ms;
        settings.jpeg_quality = options.jpeg_quality;
        settings.raw_if_shared = options.raw_if_shared;
        detail::check(
            td_connection_model(connection_.get(), &settings, &model, &info),
            info);
        return Model(model);
    }

    // The session itself ends with the last of its models.
    void close()
    {
        connection_.reset();
    }

  private:
    detail::Owned<td_connection, td_connection_close> connection_;
};

} // namespace tendon

#endif
