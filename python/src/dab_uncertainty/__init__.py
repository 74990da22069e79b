"""How far is an input from what was seen before?

`Model` reads a model.dab and says how uncertain each input is. `Memory` starts empty, learns, and says how often something like
an input was seen: an exploration bonus. `Exploration` scales a bonus, `Guard` says who may drive, `Monitor`
turns uncertainties into that decision.

    import dab_uncertainty as dab

    model = dab.Model("model.dab")
    a = model.assess(rows)                       # [rows, inputs] → a.uncertainty, a.p_value, a.verdict, …

    memory = dab.Memory(codes=256, dim=2, std=0.1)
    reward += 0.1 * memory.observe(state).bonus

Errors are exceptions with the words of the C library. Calls release the GIL. Threads may share a `Model` or a `Memory`; an
`Exploration`, an `Ellipse`, a `Guard` and a `Monitor` belong to one thread.
"""

from ._library import Error, library_path
from .check import check
from .explore import Exploration
from .export import Exported, Unsupported, export
from .fit import fit
from .memory import Ellipse, Memory, Novelty, random_features, suggest_std
from .model import VERDICTS, Attribution, Explanation, Model
from .monitor import Decision, Event, Guard, Monitor

__all__ = [
    "VERDICTS",
    "Attribution",
    "Decision",
    "Ellipse",
    "Error",
    "Event",
    "Explanation",
    "Exploration",
    "Exported",
    "Guard",
    "Memory",
    "Model",
    "Monitor",
    "Novelty",
    "Unsupported",
    "check",
    "export",
    "fit",
    "library_path",
    "random_features",
    "suggest_std",
]
__version__ = "0.1.0"


def __getattr__(name: str):
    # Gymnasium, Stable-Baselines3 and pyarrow are only imported by those who use them.
    import importlib

    rooms = {"arrow": "arrow", "NoveltyWrapper": "gym", "NoveltyVecWrapper": "sb3"}
    if name in rooms:
        try:
            room = importlib.import_module(f".{rooms[name]}", __name__)
        except ModuleNotFoundError as error:
            extra = f"pip install '{__name__.replace('_', '-')}[{rooms[name]}]'"
            raise ModuleNotFoundError(f"{name} needs the package {error.name}: {extra}", name=error.name) from error
        return room if name == "arrow" else getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
