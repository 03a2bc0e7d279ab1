"""Which decorators make of a function what runs no Python: those of libraries that compile, by their imports."""

import ast
from collections.abc import Iterable

from gates.code.stub import last_name
from gates.code.syntax import SourceModule

COMPILING = frozenset({"jit", "njit", "compile", "script", "vectorize", "guvectorize", "cfunc", "kernel"})
COMPILERS = frozenset({
    "torch", "numba", "numba_cuda", "numba_dpex", "triton", "jax", "cupy", "cupyx", "cython", "Cython", "taichi",
    "warp", "pythran", "transonic", "equinox", "flax", "keras", "tensorflow", "paddle", "mindspore", "mlx", "bodo",
    "dace", "cutlass", "tilelang", "pyccel", "lpython", "codon",
})  # fmt: skip


def compiles(decorator: ast.expr, module: SourceModule, compiling: Iterable[str]) -> bool:
    """Return whether a decorator is one of a library that compiles, or of a file (`compiling`) that uses such.

    `compiling` are dotted names; what is taken from a package may come out of any file in it.
    """
    if last_name(decorator) not in COMPILING:
        return False
    while isinstance(decorator, ast.Call | ast.Subscript):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    names = ast.unparse(decorator).split(".")
    if names[0] not in module.aliases:
        return _dotted(module.path) in compiling
    full = module.dotted(decorator) or ""
    origin = f".{full.rpartition('.')[0]}."
    return full.partition(".")[0] in COMPILERS or any(origin in f".{one}." for one in compiling)


def compiling_modules(modules: Iterable[SourceModule]) -> frozenset[str]:
    """Return the dotted names of the files that do something with what compiles, from their project's root on."""
    return frozenset(_dotted(module.path) for module in modules if _uses_compiler(module))


def _uses_compiler(module: SourceModule) -> bool:
    names = (module.dotted(node) for node in ast.walk(module.tree) if isinstance(node, ast.Attribute | ast.Name))
    return any(
        full.partition(".")[0] in COMPILERS and full.rpartition(".")[2] in COMPILING
        for full in (*module.aliases.values(), *filter(None, names))
    )


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
