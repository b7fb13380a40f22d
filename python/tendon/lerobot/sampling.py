# SPDX-License-Identifier: Apache-2.0
"""How each kind of policy makes a chunk out of a batch and a seed a member.

The chunk of a member is what LeRobot gives for it alone after
`torch.manual_seed(seed)` on a CPU, whoever shares its batch and whatever device
it runs on: so an answer can be made again.
"""

import functools
from typing import Any

import torch
from lerobot.policies.common.flow_matching import euler_integrate

Batch = dict[str, Any]


class Sampler:
    """A policy that nothing more is known of: one observation at a time."""

    most = 1  # in a batch
    tolerance = 1e-5  # across batch sizes, in float32
    steps = 0  # of a robot that it looks at; 0: one, and no dimension for it
    can_split = False  # into prefix() and decode()

    def __init__(self, policy: Any):
        self.policy = policy

    def chunk(self, batch: Batch, seeds: list[int]) -> torch.Tensor:
        with torch.random.fork_rng():
            torch.manual_seed(seeds[0])
            self.policy.reset()
            return self.policy.predict_action_chunk(batch)

    def prefix(self, batch: Batch, count: int) -> list["Prefix"]:
        raise NotImplementedError

    def decode(self, prefixes: list["Prefix"], seeds: list[int]) -> torch.Tensor:
        raise NotImplementedError


class Plain(Sampler):
    """No chance in it (ACT)."""

    most = 64

    def chunk(self, batch: Batch, seeds: list[int]) -> torch.Tensor:
        return self.policy.predict_action_chunk(batch)


class Diffusion(Sampler):
    """Noise at the start, and more at every step of its scheduler.

    It looks at several observations of a robot at a time: `batch` has them all, in a
    dimension behind the first.
    """

    most = 64
    tolerance = 1e-4  # its many steps make more of what float32 leaves out

    def __init__(self, policy: Any):
        super().__init__(policy)
        self.steps = policy.config.n_obs_steps

    def chunk(self, batch: Batch, seeds: list[int]) -> torch.Tensor:
        config, model = self.policy.config, self.policy.diffusion
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        size = (1, config.horizon, config.action_feature.shape[0])
        noise = [torch.randn(size, generator=each) for each in generators]
        model.conditional_sample = functools.partial(
            type(model).conditional_sample, model, generator=generators
        )
        try:
            noise = torch.cat(noise).to(config.device)
            return self.policy.predict_action_chunk(batch, noise=noise)
        finally:
            del model.conditional_sample


class Flow(Sampler):
    """Flow matching (SmolVLA, pi0, pi0.5): noise at the start, then Euler steps.

    Its two halves can run apart: the prefix (images, language, state: keys and
    values of every layer) and the denoising, which is made from that.
    """

    most = 64

    def __init__(self, policy: Any):
        super().__init__(policy)
        config = policy.config
        self.turns = getattr(config, "num_steps", None) or config.num_inference_steps
        self.can_split = not (
            config.compile_model
            or not getattr(config, "use_cache", True)
            or getattr(config, "adapt_to_pi_aloha", False)
        )

    def noise(self, seeds: list[int]) -> torch.Tensor:
        config = self.policy.config
        size = (1, config.chunk_size, config.max_action_dim)
        generators = (torch.Generator().manual_seed(seed) for seed in seeds)
        parts = [torch.normal(0.0, 1.0, size, generator=each) for each in generators]
        return torch.cat(parts).to(config.device)

    def chunk(self, batch: Batch, seeds: list[int]) -> torch.Tensor:
        return self.policy.predict_action_chunk(batch, noise=self.noise(seeds))

    def prefix(self, batch: Batch, count: int) -> list["Prefix"]:
        """Runs up to the first step of the denoising, and keeps what that is given."""
        model = self.policy.model
        model.denoise_step = _catch
        try:
            self.policy.predict_action_chunk(batch, noise=self.noise([0] * count))
        except _Caught as caught:
            return [Prefix.of(caught.given, i) for i in range(count)]
        finally:
            del model.denoise_step
        raise RuntimeError(f"{type(model).__name__} did not begin to denoise")

    @torch.no_grad()
    def decode(self, prefixes: list["Prefix"], seeds: list[int]) -> torch.Tensor:
        """Those must be of one length."""
        given = Prefix.join(prefixes)
        step = self.policy.model.denoise_step
        chunk = euler_integrate(
            lambda x_t, time: step(x_t=x_t, timestep=time, **given),
            self.noise(seeds),
            self.turns,
        )
        return chunk[:, :, : self.policy.config.action_feature.shape[0]]


class _Caught(BaseException):
    def __init__(self, given: dict[str, Any]):
        self.given = given


def _catch(*, x_t: Any, timestep: Any, **given: Any) -> None:
    raise _Caught(given)


class Prefix:
    """What one observation leaves for the denoising."""

    def __init__(
        self, tensors: dict[str, torch.Tensor], layers: list[tuple], cache: type
    ):
        self.tensors, self.layers, self.cache = tensors, layers, cache
        self.state: torch.Tensor | None = None  # that relative actions are added to

    @classmethod
    def of(cls, given: dict[str, Any], member: int) -> "Prefix":
        def part(tensor: torch.Tensor) -> torch.Tensor:
            return tensor[member : member + 1].clone()

        cache = given["past_key_values"]
        tensors = {
            key: part(value) for key, value in given.items() if value is not cache
        }
        layers = [(part(k), part(v), window) for k, v, window in cache]
        return cls(tensors, layers, type(cache))

    @staticmethod
    def join(prefixes: list["Prefix"]) -> dict[str, Any]:
        """As the denoising takes them; it may append to the cache, which is new."""
        layers = zip(*(each.layers for each in prefixes), strict=True)
        cache = tuple(
            (
                torch.cat([k for k, _, _ in each]),
                torch.cat([v for _, v, _ in each]),
                each[0][2],
            )
            for each in layers
        )
        tensors = {
            key: torch.cat([each.tensors[key] for each in prefixes])
            for key in prefixes[0].tensors
        }
        return tensors | {"past_key_values": prefixes[0].cache(cache)}

    @property
    def length(self) -> int:
        return self.layers[0][0].shape[-2]

    @property
    def size_bytes(self) -> int:
        parts = [
            *self.tensors.values(),
            *(t for k, v, _ in self.layers for t in (k, v)),
        ]
        return sum(part.numel() * part.element_size() for part in parts)


SAMPLERS = {
    "act": Plain,
    "diffusion": Diffusion,
    "pi0": Flow,
    "pi05": Flow,
    "smolvla": Flow,
}


def sampler_of(policy: Any) -> Sampler:
    return SAMPLERS.get(policy.config.type, Sampler)(policy)
