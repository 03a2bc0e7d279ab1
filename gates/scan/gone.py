"""Code rules that there were once, and what answers in their place."""

INSTEAD = {
    "the recorder sees it (`training_steps`)": (
        "amp-bf16-scaler amp-forward-outside-autocast amp-guard-inverted amp-half-parameters amp-manual-zero- "
        "grad amp-needs-scaler amp-plain-backward amp-plain-clip amp-scheduler-in-microstep amp-unscale-each- "
        "call amp-unused-scaler amp-update-without-step amp-zero-grad-in-microstep"
    ),
    "the gate times the arms itself (`arms`)": (
        "bench-arms-different-seeds bench-comparison-wrong-way bench-missing-abs bench-peak-not-reset bench- "
        "ratio-upside-down bench-timing-without-sync"
    ),
    "a test of the evaluation shows it": "eval-mode-left-on eval-on-training-data eval-without-eval-mode",
    "the leak probe sees it (`leaks`)": "leak-graph-in-list",
    "the hot path counts it (`hot_paths`)": "perf-list-stack-to-device perf-loader-options",
    "a test or an entry point that calls it shows it": "returned-keys",
    "ruff finds it (BLE001, S110), as SARIF": "swallowed-exception",
}
GONE = {name: answer for answer, names in INSTEAD.items() for name in names.split()}
