// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_FACTORY_TASK_H
#define TD_CONFIG_FACTORY_TASK_H

// A task of a factory: its fields, and what follows from those that are given.

#include "config/factory/factory.h"

// Fills in everything of td_config_factory_task but its robots.
extern const td_config_table td_config_task_table;

#endif
