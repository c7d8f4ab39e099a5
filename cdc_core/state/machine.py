"""Which machine and which process is this, and how long has the machine been up?

A host's name does not tell: containers share one, and so do clones of a machine. What tells
machines apart is the id that a kernel gives itself when it starts; what tells processes apart is
their number in a namespace of process ids, and when they began.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_PARTS = 6


def _uptime() -> float:
    """Seconds since the machine started, which go on while it sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Machine:
    """The kernel that this process runs on, as this process sees it. ``boot`` names one run of one
    kernel, with the namespace that its uptime is counted in; ``processes`` the namespace of process
    ids. Both are empty where there is no /proc to ask: nothing is concluded then."""

    host: str
    boot: str
    processes: str
    proc: Path = field(default=Path("/proc"), compare=False)
    uptime: Callable[[], float] = field(default=_uptime, compare=False)

    @classmethod
    def here(cls, proc: Path = Path("/proc")) -> Machine:
        """The machine that this process runs on."""
        try:
            boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
            processes = str((proc / "self/ns/pid").readlink())
        except OSError:
            return cls(socket.gethostname(), "", "", proc)
        try:
            times = str((proc / "self/ns/time").readlink())
        except OSError:  # before Linux 5.6 there is one uptime for all
            times = ""
        return cls(socket.gethostname(), f"{boot}.{_digits(times)}", _digits(processes), proc)

    def holder(self, pid: int, thread: int) -> str:
        """The name under which a thread of a process holds leases:
        ``host/boot/namespace of process ids/pid/start ticks/thread``, never the same for two lives
        of one pid."""
        return f"{self.host}/{self.boot}/{self.processes}/{pid}/{self._start_ticks(pid)}/{thread}"

    @staticmethod
    def readable(holder: str) -> str:
        """A holder's process and host, for people."""
        parts = holder.rsplit("/", _PARTS - 1)
        return f"process {parts[3]} on {parts[0]}" if len(parts) == _PARTS else holder

    def is_dead(self, holder: str) -> bool:
        """Is the holder a process that this one would see if it ran, and does not? False when that
        cannot be told."""
        parts = holder.rsplit("/", _PARTS - 1)
        if len(parts) != _PARTS or not self.boot:
            return False
        _, boot, processes, pid, ticks, _ = parts
        if (boot, processes) != (self.boot, self.processes) or not pid.isdigit():
            return False
        found = self._start_ticks(int(pid))
        return found != ticks and (found != "" or not _is_of_another_user(int(pid)))

    def shares_uptime(self, holder: str) -> bool:
        """Does the holder run on this very kernel, so that both see one uptime?"""
        parts = holder.rsplit("/", _PARTS - 1)
        return len(parts) == _PARTS and self.boot != "" and parts[1] == self.boot

    def _start_ticks(self, pid: int) -> str:
        """When the process began, in clock ticks since the machine started (field 22 of
        /proc/<pid>/stat); empty if it does not run. A zombie does not."""
        try:
            after_name = (self.proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if after_name[0] in {"Z", "X"} else after_name[19]


def _is_of_another_user(pid: int) -> bool:
    """Does such a process run? A /proc that is mounted with hidepid does not show it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def this_process(machine: Machine) -> str:
    """The holder's name of the calling thread."""
    return machine.holder(os.getpid(), threading.get_ident())


def _digits(link: str) -> str:
    """The number in ``pid:[4026531836]``."""
    return "".join(filter(str.isdigit, link))
