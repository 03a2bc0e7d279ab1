"""The recipe of LoRA trains the adapters of a Hugging Face model, and nothing else."""

from pathlib import Path

import pytest
import torch


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers so
def test_adapters_learn_are_saved_alone_and_the_base_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from examples import lora  # it loads transformers, which takes seconds: not when tests are collected

    lora.main(["--precision", "fp16", "--steps", "80", "--out", str(tmp_path)])
    before, after = (float(part.split()[0]) for part in capsys.readouterr().out.split("right: ")[1].split(", "))
    assert before < 0.2 < 0.8 < after
    base, tuned = lora.a_base().state_dict(), lora.read(tmp_path).state_dict()
    kept = {name.removeprefix("base_model.model.").replace(".base_layer", ""): value for name, value in tuned.items()}
    assert all(torch.equal(kept[name], value) for name, value in base.items())
    assert (tmp_path / "adapter_model.safetensors").stat().st_size < 200_000
