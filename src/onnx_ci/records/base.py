"""What every record is: frozen, keyword-only, slotted, and strict when pydantic reads it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import dataclass_transform  # not in Python 3.10, which the user's side still runs on

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
    def record(cls: type[T]) -> type[T]:
        """Makes a record of a class."""
        raise NotImplementedError

else:

    def record(cls: type) -> type:
        """Makes a record of a class."""
        cls.__pydantic_config__ = {"extra": "forbid"}
        return dataclasses.dataclass(frozen=True, kw_only=True, slots=True)(cls)
