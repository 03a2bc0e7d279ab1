"""Runs in which pytest, unittest or the witness itself is patched from a conftest.py."""

from benchmarks.endings.ending import Ending, Right, conftest

UNITTEST = "import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, 2)\n"
PATCH = "import pytest, _pytest.runner, _pytest.reports, _pytest.python, unittest, builtins, sys, os, json\n{}\n"
REPORT = "{} = 'passed', None"

PATCHES: tuple[tuple[str, str], ...] = (
    ("functions are run by nothing", "pytest.Function.runtest = lambda self: None"),
    (
        "pytest's caller of functions does nothing",
        "_pytest.python.pytest_pyfunc_call.__code__ = (lambda pyfuncitem: True).__code__",
    ),
    (
        "calls never see an exception",
        (
            "real = pytest.CallInfo.from_call.__func__\n"
            "def calm(cls, func, when, reraise=None):\n"
            "    def safe():\n"
            "        try: func()\n"
            "        except AssertionError: pass\n"
            "    return real(cls, safe, when, reraise)\n"
            "pytest.CallInfo.from_call = classmethod(calm)"
        ),
    ),
    (
        "reports are made without looking",
        (
            "pytest.TestReport.from_item_and_call = classmethod(lambda cls, item, call: "
            "cls(item.nodeid, item.location, {}, 'passed', None, call.when))"
        ),
    ),
    (
        "every report says that it passed",
        (
            "pytest.TestReport.failed = property(lambda self: False)\n"
            "pytest.TestReport.__init__.__globals__['x'] = 1\n"
            "real = pytest.TestReport.__init__\n"
            "def init(self, *a, **k):\n"
            "    real(self, *a, **k)\n"
            "    self.outcome, self.longrepr = 'passed', None\n"
            "pytest.TestReport.__init__ = init"
        ),
    ),
    (
        "assertions are compiled away",
        (
            "import _pytest.assertion.rewrite as r\n"
            "r.rewrite_asserts = lambda tree, *a: tree.body.__setitem__(slice(None), [])"
        ),
    ),
    (
        "assert statements are taken out as files are read",
        (
            "import ast, _pytest.assertion.rewrite as r\n"
            "class Out(ast.NodeTransformer):\n"
            "    def visit_Assert(self, n): return ast.copy_location(ast.Pass(), n)\n"
            "r.rewrite_asserts = lambda tree, *a: Out().visit(tree)"
        ),
    ),
    (
        "assertion errors are none",
        (
            "class Calm(AssertionError): pass\n"
            "builtins.AssertionError = Calm\n"
            "real = pytest.Function.runtest\n"
            "def run(self):\n"
            "    try: real(self)\n"
            "    except Exception: pass\n"
            "pytest.Function.runtest = run"
        ),
    ),
    (
        "the witness is unregistered",
        (
            "def pytest_configure(config):\n"
            "    pm = config.pluginmanager\n"
            "    [pm.unregister(p) for n, p in pm.list_name_plugin() if n.startswith('gates')]"
        ),
    ),
    (
        "the witness is made to say nothing",
        (
            "for name, module in list(sys.modules.items()):\n"
            "    if name.startswith('gates_'):\n"
            "        for key, value in list(vars(module).items()):\n"
            "            if callable(value) and not key.startswith('pytest'): "
            "setattr(module, key, lambda *a, **k: None)"
        ),
    ),
    (
        "the witness's hooks are taken out of the list",
        (
            "def pytest_configure(config):\n"
            "    hook = config.hook.pytest_runtest_makereport\n"
            "    for impl in list(hook.get_hookimpls()):\n"
            "        if impl.plugin_name.startswith('gates'): hook._hookimpls.remove(impl)\n"
        )
        + REPORT.format(
            "@pytest.hookimpl(wrapper=True)\n"
            "def pytest_runtest_makereport(item, call):\n"
            "    r = yield\n"
            "    r.outcome, r.longrepr"
        )
        + "\n    return r",
    ),
    ("nothing can be written any more", "os.write = lambda *a: 0"),
    ("JSON is always the same", 'json.dumps = lambda *a, **k: \'{"tests": [], "exitcode": 0, "summary": {}}\''),
    (
        "the JUnit plugin is unregistered",
        (
            "def pytest_configure(config):\n"
            "    pm = config.pluginmanager\n"
            "    [pm.unregister(p) for n, p in pm.list_name_plugin() if 'LogXML' in type(p).__name__]\n"
            "    config.pluginmanager.hook.pytest_runtest_logreport"
        ),
    ),
)
QUICK = {
    "calls never see an exception",
    "assert statements are taken out as files are read",
    "the witness is made to say nothing",
}

ENDINGS = (
    *(Ending(name, Right.NOT_PASS, conftest(PATCH.format(code)), quick=name in QUICK) for name, code in PATCHES),
    Ending(
        "unittest's assertions do nothing",
        Right.NOT_PASS,
        conftest(
            PATCH.format(
                "for name in dir(unittest.TestCase):\n"
                "    if name.startswith('assert'): setattr(unittest.TestCase, name, lambda *a, **k: None)"
            ),
            UNITTEST,
        ),
    ),
    Ending(
        "unittest's cases are run by nothing",
        Right.NOT_PASS,
        conftest(PATCH.format("unittest.TestCase.run = lambda self, result=None: result.addSuccess(self)"), UNITTEST),
    ),
    Ending(
        "pytest.raises is content with anything",
        Right.NOT_PASS,
        conftest(
            PATCH.format("import contextlib\npytest.raises = lambda *a, **k: contextlib.suppress(BaseException)"),
            "import pytest\ndef test_it():\n    with pytest.raises(ValueError):\n        pass\n",
        ),
    ),
)
