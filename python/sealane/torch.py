# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's collectives, encrypted and authenticated between all ranks.

Importing this module registers the backend::

    import sealane.torch
    torch.distributed.init_process_group("sealane")

The ranks prove membership by a key (``sealane keygen FILE``, ``SEALANE_KEY_FILE=FILE``) or by
certificates. Nothing falls back to plaintext: without either, ``init_process_group`` fails and says
what to do. docs/pytorch.md is the tutorial.
"""

import hashlib
import os
import re
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
import torch.distributed as dist

from sealane import __version__


def _load() -> Any:
    """The extension, or one line that says why this PyTorch cannot have it."""
    try:
        from sealane import _build  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise ImportError(
            "sealane: the package was not built: pip install it, or put build/python first in PYTHONPATH"
        ) from None
    here = torch.__version__.split("+", maxsplit=1)[0]
    if here.split(".")[:2] != _build.TORCH.split(".")[:2]:
        raise ImportError(
            f"sealane: built for PyTorch {_build.TORCH}, but this is {here}, whose C++ interface differs: "
            "build the wheel again with this PyTorch installed (pip wheel --no-build-isolation .)"
        )
    try:
        from sealane import _torch  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise ImportError(
            f"sealane: the extension built for PyTorch {_build.TORCH} does not load into this one "
            f"({torch.__version__}): {error}"
        ) from None
    if not __version__ == _build.VERSION == _torch.version:
        raise ImportError(
            f"sealane: parts of different versions: package {__version__}, extension {_build.VERSION}, "
            f"library {_torch.version}: install one of them anew"
        )
    return _torch


_torch = _load()
CommOptions = _torch.CommOptions
ProcessGroupSealane = _torch.ProcessGroupSealane

__all__ = ["Options", "ProcessGroupSealane", "Traffic", "traffic"]

_GROUP_NAME_MAX = 32  # with what sub-groups and lanes append, within the library's 64


@dataclass(frozen=True)
class Options:
    """What ``init_process_group("sealane", pg_options=Options(...))`` and ``new_group`` can be told.

    What is left unset comes from the environment (``SEALANE_KEY_FILE`` and so on, see
    docs/collectives.md) and, for a sub-group, from the group of all ranks.

    mode: ``"sealed"``, or ``"plain"`` to measure what sealing costs. Plain mode protects nothing and
        says so on stderr; no variable can ask for it.
    transport: ``"auto"`` (shared memory between ranks of one host, TCP between hosts), ``"shm"``
        or ``"tcp"``.
    algorithm: ``"auto"``, ``"exchange"``, ``"direct"``, ``"ring"`` or ``"hub"``.
    group: the name of the job, bound into every handshake (``SEALANE_GROUP``, else ``"default"``).
        Jobs that share a key should have different names.
    """

    mode: str = "sealed"
    transport: str = "auto"
    algorithm: str = "auto"
    group: Optional[str] = None
    key_file: Optional[str] = None
    certificate_file: Optional[str] = None
    certificate_key_file: Optional[str] = None
    authorities_file: Optional[str] = None
    attest_command: Optional[str] = None


class Traffic(NamedTuple):
    """Records this rank has sealed and sent, and the bytes in them. In plain mode: only sent."""

    records: int
    bytes: int


class _World:
    """The group of all ranks, as sub-groups need it. There is one at a time."""

    backend: Optional["weakref.ref[ProcessGroupSealane]"] = None
    options = Options()

    @classmethod
    def current(cls) -> Optional[ProcessGroupSealane]:
        backend = cls.backend() if cls.backend is not None else None
        if backend is not None or not dist.is_initialized():
            return backend
        # torch 2.0 keeps the backend and lets go of its Python object: another can be had.
        look_up = getattr(dist.group.WORLD, "_get_backend", None)
        found = look_up(torch.device("cpu")) if look_up is not None else None
        return found if isinstance(found, ProcessGroupSealane) else None


def traffic(group: Optional[dist.ProcessGroup] = None) -> Traffic:
    """What this rank has sent so far in a group; in the group of all ranks by default."""
    backend = group if group is not None else _World.current()
    if backend is None:
        raise RuntimeError('no group: call init_process_group("sealane") first')
    if not isinstance(backend, ProcessGroupSealane):  # torch 2 wraps it
        backend = backend._get_backend(torch.device("cpu"))
    return Traffic(*backend.traffic)


def _group_name(world: str, group_id: Optional[str]) -> str:
    """A name that the library takes: short, and of letters, digits and '-_.' only."""
    if len(world) > _GROUP_NAME_MAX:
        raise ValueError(f"the name of a group has at most {_GROUP_NAME_MAX} characters: {world}")
    if group_id is None:
        return world
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,12}", group_id):
        group_id = hashlib.sha256(group_id.encode()).hexdigest()[:12]
    return f"{world}.{group_id}"


def _comm_options(setup: Any, options: Options, group_id: Optional[str]) -> CommOptions:
    out = CommOptions()
    out.rank = setup.group_rank
    out.size = setup.group_size
    out.timeout = setup.timeout
    out.group = _group_name(options.group or os.environ.get("SEALANE_GROUP") or "default", group_id)
    out.set_mode(options.mode)
    out.set_transport(options.transport)
    out.algorithm = options.algorithm
    for name in (
        "key_file",
        "certificate_file",
        "certificate_key_file",
        "authorities_file",
        "attest_command",
    ):
        setattr(out, name, getattr(options, name) or "")
    return out


def _may_be_a_restart() -> bool:
    """torchrun's store outlives its workers, and with it what those who were killed have left there."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _create(setup: Any, options: Optional[Options]) -> ProcessGroupSealane:
    """Called by torch.distributed for every group this process is a member of."""
    if options is not None and not isinstance(options, Options):
        raise TypeError("pg_options must be a sealane.torch.Options")
    if not dist.is_initialized():
        return _join_world(setup, options or Options())
    parent = _World.current()
    members: List[int] = list(setup.global_ranks_in_group) or list(range(setup.group_size))
    # Without a parent the world is another backend's, and this group joins as a world would.
    chosen = options or (_World.options if parent is not None else Options())
    if parent is not None and chosen.mode != _World.options.mode:
        raise ValueError(f"a sub-group of a {_World.options.mode} group is {_World.options.mode}")
    comm_options = _comm_options(setup, chosen, setup.group_id)
    return ProcessGroupSealane(setup.store, comm_options, members, parent, _may_be_a_restart())


def _join_world(setup: Any, options: Options) -> ProcessGroupSealane:
    comm_options = _comm_options(setup, options, None)
    everyone = list(range(setup.group_size))
    backend = ProcessGroupSealane(setup.store, comm_options, everyone, None, _may_be_a_restart())
    _World.backend = weakref.ref(backend)
    _World.options = options
    return backend


def _once_per_group(create: Callable[..., ProcessGroupSealane]) -> Callable[..., ProcessGroupSealane]:
    """torch 2.0 asks for every group twice, for CPUs and for GPUs: the second time it gets what it has."""
    made: Dict[Any, ProcessGroupSealane] = {}  # for CPUs, so far

    def create_once(setup: Any, options: Optional[Options]) -> ProcessGroupSealane:
        name = (setup.group_id, setup.group_rank, setup.group_size)
        backend = made.pop(name, None)
        made.clear()  # of a group that failed
        if backend is None:
            backend = made[name] = create(setup, options)
        return backend

    return create_once


def _register() -> None:
    if hasattr(dist.Backend, "SEALANE"):
        return
    create, arguments = _create, {"extended_api": True}
    if "devices" in dist.Backend.register_backend.__code__.co_varnames:  # torch 2.1 and later
        arguments["devices"] = ["cpu"]  # "cuda:sealane" may be asked for by name
    elif hasattr(dist.distributed_c10d, "BackendConfig"):  # torch 2.0
        create = _once_per_group(_create)
    dist.Backend.register_backend("sealane", create, **arguments)


_register()
