"""The tables [[slow]] and [[degrade]] of cluster files."""

from __future__ import annotations

from fractions import Fraction

import pytest

from partita.devices import parse_cluster
from partita.devices.profiles import Profiles, RandomWindows, Window
from partita.errors import InvalidArgumentError

MACHINES = '[[device]]\njob = "worker"\ntasks = 2\nspec = "H100-SXM"\ncount = 2\n'
GPU = "/job:worker/replica:0/task:1/device:GPU:0"


def profiles(tables: str) -> Profiles:
    """What a cluster file with these tables says."""
    return parse_cluster(MACHINES + tables).profiles


def test_windows_and_drawn_windows() -> None:
    """Of devices by any name, of links by name or model; they outlive a restart."""
    slow = '[[slow]]\ndevice = "task 1 gpu:0"\nfactor = 1.5\nfrom = "1 ms"\nto = "2 ms"\n'
    drawn = '[[slow]]\ndevice = "gpu:1"\nfactor = 2\nrandom = { seed = 3, every = "10 ms", lasts = "1 us" }\n'
    degrade = '[[degrade]]\nlink = "NVLink4"\nfactor = 4\n'
    found = profiles(slow + drawn + degrade)
    assert found.slow[0] == (GPU, Window(Fraction(3, 2), 10**6, 2 * 10**6))
    assert found.slow[1][1] == RandomWindows(Fraction(2), 3, 10**7, 1000)
    assert found.degrade == (("NVLink4", Window(Fraction(4))),)
    cluster = parse_cluster(MACHINES + slow)
    assert cluster.with_restarted(GPU).profiles == cluster.profiles


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[[slow]]\ndevice = "gpu:7"\nfactor = 2', "slow 0: 'gpu:7' is no device of this cluster"),
        ("[[slow]]\nfactor = 2", "slow 0: device = None must be a name"),
        ('[[slow]]\ndevice = "gpu:0"\nfactor = 0.5', "slow 0: factor = 0.5 must be a number from 1 to 1,000,000"),
        ('[[slow]]\ndevice = "gpu:0"\nfactr = 2', "slow 0: unknown key 'factr'; did you mean 'factor'?"),
        ('[[slow]]\ndevice = "gpu:0"\nfactor = 2\nfrom = "2 ms"\nto = "1 ms"', "to = '1 ms' must be after from"),
        ('[[slow]]\ndevice = "gpu:0"\nfactor = 2\nto = 5', "slow 0: to: 5 is no duration: it has no unit"),
        ('[[slow]]\ndevice = "gpu:0"\nfactor = 2\nrandom = 1', "give from and to, or random = {"),
        ('[[slow]]\ndevice = "gpu:0"\nfactor = 2\nrandom = { seed = 1, every = "1 s" }', "random: 'lasts' is missing"),
        (
            '[[slow]]\ndevice = "gpu:0"\nfactor = 2\nrandom = { seed = 1, every = "1 s", lasts = "0 s" }',
            "every and lasts must be above 0",
        ),
        ('[[degrade]]\nlink = "NVLink5"\nfactor = 2', "no link is called 'NVLink5'; did you mean 'NVLink4'?"),
    ],
)
def test_wrong_tables_are_refused(table: str, message: str) -> None:
    """The text names the table, the key and what it must be."""
    with pytest.raises(InvalidArgumentError) as error:
        profiles(table)
    assert message in str(error.value)
