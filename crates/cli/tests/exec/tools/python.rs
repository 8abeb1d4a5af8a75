//! pip and pytest in a virtual environment, from wheels, without a network.

use super::judge::Bench;

const PROJECT: &str = "
cat > sums.py <<'END'
def total(numbers):
    return sum(numbers)
END
cat > test_sums.py <<'END'
import pathlib, sums
def test_total(): assert sums.total([1, 2, 3]) == 6
def test_files(tmp_path):
    (tmp_path / 'a').write_text('x'); (tmp_path / 'a').rename(tmp_path / 'b')
    assert [path.name for path in tmp_path.iterdir()] == ['b']
END
";

#[test]
fn pip_installs_wheels_and_pytest_runs() {
    let Some(tools) = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    for mut bench in Bench::most() {
        let wheels = bench.shown.home.path().join("wheels");
        std::fs::create_dir(&wheels).expect("a directory");
        for wheel in std::fs::read_dir(tools.join("wheels")).expect("scripts/test fetches wheels") {
            let wheel = wheel.expect("a wheel");
            std::fs::copy(wheel.path(), wheels.join(wheel.file_name())).expect("a copy");
        }
        let wheels = wheels.to_str().expect("a path of ours is text");
        bench.shown.home.ok(&["import", wheels, "/wheels"]);
        bench.step("/workspace", PROJECT);
        bench.step("/workspace", "python3 -m venv .venv");
        bench.stored_step(
            "/workspace",
            ".venv/bin/python -m pip install -q --disable-pip-version-check --no-index --find-links ../wheels pytest",
        );
        let tested = bench.stored_step("/workspace", ".venv/bin/pytest -q --basetemp=temp");
        assert!(tested.stdout.contains("2 passed"), "{}", tested.stdout);
        bench.still_there(
            "/workspace",
            &["source .venv/bin/activate; python -m pytest -q --basetemp=temp; pip check --disable-pip-version-check"],
        );
    }
}
