"""The cluster of a plan with the launches and rates that training steps reach, and its curves of collectives."""

from __future__ import annotations

from functools import cached_property
from math import log

from attrs import evolve, frozen

from ....devices.catalog import link_spec
from ....devices.cluster import Cluster
from ....devices.fabric import FabricRules
from ....devices.link import LinkSpec
from ....devices.timing.collectives.measured import CollectiveModel
from ....devices.timing.fits.calibration import Calibration, DeviceFits
from ....devices.topology import LinkRules
from ..machine import Machine
from ..numbers import PlanNumbers


def training_cluster(machine: Machine, numbers: PlanNumbers) -> Cluster:
    """The cluster of a machine whose ports have the rate, and whose host threads the launches, of training."""
    specs = {machine.spec: evolve(machine.spec, launch_overhead_ns=round(numbers.launch_ns), launches_ahead=True)}
    old = machine.cluster
    devices = [evolve(device, spec=specs.get(device.spec, device.spec)) for device in old]
    return Cluster(devices, _rules(old.topology.rules, machine, numbers), old.profiles)


def _rules(rules: LinkRules, machine: Machine, numbers: PlanNumbers) -> LinkRules:
    network = None if rules.network is None else _at(rules.network, numbers.network)
    fabric: FabricRules = evolve(
        rules.fabric, nics=tuple(evolve(nic, link=_at(nic.link, numbers.network)) for nic in rules.fabric.nics)
    )
    peers = dict(rules.peers)
    name = machine.spec.peer_link
    if machine.inside.model is None and name is not None:
        kind = machine.spec.kind
        peers[kind] = _at(peers.get(kind) or link_spec(name), 1 / numbers.inside)
    return evolve(rules, network=network, fabric=fabric, peers=peers)


def _at(link: LinkSpec, share: float) -> LinkSpec:
    return evolve(link, bandwidth_bytes_per_s=max(1, round(link.bandwidth_bytes_per_s * share)))


def training_calibration(machine: Machine, numbers: PlanNumbers) -> Calibration:
    """The calibration, with collectives inside a host as much longer as they are in training."""
    fits = machine.calibration.device(machine.spec.name)
    if fits is None or numbers.inside == 1:
        return machine.calibration
    slower = _SlowerCollectives(fits.spec, fits.table, fits.where, factor=numbers.inside)
    return Calibration({fits.spec.name: slower}, machine.calibration)


@frozen(slots=False, eq=False)
class _SlowerCollectives(DeviceFits):
    """Fits whose collectives take `factor` times as long."""

    factor: float = 1.0

    @cached_property
    def collectives(self) -> CollectiveModel | None:
        model: CollectiveModel | None = self.read("collectives", CollectiveModel.from_table)
        return None if model is None else evolve(model, log_ns=model.log_ns + log(self.factor))
