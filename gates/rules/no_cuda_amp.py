"""No use of `torch.cuda.amp`, which is deprecated in favour of `torch.amp`."""

import ast
from collections.abc import Iterator

from gates.model import Severity
from gates.rules.code_rule import CodeRule, Site
from gates.syntax import SourceModule, live_nodes

OLD = "torch.cuda.amp"
NEW = "torch.amp"


def look(module: SourceModule) -> Iterator[Site]:
    """Yield each use of the old name as a fault and each use of the new one as right."""
    for node in live_nodes(module.tree):
        if isinstance(node, ast.Call):
            name = module.dotted(node.func) or ""
            if name.startswith((f"{OLD}.", f"{NEW}.")):
                ok = name.startswith(f"{NEW}.")
                yield Site(node.lineno, node.end_lineno or node.lineno, ok, f"{name} is called")
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                name = module.dotted(base) or ""
                if name.startswith((f"{OLD}.", f"{NEW}.")):
                    ok = name.startswith(f"{NEW}.")
                    yield Site(node.lineno, node.lineno, ok, f"{node.name} extends {name}")


RULE = CodeRule(
    id="no-cuda-amp",
    severity=Severity.MEDIUM,
    problem="The deprecated torch.cuda.amp is used.",
    impact="It warns, works on one kind of device only, and will be removed.",
    fix="Use torch.amp.autocast(device_type) and torch.amp.GradScaler(device).",
    good="import torch\nscaler = torch.amp.GradScaler('cuda')\n",
    bad="from torch.cuda.amp import GradScaler\nscaler = GradScaler()\n",
    look=look,
)
