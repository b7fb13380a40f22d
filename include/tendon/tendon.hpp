// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_TENDON_HPP
#define TENDON_TENDON_HPP

// C++17 over the C API: what is opened closes itself, what goes wrong is
// thrown as tendon::Error.
//
//   Connection, Model  asks a model on a server    (tendon/connect.hpp)
//   Driver, Robot      your own robot on a policy  (tendon/robot.hpp)
//
// Everything that the C headers promise of threads and lifetimes holds here.
// Objects can be moved, not copied; one that was moved from may only be
// destroyed or assigned to.

#include "tendon/connect.hpp" // IWYU pragma: export
#include "tendon/robot.hpp"   // IWYU pragma: export

#endif
