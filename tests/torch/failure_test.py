# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
"""Does everything that goes wrong end in an error that says what and who, soon, and in no damage?"""

import os
import signal
import subprocess
import threading
import time
import unittest
from datetime import timedelta
from typing import Any, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import sealane.torch
from harness import Case, die, join
from hostile import HostileStore, Meddler


def model_and_step() -> Tuple[torch.nn.Module, Any]:
    torch.manual_seed(3)
    model = DistributedDataParallel(torch.nn.Linear(500, 500))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(2, 500)).square().mean().backward()
        optimizer.step()

    return model, step


def error_of(call: Any) -> str:
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return "no error"


def killed(rank: int, size: int, directory: str, key: str) -> str:
    join(rank, size, directory, key)
    _, step = model_and_step()

    def train() -> None:
        for done in range(100):
            if rank == 1 and done == 3:
                die()
            step()

    return error_of(train)  # who is slow hears in its third step what another has met in its fourth


def silent(rank: int, size: int, directory: str, key: str) -> str:
    """Rank 2 joins a sub-group and never comes to its sum. The time-out is that of joining it, too: it doubles until
    that was long enough for both."""
    join(rank, size, directory, key)
    world = sealane.torch._World.current()
    error = ""
    for attempt in range(10) if rank != 1 else ():
        members = [0, 2]
        options = sealane.torch.CommOptions()
        options.rank, options.size, options.group = members.index(rank), 2, f"default.part{attempt}"
        options.timeout = timedelta(seconds=2**attempt)
        store = dist.PrefixStore(options.group, dist.FileStore(f"{directory}/part{attempt}", 2))
        made: List[Any] = []
        problem = error_of(lambda: made.append(sealane.torch.ProcessGroupSealane(store, options, members, world)))
        touch(f"{directory}/{'joined' if made else 'late'}-{attempt}-{rank}")
        others = [f"{directory}/{how}-{attempt}-{2 - rank}" for how in ("joined", "late")]
        wait_until(lambda: any(os.path.exists(path) for path in others))
        error = problem
        if made and os.path.exists(others[0]):
            error = error_of(lambda: made[0].allreduce([torch.ones(4)]).wait()) if rank == 0 else ""
            break
    wait_for_all(rank, size, directory)
    return error


def impatient(rank: int, size: int, directory: str, key: str) -> List[str]:
    """Two ranks of three come late: one to a collective of a sub-group, one to a message."""
    join(rank, size, directory, key)
    group = dist.new_group([0, 2])
    errors: List[str] = []
    if rank == 0:
        total = torch.ones(4)
        late = dist.all_reduce(total, group=group, async_op=True)
        message = dist.irecv(torch.zeros(4), 1)
        for work in (late, message):
            errors.append("")
            deadline = time.monotonic() + 200  # it must have begun to wait to know for whom
            while "waits for" not in errors[-1] and time.monotonic() < deadline:
                errors[-1] = error_of(lambda: work.wait(timedelta(milliseconds=50)))
    dist.barrier()  # of all: the others come late to everything else
    if rank == 0:
        late.wait()
        message.wait()
        assert torch.equal(total, 2 * torch.ones(4))  # nothing was lost by asking
    elif rank == 1:
        dist.send(torch.ones(4), 0)
    else:
        dist.all_reduce(torch.ones(4), group=group)
    dist.barrier()
    return errors


def wait_for_all(rank: int, size: int, directory: str, place: str = "here") -> None:
    touch(f"{directory}/{place}-{rank}")
    wait_until(lambda: all(os.path.exists(f"{directory}/{place}-{other}") for other in range(size)))


def touch(path: str) -> None:
    with open(path, "w", encoding="ascii"):
        pass


def wait_until(condition: Any) -> None:
    while not condition():
        time.sleep(0.01)


def forked(rank: int, size: int, directory: str, key: str) -> str:
    """A child uses and ends the group of its parent, which has threads that the child has not."""
    join(rank, size, directory, key)
    message = torch.ones(3)
    if rank == 0:
        dist.send(message, 1)
    else:
        dist.recv(message, 0)
    dist.barrier()
    child = os.fork()
    if child == 0:
        calls = [lambda: dist.send(message, 1 - rank), lambda: dist.all_reduce(message)]
        refused = all("before fork()" in error_of(call) for call in calls)
        dist.destroy_process_group()
        os._exit(0 if refused else 1)
    deadline = time.monotonic() + 200
    ended, status = os.waitpid(child, os.WNOHANG)
    while ended == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
        ended, status = os.waitpid(child, os.WNOHANG)
    if ended == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "the child hangs"
    dist.barrier()  # the parents go on
    return f"status {status}"


def meddled(rank: int, size: int, directory: str, key: str, port: int) -> Tuple[str, bool]:
    os.environ["SEALANE_TCP_STREAMS"] = "1"  # or the ranks notice that one takes the other for far
    store: dist.Store = dist.FileStore(directory + "/store", size)
    if rank == 1:
        store = HostileStore(store, directory, port)
    options = sealane.torch.Options(transport="tcp")
    join(rank, size, directory, key, store=store, options=options)
    model, step = model_and_step()
    for _ in range(3):
        step()
    dist.barrier()
    wait_for_all(rank, size, directory)  # a barrier may end here while another rank is still in it
    Meddler.start_meddling(directory)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    error = error_of(step)
    same = all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    later = error_of(lambda: dist.all_reduce(torch.ones(2)))
    return error, same and later != "no error"


def joins(
    rank: int, size: int, directory: str, key: Optional[str], plan: List[Any], seconds: float = 60
) -> str:
    """Rank i joins with plan[i]: key, rank it claims, options."""
    mine, claimed, options = plan[rank]
    for name in [name for name in os.environ if name.startswith("SEALANE_")]:
        del os.environ[name]
    return error_of(lambda: join(claimed, size, directory, mine, seconds, options))


def posing(rank: int, size: int, directory: str, key: str, files: List[Any], name: str) -> str:
    """Rank 2 does all it can to be rank 1 for rank 0: in a sub-group, or as the sender of a message.

    It is a rank of the world, uses the store, the names and the rank that the real one would, and comes first. It makes
    the group with itself as the member, because that is whose secrets it has.
    """
    join(rank, size, directory, None, 300, files[rank])
    if rank == 1:
        wait_for_all(rank, size, directory)
        return "stays away"
    members = [0, 1 if rank == 0 else 2]
    if ".pair.1.0" in name:
        members.reverse()  # the sender is the first of the two
    options = sealane.torch.CommOptions()
    options.rank, options.size, options.group = members.index(rank), 2, name
    options.timeout = timedelta(seconds=300)
    store = dist.PrefixStore(name, dist.FileStore(directory + "/posing", size))
    world = sealane.torch._World.current()
    error = error_of(lambda: sealane.torch.ProcessGroupSealane(store, options, members, world))
    wait_for_all(rank, size, directory)
    return error


def aborted(rank: int, size: int, directory: str, key: str) -> List[str]:
    """Rank 2 never comes to anything; rank 1 ends the group from another thread while all of its calls wait."""
    join(rank, size, directory, key, seconds=600)
    backend = sealane.torch._World.current()
    part = dist.new_group([0, 1], timeout=timedelta(seconds=600))  # goes on
    works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(2)] if rank != 2 else []
    if rank == 0:
        works += [dist.irecv(torch.zeros(2), 1), dist.irecv(torch.zeros(2), 2)]
    if rank == 1:
        works += [dist.irecv(torch.zeros(2), 0)]
    wait_for_all(rank, size, directory, "works")
    if rank == 1:
        timer = threading.Timer(0.2, backend.abort)
        timer.start()
    errors = [error_of(work.wait) for work in works]
    if rank == 2:  # in no call: it is told by the first it makes
        wait_for_all(rank, size, directory, "told")
        errors.append(error_of(lambda: dist.all_reduce(torch.ones(4))))
    else:
        errors.append(error_of(lambda: dist.all_reduce(torch.ones(4))))
        total = torch.ones(2)
        dist.all_reduce(total, group=part)
        errors.append(str(total.tolist()))
        wait_for_all(rank, size, directory, "told")
    dist.destroy_process_group()
    return errors


def ended_by_another(rank: int, size: int, directory: str, key: str) -> List[str]:
    """Rank 1 shuts down while rank 0 waits for it."""
    join(rank, size, directory, key, seconds=600)
    works = []
    if rank == 0:
        works = [dist.all_reduce(torch.ones(4), async_op=True), dist.irecv(torch.zeros(2), 1)]
    wait_for_all(rank, size, directory)
    if rank == 1:
        dist.destroy_process_group()
        if sealane.torch._World.current() is not None:  # PyTorch 1.13 knows no shutdown
            sealane.torch._World.current().abort()
    return [error_of(work.wait) for work in works]


def other_size(rank: int, size: int, directory: str, key: str) -> str:
    """Rank 0 thinks that it is one of two, rank 1 one of three."""
    return error_of(lambda: join(rank, size + rank, directory, key, seconds=600))


def other_script(rank: int, size: int, directory: str, key: str) -> str:
    """Rank 2 runs another program than the others."""
    join(rank, size, directory, key, seconds=600)
    call = (lambda: dist.broadcast(torch.ones(7), 2)) if rank == 2 else (lambda: dist.all_reduce(torch.ones(3)))
    error = error_of(call)
    wait_for_all(rank, size, directory)
    return error


def left_before(rank: int, size: int, directory: str, key: str) -> List[str]:
    """Rank 1 has left before rank 0 asks for its message, or gives it one: neither lane was ever joined."""
    join(rank, size, directory, key, seconds=600)
    dist.barrier()
    world = sealane.torch._World.current()
    errors = []
    if rank == 1:
        dist.destroy_process_group()
        del world  # with PyTorch 1.13 the group ends with its last reference
    wait_for_all(rank, size, directory)
    if rank == 0:
        errors = [error_of(lambda: dist.recv(torch.zeros(2), 1)), error_of(lambda: dist.send(torch.zeros(2), 1))]
    wait_for_all(rank, size, directory, "told")
    return errors


def attested(rank: int, size: int, directory: str, key: str, by_variable: bool) -> List[int]:
    """How often the user's command was asked: after joining the world, and after a sub-group and a message."""
    log = f"{directory}/asked-{rank}"
    command = f"echo asked >> {log}; echo evidence #"
    if by_variable:
        os.environ["SEALANE_ATTEST_CMD"] = command
    join(rank, size, directory, key, options=sealane.torch.Options(attest_command=None if by_variable else command))
    counts = [count_lines(log)]
    part = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(torch.ones(3), group=part)
        (dist.send if rank == 0 else dist.recv)(torch.ones(3), 1 - rank)
    dist.barrier()
    return [*counts, count_lines(log)]


def count_lines(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return len(file.readlines())


def two_jobs(rank: int, size: int, directory: str, key: str, groups: List[str]) -> float:
    """Half of the processes are one job, half another, at the same time and with one key."""
    job, rank_in_job = divmod(rank, size // 2)
    store = dist.FileStore(f"{directory}/store-{groups}-{job}", size // 2)
    options = sealane.torch.Options(group=groups[job])
    join(rank_in_job, size // 2, directory, key, store=store, options=options)
    wait_for_all(rank, size, directory, str(groups))
    total = torch.full((5000,), 10.0**job)
    for _ in range(20):
        dist.all_reduce(total, op=dist.ReduceOp.AVG)
    return float(total[0])


def started_again(rank: int, size: int, directory: str, key: str, first_size: int, died: str) -> List[float]:
    """As torchrun does it: the store stays, and in it what the first start has left, which may have had another size."""
    os.environ.update(TORCHELASTIC_RUN_ID="job", TORCHELASTIC_RESTART_COUNT="0", GROUP_WORLD_SIZE="2")
    if rank < first_size:
        child = os.fork()
        if child == 0:
            start_first(rank, first_size, directory, key, died)
        os.waitpid(child, 0)
    wait_for_all(rank, size, directory, "first")
    if rank == 0:  # the others find what the first start has left before anything else, if they look there
        wait_until(lambda: all(os.path.exists(f"{directory}/second-{other}") for other in range(1, size)))
    else:
        touch(f"{directory}/second-{rank}")
    join(rank, size, directory, key)
    part = dist.new_group(list(range(size)))
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total, group=part)
    return total.tolist()


def start_first(rank: int, size: int, directory: str, key: str, died: str) -> None:
    """A start whose ranks are killed: when they have met, or before, when only rank 0 has come and nobody answered."""
    if died == "joining":
        if rank == 0:
            error_of(lambda: join(rank, size, directory, key, seconds=1))
    else:
        join(rank, size, directory, key)
        dist.all_reduce(torch.ones(3), group=dist.new_group(list(range(size))))
        wait_for_all(rank, size, directory, "met")
    die()


def comes_late(rank: int, size: int, directory: str, key: str, elastic: bool) -> float:
    """Rank 1 does nothing before the others are on their way."""
    if elastic:
        os.environ["TORCHELASTIC_RUN_ID"] = "job"
    store = directory + "/store"
    if rank == 1:
        wait_until(lambda: os.path.exists(store) and os.path.getsize(store) > 0)
    join(rank, size, directory, key)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    return float(total)


def for_ever(rank: int, size: int, directory: str, key: str) -> str:
    """Limits of a thousand years and more, where a rank comes later than at once."""
    os.environ["TORCHELASTIC_RUN_ID"] = "job"
    store = directory + "/store"
    if rank == 1:
        wait_until(lambda: os.path.exists(store) and os.path.getsize(store) > 0)
    join(rank, size, directory, key, seconds=1000 * 365 * 86400)
    total = torch.ones(1)
    if rank == 0:
        work = dist.all_reduce(total, async_op=True)
        threading.Timer(0.1, lambda: touch(directory + "/waits")).start()
        return error_of(lambda: work.wait(timedelta(days=1000 * 365)))
    wait_until(lambda: os.path.exists(directory + "/waits"))
    return error_of(lambda: dist.all_reduce(total))


def odd_note(rank: int, size: int, directory: str, key: str) -> str:
    """The store says that the other rank gave up, in words that look like the number of a rank."""
    inner = dist.FileStore(directory + "/store", size)
    note = (f"sealane/default/{1 - rank}", b"!rank 99999999999999999999999 said so")
    store = HostileStore(inner, directory, port=None, note=note)
    return error_of(lambda: join(rank, size, directory, key, store=store))


def asked_for_ever(rank: int, size: int, directory: str, key: str) -> str:
    """The store says that ranks asked more often which start this is than anybody could answer."""
    os.environ["TORCHELASTIC_RUN_ID"] = "job"
    inner = dist.FileStore(directory + "/store", size)
    store = HostileStore(inner, directory, port=None, count=("sealane/start/asked", 10**12))
    return error_of(lambda: join(rank, size, directory, key, seconds=3, store=store))


def mixed_jobs(rank: int, size: int, directory: str, key: str) -> str:
    """One store for two jobs of one key: what a hostile store could make of them."""
    options = sealane.torch.Options(group="first" if rank == 0 else "second")
    inner = dist.FileStore(directory + "/store", size)
    store = HostileStore(inner, directory, port=None, rename=("second", "first"))
    return error_of(lambda: join(rank, size, directory, key, options=options, store=store))


class Failures(Case):
    """A time-out of 600 s is not meant to be reached: a rank that takes longer than harness.py's 540 hangs."""

    def test_a_killed_rank_ends_the_training_of_the_others(self) -> None:
        outcomes = self.outcomes(3, killed)
        self.assertIsNone(outcomes[1].value)
        for rank in (0, 2):
            self.assertIsNone(outcomes[rank].error, outcomes[rank].error)
            error = outcomes[rank].value
            self.assertIn("rank 1", error)
            self.assertNotIn("no progress", error)  # nobody waited until the time was up

    def test_a_time_out_in_a_sub_group_names_the_rank_of_the_world(self) -> None:
        self.assertIn("waiting for rank 2", self.ranks(3, silent)[0])

    def test_who_waits_a_limited_time_is_told_for_whom(self) -> None:
        errors = self.ranks(3, impatient)[0]
        self.assertIn("sealane: all_reduce: not done after 50 ms; it waits for rank 2", errors[0])
        self.assertIn("sealane: recv: not done after 50 ms; it waits for rank 1", errors[1])

    def test_a_child_made_by_fork_has_no_part_in_the_group_and_can_end_it(self) -> None:
        self.assertEqual(self.ranks(2, forked), ["status 0", "status 0"])

    def test_a_meddler_on_the_wire_ends_the_training_before_it_does_harm(self) -> None:
        with Meddler(str(self.directory)) as meddler:
            outcomes = self.outcomes(2, meddled, meddler.port)
        for outcome in outcomes:
            self.assertIsNone(outcome.error, outcome.error)
            error, unharmed = outcome.value
            self.assertIn("sealane: ", error)
            self.assertTrue(unharmed)
        self.assertTrue(any("authentication failed" in o.value[0] for o in outcomes), outcomes)

    def test_a_wrong_key_is_refused(self) -> None:
        other = self.write_key("other", "cd" * 32)
        errors = self.ranks(2, joins, [(self.key, 0, None), (other, 1, None)])
        self.assertNotIn("no error", errors)
        self.assertTrue(any("key" in error for error in errors), errors)

    def test_two_processes_with_one_rank_are_refused(self) -> None:
        plan = [(self.key, 0, None), (self.key, 1, None), (self.key, 1, None)]
        errors = self.ranks(3, joins, plan, 2)  # seconds: rank 2 never comes
        self.assertNotIn("no error", errors)
        self.assertTrue(any("rank" in error for error in errors), errors)

    def test_certificates_bind_the_rank(self) -> None:
        files = self.certificates(2)
        good = self.ranks(2, joins, [(None, r, files[r]) for r in range(2)])
        self.assertEqual(good, ["no error", "no error"])
        swapped = [(None, 0, files[0]), (None, 1, self.certificates(3)[2])]
        (self.directory / "store").unlink()
        errors = self.ranks(2, joins, swapped)
        self.assertNotIn("no error", errors)
        self.assertTrue(any("certificate" in error for error in errors), errors)

    def test_a_rank_cannot_pose_as_another_in_a_sub_group_or_as_a_sender(self) -> None:
        files = self.certificates(3)
        for name in ("default.part", "default.pair.1.0"):
            with self.subTest(name):
                (self.directory / "store").unlink(missing_ok=True)
                for left in self.directory.glob("here-*"):
                    left.unlink()
                errors = self.ranks(3, posing, files, name)
                self.assertIn("does not have the secret of the rank that it claims to be", errors[0])
                self.assertNotEqual(errors[2], "no error")

    def test_abort_ends_all_pending_work_on_all_ranks(self) -> None:
        outcomes = self.ranks(3, aborted)
        for rank, errors in enumerate(outcomes):
            part = errors.pop() if rank != 2 else "[2.0, 2.0]"
            self.assertEqual(part, "[2.0, 2.0]")
            for error in errors:
                self.assertIn("the group was aborted", error)
        for error in outcomes[0][:2] + outcomes[2]:
            self.assertIn("rank 1 gave up", error)
            self.assertIn("the group was aborted", error)

    def test_shutdown_of_one_rank_ends_what_waits_for_it(self) -> None:
        errors = self.ranks(2, ended_by_another)[0]
        self.assertEqual(len(errors), 2)
        self.assertNotIn("no error", errors)

    def test_ranks_that_disagree_on_the_size_are_told_at_once(self) -> None:
        for error in self.ranks(2, other_size):
            self.assertIn("has another size than", error)

    def test_another_script_on_one_rank_is_told_by_all(self) -> None:
        for error in self.ranks(3, other_script):
            self.assertIn("broadcast", error)
            self.assertIn("all_reduce", error)
            self.assertIn("rank 2", error)

    def test_a_message_of_a_rank_that_has_left_is_not_waited_for(self) -> None:
        errors = self.ranks(2, left_before)[0]
        self.assertEqual(len(errors), 2)
        for error in errors:
            self.assertIn("rank 1 has left the group", error)

    def test_parts_of_a_group_rest_on_its_attestation(self) -> None:
        for by_variable in (False, True):
            (self.directory / "store").unlink(missing_ok=True)
            for before, after in self.ranks(3, attested, by_variable):
                self.assertGreater(before, 0)
                self.assertEqual(before, after)

    def certificates(self, count: int) -> List[sealane.torch.Options]:
        """As docs/collectives.md makes them."""
        here = self.directory
        new = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        script = f"[ -f ca.pem ] || {new} -x509 -subj /CN=ca -keyout ca.key -out ca.pem\n"
        for rank in range(count):
            script += (
                f"{new} -subj /CN=rank{rank} -keyout {rank}.key -out {rank}.csr\n"
                f"echo subjectAltName=URI:sealane://default/{rank} > {rank}.ext\n"
                f"openssl x509 -req -in {rank}.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
                f" -extfile {rank}.ext -out {rank}.pem\n"
            )
        subprocess.run(["sh", "-ec", script], cwd=here, check=True, capture_output=True)
        return [
            sealane.torch.Options(
                certificate_file=f"{here}/{rank}.pem",
                certificate_key_file=f"{here}/{rank}.key",
                authorities_file=f"{here}/ca.pem",
            )
            for rank in range(count)
        ]

    def test_a_missing_or_open_key_is_refused_with_the_command_that_helps(self) -> None:
        for error in self.ranks(2, joins, [(None, 0, None), (None, 1, None)]):
            self.assertIn("sealane keygen", error)
        readable = self.write_key("readable", "ab" * 32, mode=0o644)
        (self.directory / "store").unlink(missing_ok=True)
        for error in self.ranks(2, joins, [(readable, 0, None), (readable, 1, None)]):
            self.assertIn(f"chmod 600 {readable}", error)
        missing = str(self.directory / "nowhere")
        (self.directory / "store").unlink(missing_ok=True)
        for error in self.ranks(2, joins, [(missing, 0, None), (missing, 1, None)]):
            self.assertIn(f"sealane keygen {missing}", error)

    def test_plain_must_be_asked_for_by_all(self) -> None:
        plain = sealane.torch.Options(mode="plain")
        both = self.ranks(2, joins, [(None, 0, plain), (None, 1, plain)])
        self.assertEqual(both, ["no error", "no error"])
        (self.directory / "store").unlink()
        errors = self.ranks(2, joins, [(self.key, 0, None), (self.key, 1, plain)])
        self.assertNotIn("no error", errors)

    def test_a_start_does_not_meet_the_one_before(self) -> None:
        starts = [(2, "joining"), (3, "joining")]
        if int(torch.__version__.split(".", maxsplit=1)[0]) >= 2:
            # PyTorch 1.13 itself counts in the store who has come, and waits in vain in a second start.
            starts += [(1, "joining"), (1, "training"), (2, "training"), (3, "training")]
        for first_size, died in starts:
            with self.subTest(f"{first_size} ranks, killed while {died}"):
                for left in self.directory.glob("[!k]*"):
                    left.unlink()
                outcomes = self.ranks(3, started_again, first_size, died)
                self.assertEqual(outcomes, [[6.0]] * 3)

    def test_a_rank_that_comes_late_joins(self) -> None:
        for elastic in (False, True):
            (self.directory / "store").unlink(missing_ok=True)
            self.assertEqual(self.ranks(3, comes_late, elastic), [6.0] * 3)

    def test_a_limit_beyond_any_clock_is_a_long_one(self) -> None:
        self.assertEqual(self.ranks(2, for_ever), ["no error"] * 2)

    def test_words_of_the_store_do_no_harm(self) -> None:
        for error in self.ranks(2, odd_note):
            self.assertIn("gave up: rank 99999999999999999999999 said so", error)

    def test_counts_of_the_store_take_no_longer_than_the_time_out(self) -> None:
        for error in self.ranks(2, asked_for_ever):
            self.assertIn("did not come to this start of the job in time", error)

    def test_two_jobs_do_not_meet(self) -> None:
        for groups in (["first", "second"], ["default", "default"]):
            self.assertEqual(self.ranks(4, two_jobs, groups), [1.0, 1.0, 10.0, 10.0])
        for error in self.ranks(2, mixed_jobs):
            self.assertIn("is of group", error)


if __name__ == "__main__":
    unittest.main()
