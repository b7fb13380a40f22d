# SPDX-License-Identifier: Apache-2.0
"""How a robot and its policy find each other, and what each calls things."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Route:
    # Both sides say the same
    cluster_uuid: str = "local"
    experiment_tag: str = "default"
    # Empty: the type of the policy
    model_id: str = ""
    model_version: str = "v1"
    application_tag: str = "default"


def endpoint_of(address: str) -> str:
    """As Zenoh writes it: host:8080 is tcp/host:8080; tcp/…, tls/… stay as they are."""
    address = address.replace("://", "/", 1)
    return address if "/" in address else f"tcp/{address}"


def short(feature: str) -> str:
    """Our name of a feature: observation.images.front is front, observation.state
    state."""
    return feature.removeprefix("observation.").removeprefix("images.")
