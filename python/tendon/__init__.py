# SPDX-License-Identifier: Apache-2.0
"""The Python side of Tendon."""
