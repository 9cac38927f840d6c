"""What there is to know about one option of a config, beside its name and default (0.3)."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING

from engine import strict_json
from engine.errors import ConfigError, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know about one option besides its name and default.

    Attributes:
        type: JSON type: `integer`, `number`, `boolean`, `string` or `array`.
        doc: one sentence.
        flag: vLLM's own command-line flag, or None.
        minimum: smallest value allowed, or None.
        below: the value must stay below this one, or None.
        choices: the words allowed, or () for any.
        nullable: whether null may be written.
        kinds: the kinds of group it belongs to; () for all.
    """

    type: str
    doc: str
    flag: str | None = None
    minimum: int | None = None
    below: int | None = None
    choices: tuple[str, ...] = ()
    nullable: bool = False
    kinds: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """The values allowed, in words."""
        words = {"number": "a number", "boolean": "true or false", "string": "a text", "array": "a list"}.get(self.type)
        if self.choices:
            words = "one of " + ", ".join(self.choices)
        elif words is None:
            words = strict_json.numbers_in_words(self.minimum, None)
        elif self.below is not None:
            words = f"a number from {self.minimum} to below {self.below}"
        return f"{words}, or null" if self.nullable else words

    def read(self, value: object, where: str) -> object:
        """`value` checked against type and range.

        Raises:
            ScenarioError: the wrong JSON type.
            ConfigError: out of range, or not one of the choices.
        """
        if value is None and self.nullable:
            return None
        result = self._typed(value, where)
        if isinstance(result, str):
            allowed = not self.choices or result in self.choices
        else:
            allowed = (self.minimum is None or result >= self.minimum) and (self.below is None or result < self.below)
        if not allowed:
            raise ConfigError("invalid_config", f"{shown(value)} is not allowed", where, self.expected)
        return result

    def _typed(self, value: object, where: str) -> int | float | str:
        if self.type == "integer":
            if isinstance(value, bool) or not isinstance(value, int):
                raise strict_json.wrong_type(value, where, self.expected)
            return strict_json.whole_number(value, where)
        if self.type == "number":
            return strict_json.number(value, where)
        return strict_json.flag(value, where) if self.type == "boolean" else strict_json.text(value, where)


def about(
    type: str,
    doc: str,
    *,
    flag: str | None = None,
    minimum: int | None = None,
    below: int | None = None,
    choices: tuple[str, ...] = (),
    nullable: bool = False,
    kinds: tuple[str, ...] = (),
) -> dict[str, Option]:
    """The metadata of one option's field."""
    return {"option": Option(type, doc, flag, minimum, below, choices, nullable, kinds)}


def options_of(config: "type[DataclassInstance]") -> dict[str, Option]:
    """The options of a config class by name, in the order of its fields."""
    return {item.name: item.metadata["option"] for item in fields(config)}


def defaults_of(config: "type[DataclassInstance]") -> dict[str, object]:
    """The defaults of those options that have a fixed one."""
    return {item.name: item.default for item in fields(config) if item.default is not MISSING}


def read_all(known: Mapping[str, Option], written: Mapping[str, object], where: str) -> dict[str, object]:
    """Every value that is written, checked against its option."""
    return {key: known[key].read(value, strict_json.join(where, key)) for key, value in written.items()}


def differing(config: "DataclassInstance", further: Mapping[str, object]) -> dict[str, object]:
    """The fields that hold something else than their default; `further` gives defaults that aren't fixed."""
    defaults = {**defaults_of(type(config)), **further}
    return {key: value for key, default in defaults.items() if (value := getattr(config, key)) != default}
