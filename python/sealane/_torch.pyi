from datetime import timedelta
from typing import List, Optional, Tuple

from torch.distributed import Store

version: str
torch_version: str

class CommOptions:
    rank: int
    size: int
    group: str
    algorithm: str
    timeout: timedelta
    key_file: str
    certificate_file: str
    certificate_key_file: str
    authorities_file: str
    attest_command: str
    def __init__(self) -> None: ...
    def set_mode(self, name: str) -> None: ...
    def set_transport(self, name: str) -> None: ...

class ProcessGroupSealane:
    """c10d's ProcessGroup in PyTorch 1.13, its Backend in 2.x."""

    def __init__(
        self,
        store: Store,
        options: CommOptions,
        world_ranks: List[int],
        parent: Optional["ProcessGroupSealane"],
        store_is_older: bool = False,
    ) -> None: ...
    def abort(self) -> None: ...
    @property
    def sealed(self) -> bool: ...
    @property
    def traffic(self) -> Tuple[int, int]: ...
