"""The samples as SVG figures; matplotlib is imported only here, and only when one is drawn.

A figure holds no date and no random identifier: the same samples give the same file with the same matplotlib, so that
it can be committed and compared. Every sample is a point; the bar beside the points is the median with its interval.
"""

import importlib.util
import io
import logging
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amp_core.benchmark.arms import BASELINE, BY_HAND
from amp_core.benchmark.interval import LEAST, around_median
from amp_core.samples import Metric, Samples, write_text
from benchmarks.wider.inference import PERCENTILES, percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Metrics = Mapping[str, Metric]

# Okabe and Ito's palette, which people with any colour vision tell apart (Wong, Nature Methods 8, 441, 2011).
COLOURS = {"fp32": "#000000", "tf32": "#E69F00", "bf16": "#0072B2", "fp16": "#D55E00"}
MARKERS = {"fp32": "o", "tf32": "D", "bf16": "s", "fp16": "^"}
MEMORY = {
    "saved_for_backward_bytes": "saved for backward",
    "predicted_peak_memory_bytes": "peak, predicted",
    "peak_memory_bytes": "peak, measured",
}
SCALED = (("step_time_s", "step time [ms]", 1e3), ("peak_memory_bytes", "peak memory [GiB]", 2.0**-30))
HATCHES = ("//", "..", "")
STYLE: Any = {  # matplotlib's type for it lists every parameter there is
    "svg.hashsalt": "amp_core",  # what identifiers are drawn from
    "svg.fonttype": "none",  # text stays text: searchable, and small
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "figure.constrained_layout.use": True,
}


def refuse_undrawable(folder: Path) -> None:
    """Raise a one-line ValueError if matplotlib is absent, or the folder can be none."""
    if not _has_matplotlib():
        raise ValueError("--plots needs matplotlib: pip install 'amp-gates[plots]', or leave --plots out")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"cannot draw into {str(folder)!r}: it is a file, expected a folder")
    if not folder.parent.is_dir():
        raise ValueError(f"cannot draw into {str(folder)!r}: there is no folder {str(folder.parent)!r}")


def draw(samples: Samples, folder: Path) -> tuple[Path, ...]:
    """Draw each figure that the samples have metrics for, and return the files."""
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it tells of building its cache, once
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(exist_ok=True)
    drawn: list[Path] = []
    with mpl.rc_context(STYLE):
        for name, (title, fill) in FIGURES.items():
            figure = Figure(figsize=(9.0, 4.2))
            fill(figure, samples.metrics)
            if figure.axes:
                figure.suptitle(f"{title} on {samples.device.name} ({samples.device.type})", fontsize=11)
                drawn.append(_save(figure, folder / f"{name}.svg"))
    return tuple(drawn)


def _step_time(figure: "Figure", metrics: Metrics) -> None:
    clocks = {"step_time_s": "step time, wall clock [ms]", "step_cpu_time_s": "step time, CPU clock [ms]"}
    shown = [name for name in clocks if name in metrics]
    for name, axes in zip(shown, _row(figure, len(shown)), strict=True):
        _points_by_arm(axes, {arm: [1e3 * value for value in values] for arm, values in metrics[name].arms.items()})
        axes.set(ylabel=clocks[name], ylim=(0, None))


def _memory(figure: "Figure", metrics: Metrics) -> None:
    shown = [name for name in MEMORY if name in metrics]
    if not shown:
        return
    (axes,) = _row(figure, 1)
    arms = list(dict.fromkeys(arm for name in shown for arm in metrics[name].arms))
    width = 0.8 / len(shown)
    for index, name in enumerate(shown):
        heights = {arm: statistics.median(values) / 2**20 for arm, values in metrics[name].arms.items()}
        places = [arms.index(arm) + (index - (len(shown) - 1) / 2) * width for arm in heights]
        colours = [_colour(arm) for arm in heights]
        bars = axes.bar(places, list(heights.values()), 0.9 * width, color=colours, alpha=0.55)
        for bar in bars:
            bar.set(hatch=HATCHES[index], edgecolor="white")
        axes.bar_label(bars, fmt="%.4g", fontsize=7)
        axes.bar([0], [0], color="grey", alpha=0.55, hatch=HATCHES[index], edgecolor="white", label=MEMORY[name])
    axes.set_xticks(range(len(arms)), arms)
    axes.set_ylabel("memory of a training step [MiB]")
    axes.legend(frameon=False)


def _quality(figure: "Figure", metrics: Metrics) -> None:
    if "val_loss" not in metrics:
        return
    arms = metrics["val_loss"].arms
    losses, differences = _row(figure, 2)
    for values in zip(*arms.values(), strict=True):
        losses.plot(range(len(arms)), values, color="grey", linewidth=0.6, zorder=1)  # one seed
    _points_by_arm(losses, arms, spread=0.0)
    losses.set_ylabel("validation loss [nat], a line a seed")
    baseline = arms[BASELINE]
    others = {
        arm: [1e3 * (value - base) for value, base in zip(values, baseline, strict=True)]
        for arm, values in arms.items()
        if arm != BASELINE
    }
    _points_by_arm(differences, others)
    differences.axhline(0.0, color="black", linewidth=0.8)
    differences.set_ylabel(f"validation loss minus {BASELINE}'s, same seed [0.001 nat]")


def _inference(figure: "Figure", metrics: Metrics) -> None:
    by_size = _by_number(metrics, "inference_latency_s_batch_")
    if not by_size:
        return
    for axes, percent in zip(_row(figure, len(PERCENTILES)), PERCENTILES, strict=True):
        _lines(axes, {size: {arm: [percentile(values, percent)] for arm, values in metric.arms.items()}
                      for size, metric in by_size.items()}, factor=1e3)  # fmt: skip
        axes.set(xlabel="batch size", ylabel=f"latency, p{percent} [ms]", ylim=(0, None))


def _scaling(figure: "Figure", metrics: Metrics) -> None:
    panels = [
        (prefix, x_label, y_label, factor)
        for metric, y_label, factor in SCALED
        for shape, x_label in (("batch", "batch size [sequences]"), ("context", "sequence length [tokens]"))
        if _by_number(metrics, prefix := f"scaling_{metric}_{shape}_")
    ]
    for axes, (prefix, x_label, y_label, factor) in zip(_row(figure, len(panels)), panels, strict=True):
        by_size = {size: metric.arms for size, metric in _by_number(metrics, prefix).items()}
        _lines(axes, by_size, factor=factor)
        axes.set(xlabel=x_label, ylabel=y_label, ylim=(0, None))


FIGURES: Mapping[str, tuple[str, Callable[["Figure", Metrics], None]]] = {
    "step_time": ("Training step", _step_time),
    "memory": ("Memory", _memory),
    "quality": ("Training quality", _quality),
    "inference": ("Inference", _inference),
    "scaling": ("Scaling", _scaling),
}


def _row(figure: "Figure", count: int) -> list["Axes"]:
    return [figure.add_subplot(1, count, 1 + index) for index in range(count)]


def _points_by_arm(axes: "Axes", arms: Mapping[str, Sequence[float]], spread: float = 0.25) -> None:
    """Draw every sample, from the first on the left to the last on the right, and the median with its interval."""
    for place, (arm, values) in enumerate(arms.items()):
        step = spread / max(1, len(values) - 1)
        places = [place - spread / 2 + step * index for index in range(len(values))]
        face = "none" if arm.endswith(BY_HAND) else _colour(arm)
        axes.scatter(places, values, s=14, marker=_marker(arm), facecolors=face, edgecolors=_colour(arm), alpha=0.6)
        if len(values) >= LEAST:
            middle = around_median(values)
            reach = [[middle.value - middle.low], [middle.high - middle.value]]
            axes.errorbar([place + 0.3], [middle.value], yerr=reach, fmt="_", color=_colour(arm), capsize=4)
    axes.set_xticks(range(len(arms)), [arm.replace(BY_HAND, "\nby hand") for arm in arms])
    axes.set_xlim(-0.5, len(arms) - 0.4)


def _lines(axes: "Axes", by_size: Mapping[int, Mapping[str, Sequence[float]]], *, factor: float) -> None:
    """Draw each arm's median over the sizes as a line through every sample."""
    for arm in dict.fromkeys(arm for arms in by_size.values() for arm in arms):
        sizes = [size for size, arms in by_size.items() if arm in arms]
        medians = [factor * statistics.median(by_size[size][arm]) for size in sizes]
        axes.plot(sizes, medians, marker=_marker(arm), markersize=4, color=_colour(arm), label=arm)
        for size in sizes:
            samples = [factor * value for value in by_size[size][arm]]
            axes.scatter([size] * len(samples), samples, s=6, color=_colour(arm), alpha=0.4)
    axes.set_xticks(list(by_size))
    axes.legend(frameon=False)


def _by_number(metrics: Metrics, prefix: str) -> dict[int, Metric]:
    found = {int(name.removeprefix(prefix)): metric for name, metric in metrics.items() if name.startswith(prefix)}
    return dict(sorted(found.items()))


def _has_matplotlib() -> bool:
    try:
        return importlib.util.find_spec("matplotlib") is not None
    except ValueError:  # find_spec's word for a module that sys.modules blocks
        return False


def _colour(arm: str) -> str:
    return COLOURS.get(arm.removesuffix(BY_HAND), "grey")


def _marker(arm: str) -> str:
    return MARKERS.get(arm.removesuffix(BY_HAND), "o")


def _save(figure: "Figure", path: Path) -> Path:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    write_text(path, text.getvalue())
    return path
