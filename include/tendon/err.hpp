// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_ERR_HPP
#define TENDON_ERR_HPP

// What goes wrong, as an exception. For C++17.

#include "tendon/err.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace tendon
{

class Error : public std::runtime_error
{
  public:
    Error(td_err code, const std::string &text)
        : std::runtime_error(text.empty() ? td_err_text(code) : text),
          code_(code)
    {
    }

    td_err code() const noexcept
    {
        return code_;
    }

    const char *name() const noexcept // "INVALID"
    {
        return td_err_name(code_);
    }

  private:
    td_err code_;
};

namespace detail
{

inline void check(td_err err, const td_errinfo &info = td_errinfo{})
{
    if (err != TD_OK) throw Error(err, info.text);
}

template <class T, void (*close)(T *)> struct Close {
    void operator()(T *thing) const
    {
        close(thing);
    }
};

template <class T, void (*close)(T *)>
using Owned = std::unique_ptr<T, Close<T, close>>;

} // namespace detail

} // namespace tendon

#endif
