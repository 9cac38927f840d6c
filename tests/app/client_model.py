"""What a browser does with the figures' data: it takes a whole, and puts changes on top of it."""

from __future__ import annotations

import copy
from typing import Any

Data = dict[str, Any]


class Client:
    """Keeps the figures as a page would."""

    def __init__(self, whole: Data) -> None:
        assert whole["from"] is None
        self.data = copy.deepcopy(whole)

    def take(self, change: Data) -> None:
        """Put a change on top."""
        assert change["from"] == self.data["at"]
        change = copy.deepcopy(change)
        self.data["at"] = change["at"]
        self.data["requests"] = self.data["requests"] + change.get("requests_added", [])
        if "pool" in change:
            self._pool(change["pool"])
        if "queue" in change:
            self.data["queue"] = change["queue"]
        if "tables" in change:
            self._tables(change)
        if "hashes" in change:
            self._hashes(change["hashes"])
        if "series" in change:
            self._series(change["series"])
        self.data["usage"], self.data["blocks"] = change["usage"], change["blocks"]

    def _series(self, change: Data) -> None:
        mine = self.data["series"]
        if "from" not in change:
            self.data["series"] = change
            return
        assert change["from"] == mine["end"]
        mine["end"] = change["end"]
        for name in change.keys() - {"from", "end"}:
            mine[name] = tuple([*old, *new] for old, new in zip(mine[name], change[name], strict=True))

    def _pool(self, change: Data) -> None:
        cells = {cell[0]: [*cell[:3], 0, *cell[4:]] for cell in self.data["pool"]["cells"]}
        cells.update({cell[0]: cell for cell in change["cells"]})
        told = [cell for _, cell in sorted(cells.items()) if any(cell[1:4])]
        self.data["pool"] = {**change, "cells": told}

    def _tables(self, change: Data) -> None:
        tables = {(table["request"], table["group"]): table for table in self.data["tables"]}
        for table in tables.values():
            table["cells"] = [[*cell[:4], 0, cell[5]] for cell in table["cells"]]
        for request, group in change.get("tables_gone", []):
            tables.pop((request, group), None)
        for table in change["tables"]:
            place = table["request"], table["group"]
            before = [] if table.pop("whole", False) or place not in tables else tables[place]["cells"]
            cells = {cell[0]: cell for cell in [*before, *table["cells"]]}
            fold = range(200, table["total"] - 200)
            tables[place] = {**table, "cells": [cell for entry, cell in sorted(cells.items()) if entry not in fold]}
        self.data["tables"] = [table for _, table in sorted(tables.items())]

    def _hashes(self, change: Data) -> None:
        chains = {chain["id"]: chain for chain in self.data["hashes"]["chains"] if chain["id"] not in change["gone"]}
        for chain in chains.values():
            chain["cells"] = [[cell[0], cell[1], 0, cell[3]] for cell in chain["cells"]]
        chains.update({chain["id"]: chain for chain in change["chains"]})
        self.data["hashes"] = {"total": change["total"], "chains": [chain for _, chain in sorted(chains.items())]}


def comparable(data: Data) -> Data:
    """What must be equal: everything but where it came from and the words."""
    return {key: value for key, value in data.items() if key not in ("from", "alt", "requests_added")}
