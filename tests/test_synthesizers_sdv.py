"""The adapter for SDV: against SDV itself where it is installed, and against a stand-in everywhere."""

from __future__ import annotations

import datetime as dt
import sys
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark.simulate import registry
from rapid_spark.synthesizers import SdvSynthesizer, Synthesizer


def _frame() -> pd.DataFrame:
    frame = registry(200, 5, seed=1)
    frame["children"] = pd.array([1, None] * 100, dtype="Int64")  # type: ignore[call-overload]
    frame["born"] = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(200)]
    frame["smokes"] = [True, False] * 100
    frame["code"] = ["01", "02"] * 100
    return frame


class _Metadata:
    @staticmethod
    def load_from_dict(metadata: dict[str, Any]) -> dict[str, Any]:
        return metadata


class _ShuffleSynthesizer:
    """As the classes of SDV 2: a dict of one table in and out, an own random state that goes on."""

    def __init__(self, metadata: dict[str, Any], width: int = 1) -> None:
        self.metadata = metadata
        self.state = np.random.RandomState(0)

    def fit(self, data: dict[str, pd.DataFrame]) -> None:
        if data["table"]["age"].max() > 1000:
            raise RuntimeError("age 1234 is too old")
        self.data = data["table"]

    def reset_sampling(self) -> None:
        self.state = np.random.RandomState(0)

    def _set_random_state(self, seed: int) -> None:
        self.state = np.random.RandomState(seed)

    def sample(self, num_rows: int) -> dict[str, pd.DataFrame]:
        return {"table": self.data.sample(num_rows, replace=True, random_state=self.state).reset_index(drop=True)}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {name: types.ModuleType(name) for name in ("sdv", "sdv.single_table", "sdv.metadata")}
    modules["sdv.single_table"].ShuffleSynthesizer = _ShuffleSynthesizer  # type: ignore[attr-defined]
    modules["sdv.metadata"].Metadata = _Metadata  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def _check(synthesizer: Synthesizer) -> None:
    original = _frame()
    before = original.copy(deep=True)
    synthesizer.fit(original)
    first, again, other = (synthesizer.sample(150, seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(original, before)
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other) and len(first) == 150
    assert list(first) == list(original) and (first.dtypes == original.dtypes).all()
    assert set(first["code"]) <= {"01", "02"} and 0.2 < first["children"].isna().mean() < 0.8
    assert isinstance(first["born"][0], dt.date)


def test_columns_are_declared_as_what_they_hold_and_come_back_in_their_types(stand_in: None) -> None:
    synthesizer = SdvSynthesizer("Shuffle", width=2)
    _check(synthesizer)
    columns = synthesizer._fitted.metadata["tables"]["table"]["columns"]
    assert {name: c["sdtype"] for name, c in columns.items()} == {
        "gender": "categorical", "age": "numerical", "education": "categorical", "income": "numerical",
        "health_score": "numerical", "disease_status": "categorical", "children": "numerical", "born": "datetime",
        "smokes": "boolean", "code": "categorical",
    }


def test_faults_are_messages_without_values(stand_in: None) -> None:
    with pytest.raises(ValueError, match="no single-table generator 'ShufleSynthesizer'. Did you mean 'Shuffle'"):
        SdvSynthesizer("Shufle")
    with pytest.raises(ValueError, match="widht"):
        SdvSynthesizer("Shuffle", widht=2).fit(_frame())
    with pytest.raises(ValueError, match="learned nothing"):
        SdvSynthesizer("Shuffle").sample(3, 1)
    frame = _frame()
    frame.loc[0, "age"] = 1234.0
    with pytest.raises(ValueError, match="RuntimeError") as caught:
        SdvSynthesizer("Shuffle").fit(frame)
    assert "1234" not in str(caught.value)


def test_sdv_that_is_not_installed_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sdv.single_table", None)
    with pytest.raises(ValueError, match=r"pip install 'rapid-spark\[sdv\]'"):
        SdvSynthesizer()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_sdv_itself() -> None:
    pytest.importorskip("sdv.single_table", reason="SDV, an optional extra, is not installed")
    _check(SdvSynthesizer("GaussianCopula"))
