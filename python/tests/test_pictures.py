from made_up import made_up

from weir import pictures
from weir.surrogate import dataset


def test_a_report_of_a_sweep_is_one_page():
    page = pictures.sweep_report(dataset(made_up()), models=["paper-shallow"], splits=2)
    assert page.count("<svg") == 6 and "Left out" not in page
    assert "12.5 Gbps" in page and "http://" not in page.split("<svg")[0]
    assert "<script" not in page and "src=" not in page


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
