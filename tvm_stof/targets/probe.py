"""What Linux says about this machine's CPU: /proc and /sys, read without TVM."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_CACHE_DEFAULTS = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Machine:
    """Facts about the CPU. ``root`` is "/" but in tests."""

    root: Path = Path("/")

    def cpuinfo(self) -> dict[str, str]:
        """The fields of the first processor in /proc/cpuinfo."""
        text = self._read("proc/cpuinfo").strip().split("\n\n")[0]
        pairs = (line.partition(":") for line in text.splitlines())
        return {name.strip(): value.strip() for name, _, value in pairs}

    def model(self) -> str:
        """The processor's model, as a person would name it."""
        info = self.cpuinfo()
        arm = " ".join(info[f] for f in ("CPU implementer", "CPU part") if f in info)
        return info.get("model name") or arm or platform.machine()

    def flags(self) -> frozenset[str]:
        """Instruction set features the kernel lets us use."""
        info = self.cpuinfo()
        return frozenset((info.get("flags") or info.get("Features") or "").split())

    def identity(self) -> str:
        """Digest of model and features: changes when the machine under a cache folder does."""
        return hashlib.sha256("\n".join([self.model(), *sorted(self.flags())]).encode()).hexdigest()

    def clock(self) -> float | None:
        """Highest clock in Hz, if known to anyone."""
        steady = self._read("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
        if steady.isdigit():
            return 1e3 * int(steady)
        named = re.search(r"@ ([0-9.]+)GHz", self.model())
        if named:
            return 1e9 * float(named.group(1))
        now = self.cpuinfo().get("cpu MHz", "")
        # What a virtual machine shows is the base clock. Server CPUs boost by up to 40 %, and a floor must not be too high.
        return 1.4e6 * float(now) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", now) and float(now) else None

    def governor(self) -> str:
        """Frequency governor, "unknown" where the machine hides it."""
        return self._read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or "unknown"

    def data_caches(self) -> dict[int, int]:
        """Bytes of the data caches of levels 1 to 3."""
        sizes = dict(_CACHE_DEFAULTS)
        for folder in sorted((self.root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
            level, kind, size = (self._text(folder / name).strip() for name in ("level", "type", "size"))
            match = re.fullmatch(r"([0-9]+)([KMG]?)", size)
            if match and level.isdigit() and kind in ("Data", "Unified"):
                sizes[int(level)] = int(match.group(1)) * _UNITS[match.group(2)]
        return sizes

    def threads(self) -> int:
        """Logical processors this process may use: its affinity, and the CPU quota of its control groups."""
        return max(1, min(len(self._allowed()), *self._quotas()))

    def cores(self) -> int:
        """Physical cores among them."""
        siblings = {
            self._read(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").strip() or str(cpu) for cpu in self._allowed()
        }
        return min(len(siblings), self.threads())

    def _allowed(self) -> set[int]:
        return set(os.sched_getaffinity(0))

    def _quotas(self) -> list[int]:
        quotas = [1 << 20]
        for line in self._read("proc/self/cgroup").splitlines():
            number, controllers, path = ([*line.split(":", 2), "", ""])[:3]
            if number == "0":
                found = [self._v2(mount, path) for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified")]
            elif "cpu" in controllers.split(","):
                found = [self._v1(f"sys/fs/cgroup/{controllers}", path), self._v1("sys/fs/cgroup/cpu", path)]
            else:
                continue
            quotas += [int(quota) for group in found for quota in group if quota >= 1]
        return quotas

    def _v2(self, mount: str, path: str) -> list[float]:
        found = []
        for group in _with_parents(path):
            words = self._read(f"{mount}{group}/cpu.max").split()
            if len(words) == 2 and all(w.isdigit() for w in words):
                found.append(max(1.0, int(words[0]) / int(words[1])))
        return found

    def _v1(self, mount: str, path: str) -> list[float]:
        found = []
        for group in _with_parents(path):
            quota, period = (self._read(f"{mount}{group}/cpu.cfs_{n}_us").strip() for n in ("quota", "period"))
            if quota.isdigit() and period.isdigit():
                found.append(max(1.0, int(quota) / int(period)))
        return found

    def _read(self, path: str) -> str:
        return self._text(self.root / path)

    @staticmethod
    def _text(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def _with_parents(path: str) -> list[str]:
    """A control group and all above it, the root as an empty text; a quota of any of them binds."""
    parts = [p for p in path.split("/") if p and p != ".."]
    return ["".join(f"/{p}" for p in parts[:n]) for n in range(len(parts) + 1)]
