import pytest
from made_up import made_up

from weir import pictures
from weir.errors import DatasetError
from weir.surrogate import dataset


def test_a_report_of_a_sweep_is_one_page():
    page = pictures.sweep_report(dataset(made_up()), models=["paper-shallow"], splits=2)
    assert page.count("<svg") == 6 and "Left out" not in page
    assert "12.5 Gbps" in page and "http://" not in page.split("<svg")[0]
    assert "<script" not in page and "src=" not in page


def test_several_seeds_have_intervals():
    import polars as pl

    from weir.intervals import over_seeds

    def few(seed: int) -> pl.DataFrame:
        made = made_up(seed).with_columns(seed=pl.lit(seed, pl.Int64))
        return made.filter(pl.col("line_rate_bps") == 5_000_000_000, pl.col("red_max_bytes") < 1_000_000)

    runs = dataset(pl.concat([few(1), few(2), few(3)]))
    page = pictures.sweep_report(runs, models=["paper-shallow"], splits=1)
    assert "Means over 3 seeds, ± half of the 95 % confidence interval" in page and "± share" in page
    assert "means of 3 seeds, at most" in page
    means = pictures.means_over_seeds(runs, ["share"])
    assert means.height == few(1).height and (means["± share"] > 0).all()
    with pytest.raises(DatasetError, match="one seed"):
        pictures.means_over_seeds(dataset(few(1)))

    frame = pl.DataFrame({"load": [1, 1, 1, 1], "seed": [1, 1, 2, 3], "value": [8.0, 10.0, 10.0, 11.0]})
    found = over_seeds(frame, ["load"], "value")
    # The two rows of seed 1 are one repetition: 9, 10 and 11, whose standard error is 1 / sqrt(3).
    assert found["mean"].to_list() == [10.0] and found["seeds"].to_list() == [3]
    assert abs(found["half_width"][0] - 4.303 / 3**0.5) < 1e-3
    assert over_seeds(frame.filter(pl.col("seed") == 1), ["load"], "value")["half_width"].to_list() == [None]


def test_omitted_figures_are_noted():
    import polars as pl

    page = pictures.sweep_report(dataset(made_up().filter(pl.col("red_min_bytes") < pl.col("red_max_bytes"))), models=["paper-shallow"], splits=1)
    assert page.count("Left out") == 3


def test_the_command_line_writes_the_page_or_reports_the_error(tmp_path, capsys):
    made_up().head(300).write_parquet(tmp_path / "runs.parquet")
    page = tmp_path / "page.html"
    assert pictures.main([str(tmp_path), str(page)]) == 0
    assert "A sweep of 300 runs" in page.read_text(encoding="utf-8")
    assert pictures.main([str(tmp_path / "nothing"), str(page)]) == 1
    assert "nothing" in capsys.readouterr().err
