"""Makes the bench's own action known where the bench asks for it, and nowhere else."""

import importlib
import os

if os.environ.get("AUTOMATION_BENCH") == "1":
    importlib.import_module("northwind.bench.actions")
