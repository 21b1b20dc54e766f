"""Calibration: the fitted models of each device, from the catalog or from a file that `partita calibrate` wrote.

    calibration = load_calibration("my_h100.toml").over(Calibration.of_catalog())
    calibration.device("H100-SXM").products.predict(products)       the file's model, else the catalog's

A calibration file is a catalog entry, `device_*.toml`, with a table `[fits]`. Its tables `[fits.products]`,
`[fits.memory_bound]`, `[fits.attention]`, `[fits.grouped]`, `[fits.collectives]` and those of families of kernels
(`kernels.families`) are optional, and each becomes the model whose `to_table` wrote it when it is asked for first. The
catalog has a file for each table of a device, which is read then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ....errors import InvalidArgumentError, NotFoundError, RequestError
from ... import catalog
from ...spec import DeviceSpec
from ...tables import check_keys, parse_toml, without_sources
from .kernels.families import FAMILIES, family_of

if TYPE_CHECKING:
    from .kernels.kernel_model import KernelModel
    from .products import ProductModel

PARTS = ("products", "memory_bound", "attention", "grouped", "collectives")
"""the tables of `[fits]` that hold models"""
FACTS = ("rows",)
"""other tables of `[fits]`: how many rows of which files each model was fitted to"""


def _model(part: str, module: str, name: str) -> cached_property[Any]:
    """The model of a part, whose class is imported when the table is read: most runs use one or two of the models."""

    def read(fits: DeviceFits) -> Any:
        model = getattr(import_module(f"..{module}", __package__), name)
        return fits.read(part, model.from_table)

    return cached_property(read)


@frozen(slots=False, eq=False)
class DeviceFits:
    """The models of one device, each None if its table has none; InvalidArgumentError for a wrong table when read."""

    spec: DeviceSpec
    table: Mapping[str, Any] = field(repr=False)  # Any: the table `[fits]` as TOML has it
    where: str = field(repr=False, default="catalog")
    _kernels: dict[str, KernelModel[Any] | None] = field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.table, Mapping):
            raise InvalidArgumentError(f"{self.where}: fits = {self.table!r} must be a table; calibrate it again")
        check_keys(self.table, [*PARTS, *FAMILIES, *FACTS], f"{self.where}: fits")
        for part in self.table if isinstance(self.table, dict) else ():  # the catalog's are read when asked for
            if not isinstance(inner := self.table[part], Mapping):
                raise InvalidArgumentError(f"{self._at(part)}: {inner!r} must be a table; calibrate the device again")

    def _at(self, part: str) -> str:
        return f"{self.where}: fits.{part}"

    @cached_property
    def products(self) -> ProductModel | None:
        """Times of matrix products."""
        from .products import ProductModel

        model: ProductModel | None = self.read(
            "products", lambda table, where: ProductModel.from_table(table, self.spec, where)
        )
        return model

    memory_bound = _model("memory_bound", "fits.memory_bound", "MemoryBoundModel")
    """times of ops that move bytes"""
    attention = _model("attention", "fits.attention", "AttentionModel")
    """times of attention"""
    grouped = _model("grouped", "fits.grouped", "GroupedModel")
    """times of grouped products"""
    collectives = _model("collectives", "collectives.measured", "CollectiveModel")
    """times of collectives on systems of this device"""

    def kernels(self, part: str) -> KernelModel[Any] | None:  # Any: rows of the family of that part
        """The model of a family of kernels."""
        if part not in self._kernels:
            from .kernels.kernel_table import read_model

            self._kernels[part] = self.read(
                part, lambda table, where: read_model(family_of(part), table, self.spec, where)
            )
        return self._kernels[part]

    def read(self, part: str, from_table: Any) -> Any:  # Any: a function of (table, where), and the model it returns
        """The model of a part, None if there is no table of it."""
        if part not in self.table:
            return None
        try:
            return from_table(self.table[part], self._at(part))
        except RequestError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentError(f"{self._at(part)}: {error}; calibrate the device again") from error

    def read_all(self) -> DeviceFits:
        """Itself, after all tables have been read: what is wrong in one is an error now."""
        for part in PARTS:
            getattr(self, part)
        for part in FAMILIES:
            self.kernels(part)
        return self


@frozen
class Calibration:
    """Fits by device name; `others` is asked about devices that are not in it."""

    fits: Mapping[str, DeviceFits] = field(factory=dict)
    others: Calibration | None = None
    of_all_models: bool = False  # the catalog's: asked by name, so that only what is used is read

    @staticmethod
    def of_catalog() -> Calibration:
        """The fits that the catalog's devices come with."""
        return Calibration(of_all_models=True)

    def device(self, name: str) -> DeviceFits | None:
        """The fits of a device by its name or an alias of the catalog; None if it has none."""
        fits = self.fits.get(name) or self.fits.get(_catalog_name(name))
        if fits is None and self.of_all_models:
            fits = _of_catalog(name)
        if fits is None and self.others is not None:
            return self.others.device(name)
        return fits

    def having(self, part: str) -> Iterator[DeviceFits]:
        """The fits that have a model of that part, in the order of names, those of `others` last."""
        for name in [*sorted(self.fits), *(catalog.device_names() if self.of_all_models else ())]:
            fits = self.device(name)
            if fits is not None and part in fits.table:
                yield fits
        if self.others is not None:
            yield from self.others.having(part)

    def over(self, other: Calibration) -> Calibration:
        """This calibration, and for the devices that it does not have the other one."""
        others = other if self.others is None else self.others.over(other)
        return Calibration(self.fits, others, self.of_all_models)

    def __hash__(self) -> int:
        return id(self)


def _catalog_name(name: str) -> str:
    return catalog.device_spec(name).name if _is_known(name) else name


def _is_known(name: str) -> bool:
    try:
        catalog.device_spec(name)
    except NotFoundError:
        return False
    return True


def _of_catalog(name: str) -> DeviceFits | None:
    """The catalog's fits of a device that it knows."""
    if not _is_known(name):
        return None
    spec, table = catalog.device_spec(name), catalog.fits_of(name)
    return _known_fits(spec.name, id(table)) if table else None


@cache
def _known_fits(name: str, table_id: int) -> DeviceFits:
    """Models are read once for each table; `table_id` tells a model that was removed and added again."""
    return DeviceFits(catalog.device_spec(name), catalog.fits_of(name), f"catalog device {name!r}")


def load_calibration(path: str | Path) -> Calibration:
    """The calibration in a file, with all of its models read.

    Raises NotFoundError for a file that cannot be read, and InvalidArgumentError, which names file, table and key, for
    a wrong one.
    """
    file = Path(path)
    table = _toml(file)
    if "fits" not in table:
        raise InvalidArgumentError(f"{file}: the table 'fits' is missing; write the file with `partita calibrate`")
    entry = {key: without_sources(value) for key, value in table.items() if key not in ("aliases", "fits")}
    spec = catalog.device_spec_from(entry, str(file))
    return Calibration({spec.name: DeviceFits(spec, table["fits"], str(file)).read_all()})


def _toml(file: Path) -> dict[str, Any]:
    try:
        return parse_toml(file.read_text("utf-8"), str(file))
    except OSError as error:
        raise NotFoundError(
            f"calibration file {str(file)!r} cannot be read: {error.strerror}; check the path"
        ) from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{file}: this is not text; a calibration file is TOML in UTF-8") from None
