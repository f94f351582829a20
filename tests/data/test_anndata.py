"""AnnData in and out: obs, obsm and genes as columns; paths as cells."""

import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from in_bins import rows_in_bins
from privtraj.base.errors import InputError
from privtraj.columns.kinds import Category, Date, Integer, Number
from privtraj.data import arrow, tables
from privtraj.data.dialect import TEXT
from privtraj.data.snapshots import Snapshots
from privtraj.model.paths import Paths

anndata = pytest.importorskip("anndata", reason="AnnData needs pip install 'privtraj[anndata]'")
pd = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")

N = 30
RNG = np.random.default_rng(0)
DAYS = RNG.choice([0.0, 2.5, 7.0], N)
PCA = RNG.normal(size=(N, 3))
GENES = RNG.poisson(2, (N, 4)).astype(np.float32)


def cells(matrix=np.asarray, **obs):
    """An AnnData with a time, a categorical donor, coordinates and four genes."""
    donors = pd.Categorical([f"donor {k % 3}" for k in range(N)])
    frame = pd.DataFrame({"day": DAYS, "donor": donors} | obs)
    frame.index = [f"cell{k}" for k in range(N)]
    var = pd.DataFrame(index=["Sox2", "gene.2", "naïve one", "X-0"])
    frame_like = pd.DataFrame(PCA[:, :2], index=frame.index, columns=["a", "b"])
    obsm = {"X_pca": PCA, "X_umap": sparse.csr_matrix(PCA[:, :2]), "named": frame_like}
    return anndata.AnnData(matrix(GENES), obs=frame, var=var, obsm=obsm)


@pytest.fixture(params=["object", "file"])
def given(request, tmp_path):
    """Function that gives an AnnData as it is, or as a file."""

    def give(data):
        if request.param == "object":
            return data
        data.write_h5ad(tmp_path / "cells.h5ad")
        return tmp_path / "cells.h5ad"

    return give


def column(source, name):
    return arrow.numbers(tables.read_columns(source, [name]).column(name), name)


def test_obs_and_obsm_by_name(given):
    source = given(cells())
    np.testing.assert_array_equal(column(source, "day"), DAYS)
    for k in range(3):
        np.testing.assert_array_equal(column(source, f"X_pca-{k}"), PCA[:, k])
    np.testing.assert_array_equal(column(source, "X_umap-1"), PCA[:, 1])
    np.testing.assert_array_equal(column(source, "named-1"), PCA[:, 1])
    donors = tables.read_columns(source, ["donor"], {"donor": TEXT}).column("donor").to_pylist()
    assert donors == [f"donor {k % 3}" for k in range(N)]
    with pytest.raises(InputError) as refused:
        tables.read_columns(source, ["none"])
    names = ["day", "donor", "X_pca-0", "X_pca-1", "X_pca-2", "X_umap-0", "X_umap-1"]
    assert set(re.findall("'(.*?)'", str(refused.value))) == {"none", *names, "named-0", "named-1"}


@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_genes_dense_and_sparse(matrix, given):
    source = given(cells(matrix))
    for k, gene in enumerate(["Sox2", "gene.2", "naïve one", "X-0"]):
        np.testing.assert_array_equal(column(source, gene), GENES[:, k])


def test_snapshots_of_cells(given):
    kwargs = {"time": "day", "bounds": {"X_pca-0": (-3, 3), "Sox2": (0, 9)}, "bins": [0, 2.5, 7]}
    found = Snapshots.from_table(given(cells()), **kwargs)
    table = pa.table({"day": DAYS, "X_pca-0": PCA[:, 0], "Sox2": GENES[:, 0]})
    expected = Snapshots.from_table(table, **kwargs)
    np.testing.assert_array_equal(rows_in_bins(found).points, rows_in_bins(expected).points)
    np.testing.assert_array_equal(rows_in_bins(found).slabs, rows_in_bins(expected).slabs)


def test_obs_of_every_kind_beside_coordinates(given):
    """Categories, truths, days and gaps of obs, with coordinates of obsm and genes."""
    kinds = {
        "donor": pd.CategoricalDtype([f"donor {k}" for k in range(3)]),
        "X_pca-0": (-3, 3),
        "treated": bool,
        "batch": Category(["2024-01-31", "2024-02-01"], missing=True),
        "born": Date("2020-01-01", "2024-12-31"),
        "size": Number(0, 1, missing=True),
        "Sox2": Integer(0, 9),
    }
    obs = {
        "treated": RNG.uniform(size=N) < 0.5,
        "batch": pd.Categorical(np.resize(["2024-01-31", "2024-02-01", None], N)),
        "born": [f"2022-03-{1 + k % 28:02}" for k in range(N)],
        "size": np.where(np.arange(N) % 4, 0.25, np.nan),
    }
    data = cells(**obs)
    found = Snapshots.from_table(given(data), time="day", columns=kinds, bins=[0, 2.5, 7])
    table = {"day": DAYS, "donor": data.obs["donor"], **obs}
    table |= {"X_pca-0": PCA[:, 0], "Sox2": GENES[:, 0]}
    expected = Snapshots.from_table(table, time="day", columns=kinds, bins=[0, 2.5, 7])
    np.testing.assert_array_equal(found._rows.points, expected._rows.points)
    assert found._digest == expected._digest
    assert found.features[-1] == "size missing"
    np.testing.assert_array_equal(found._rows.points[:3, 3], np.array([1, 3, 5], "f") / 6)


def test_times_as_categories_and_dates(given):
    numbers = pd.Categorical(DAYS)
    dates = np.datetime64("2024-01-01") + DAYS.astype("timedelta64[D]")
    texts = pd.Categorical(dates.astype(str))
    source = given(cells(number=numbers, date=texts, zone=[f"{d}T02:00+02:00" for d in dates]))
    np.testing.assert_array_equal(column(source, "number"), DAYS)
    for name in ("date", "zone"):
        table = tables.read_columns(source, [name])
        seconds, dated = arrow.moments(table.column(name), name)
        assert dated
        np.testing.assert_array_equal(seconds, dates.astype("datetime64[s]").astype(float))


def test_a_person_that_looks_like_a_date_stays_text(given):
    source = given(cells(who=["2024-01-31"] * N))
    table = tables.read_columns(source, ["who"], {"who": TEXT})
    assert table.column("who").to_pylist() == ["2024-01-31"] * N


def test_words_for_times_are_explained(given):
    source = given(cells(stage=pd.Categorical([f"day {day:g}" for day in DAYS])))
    with pytest.raises(InputError, match=f"holds text, and {N} of its {N} rows") as error:
        Snapshots.from_table(source, time="stage", bounds={"X_pca-0": (-3, 3)}, bins=[0, 7])
    assert "day 2.5" not in str(error.value)


MISTAKES = {
    "absent": ("Sox3", "no column 'Sox3' in obs or obsm and no gene"),
    "coordinate too far": ("X_pca-3", "no column 'X_pca-3'"),
    "both obs and gene": ("both", "more than one column named 'both'"),
    "gene twice": ("twice", "more than one column named 'twice'"),
}


@pytest.mark.parametrize(("name", "message"), MISTAKES.values(), ids=MISTAKES)
def test_names_that_are_not_there_or_there_twice(name, message):
    data = cells(both=DAYS)
    data.var_names = ["both", "twice", "twice", "Sox2"]
    with pytest.raises(InputError, match=message):
        tables.read_columns(data, [name])


def test_genes_without_a_matrix_are_explained(given):
    data = cells()
    data.X = None
    with pytest.raises(InputError, match="no values of the genes 'Sox2', as X is empty"):
        tables.read_columns(given(data), ["day", "Sox2"])


def test_names_of_records_are_not_quoted_by_warnings(tmp_path, recwarn):
    data = cells()
    data.obs_names = ["SECRET"] * N
    data.write_h5ad(tmp_path / "cells.h5ad")
    recwarn.clear()
    assert len(tables.read_columns(tmp_path / "cells.h5ad", ["day", "Sox2"])) == N
    assert not [warning for warning in recwarn if "anndata" in str(warning.filename)]


def test_a_broken_file_is_explained(tmp_path):
    path = tmp_path / "cells.h5ad"
    path.write_text("123.4567")
    with pytest.raises(InputError, match="cannot be read as h5ad") as error:
        tables.read_columns(path, ["day"])
    assert error.value.__suppress_context__


# Out ----------------------------------------------------------------------------------------------


def paths(features, datetime=False, n=4, q=3):
    values = np.random.default_rng(1).normal(size=(n, q, len(features)))
    times = np.array([1.7e9, 1.7e9 + 0.123456, 1.8e9][:q]) if datetime else np.arange(q) / 3
    return Paths(values, times, tuple(features), "day", datetime)


def test_coordinates_go_back_where_they_came_from(tmp_path):
    drawn = paths(["X_pca-1", "X_pca-0", "Sox2", "X_umap-1"])
    data = drawn.to_anndata()
    flat = drawn.values.reshape(-1, 4)
    assert set(data.obsm) == {"X_pca", "X_features"}
    np.testing.assert_array_equal(data.obsm["X_pca"], flat[:, [1, 0]])
    np.testing.assert_array_equal(data.obsm["X_features"], flat[:, [2, 3]])
    assert data.uns["privtraj_features"]["X_features"] == ["Sox2", "X_umap-1"]
    assert data.obs_names.is_unique
    assert list(data.obs.columns) == ["path", "day"]
    np.testing.assert_array_equal(data.obs["path"], np.repeat(np.arange(4), 3))
    np.testing.assert_array_equal(data.obs["day"], np.tile(drawn.times, 4))


def test_a_basis_takes_all_features():
    drawn = paths(["größe", "a b", "X_pca-0"])
    data = drawn.to_anndata(basis="X_mine")
    assert set(data.obsm) == {"X_mine"}
    np.testing.assert_array_equal(data.obsm["X_mine"], drawn.values.reshape(-1, 3))


@pytest.mark.parametrize("datetime", [False, True])
def test_a_file_reads_back_with_the_same_values_and_times(datetime, tmp_path):
    drawn = paths(["X_pca-0", "X_pca-1", "a.b ü"], datetime)
    drawn.save(tmp_path / "paths.h5ad")
    assert [file.name for file in tmp_path.iterdir()] == ["paths.h5ad"]
    data = anndata.read_h5ad(tmp_path / "paths.h5ad")
    flat = drawn.values.reshape(-1, 3)
    np.testing.assert_array_equal(data.obsm["X_pca"], flat[:, :2])
    np.testing.assert_array_equal(data.obsm["X_features"], flat[:, 2:])
    assert list(data.uns["privtraj_features"]["X_features"]) == ["a.b ü"]
    times = pd.to_datetime(data.obs["day"].astype(str)) if datetime else data.obs["day"]
    np.testing.assert_array_equal(times.to_numpy(drawn.times.dtype), np.tile(drawn.times, 4))
    # and by the door through which it would come in again
    table = tables.read_columns(tmp_path / "paths.h5ad", ["day", "X_pca-1", "X_features-0"])
    seconds, dated = arrow.moments(table.column("day"), "day")
    assert dated == datetime
    np.testing.assert_allclose(seconds, np.tile(drawn.numeric_times, 4), rtol=1e-15)
    np.testing.assert_array_equal(arrow.numbers(table.column("X_pca-1"), "x"), flat[:, 1])


@pytest.mark.parametrize("name", ["time (h/d)", "_index", "path"])
def test_names_that_the_file_cannot_have_are_changed_there(name, tmp_path):
    values = np.ones((2, 2, 3))
    drawn = Paths(values, np.arange(2.0), ("m/s-0", "m/s-1", "a/b"), name, False)
    drawn.save(tmp_path / "paths.h5ad")
    data = anndata.read_h5ad(tmp_path / "paths.h5ad")
    assert list(data.obs.iloc[:, 1]) == [0, 1, 0, 1]
    assert data.obsm["X_features"].shape == (4, 3)


def test_dates_stay_dates_in_memory():
    drawn = paths(["x"], datetime=True)
    assert drawn.to_anndata().obs["day"].dtype == np.dtype("datetime64[us]")


def test_without_anndata_one_sentence_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['anndata'] = None\n"
        "from privtraj import cli\n"
        "sys.exit(cli.main(['init', 'cells.h5ad']))"
    )
    (tmp_path / "cells.h5ad").write_text("")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'privtraj[anndata]'" in done.stderr
    assert done.stderr.count("\n") == 1
