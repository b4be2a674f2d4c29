"""`cmake --install` into a directory, and an outside program built against it."""

import os
import pathlib
import re
import subprocess

import pytest

from server import clean_environment

HERE = pathlib.Path(__file__).resolve().parent
BUILD = os.environ["HAPAX_BUILD"]
CXX = os.environ["HAPAX_CXX"]
EXPECTED = "Hello, stranger\nFinalError: no\n"


def run(*command, **environment):
    done = subprocess.run(
        [str(word) for word in command],
        env={**clean_environment("/nonexistent"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def library_dir(prefix):
    (library,) = prefix.glob("lib/**/libhapax.so.0")
    return library.parent


def test_what_is_installed_is_stripped_and_small(prefix):
    # As the tests are compiled; a release, which is compiled for speed, is larger.
    sizes = {path: path.stat().st_size for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()}
    assert sum(sizes.values()) <= 15_000_000, sorted(((size, str(path)) for path, size in sizes.items()), reverse=True)[:10]
    for name in ("README.md", "docs/cpp.md", "docs/versioning.md", "examples/tour.cpp", "examples/shop/CMakeLists.txt"):
        assert prefix / "share" / "doc" / "hapax" / name in sizes


def test_an_outside_project_builds_by_find_package(prefix, tmp_path):
    run("cmake", "-S", HERE / "outside", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={CXX}")
    run("cmake", "--build", tmp_path)

    assert run(tmp_path / "outside") == EXPECTED
    assert run(tmp_path / "outside", f"sqlite:{tmp_path}/outside.db") == EXPECTED


def test_an_outside_program_builds_by_pkg_config(prefix, library_dir, tmp_path):
    flags = run("pkg-config", "--cflags", "--libs", "hapax", PKG_CONFIG_PATH=str(library_dir / "pkgconfig")).split()
    program = tmp_path / "outside"
    run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", HERE / "outside" / "main.cpp", "-o", program, *flags)

    assert run(program, LD_LIBRARY_PATH=str(library_dir)) == EXPECTED


def test_a_c_program_builds_by_find_package_and_by_pkg_config(prefix, library_dir, tmp_path):
    source = prefix / "share" / "doc" / "hapax" / "examples" / "capi.c"
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(c C CXX)\nfind_package(hapax REQUIRED)\n"
        f"add_executable(call {source})\ntarget_link_libraries(call hapax::capi)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "call", "memory:")

    flags = run("pkg-config", "--cflags", "--libs", "hapax_capi", PKG_CONFIG_PATH=str(library_dir / "pkgconfig")).split()
    run("cc", source, "-o", tmp_path / "called", *flags)
    run(tmp_path / "called", "memory:", LD_LIBRARY_PATH=str(library_dir))


def test_the_library_shows_its_public_names_and_nothing_else(library_dir):
    listed = run("nm", "-DC", "--defined-only", library_dir / "libhapax.so.0").splitlines()
    names = [line.split(maxsplit=2)[2] for line in listed]
    public = re.compile(
        r"hapax_[a-z_]+$|hapax::(open\(|new_id|App::|AnyHandle::|TaskContext::|Context::|AnyWorkflowHandle::|Saga::|Worker::|testing::"
        r"|detail::(Declared|Effect|Reading|TriggerOfEvents|Writing|replay)\b)"
        r"|typeinfo (name )?for hapax::(Error|TaskFailed|StepFailed|BadPayload|WorkflowFailed|FinalError|RetryLater|Snooze|Cancelled"
        r"|CancelRequested|detail::Mismatch)$"
    )

    assert any(name.startswith("hapax::open(") for name in names)
    assert "hapax_open" in names
    assert [name for name in names if not public.match(name)] == []


def test_the_library_of_wheels_shows_its_functions_and_nothing_else():
    listed = run("nm", "-D", "--defined-only", f"{BUILD}/libhapax_capi.so.1").splitlines()
    names = [line.split(maxsplit=2)[2] for line in listed]

    assert "hapax_open" in names
    assert [name for name in names if not name.startswith("hapax_")] == []


def test_every_header_stands_alone_and_brings_no_store_or_network_along(prefix, tmp_path):
    headers = sorted(path.relative_to(prefix / "include") for path in (prefix / "include").rglob("*.h"))
    assert pathlib.Path("hapax/app.h") in headers
    source = tmp_path / "include_one.cpp"
    for header in headers:
        source.write_text(f"#include <{header}>\n")
        preprocessed = run(CXX, "-std=c++20", f"-I{prefix}/include", "-M", source)
        assert not re.search(r"sqlite3\.h|libpq-fe\.h|curl/|boost/asio|boost/beast", preprocessed), header
    source.write_text("".join(f"#include <{header}>\n" for header in reversed(headers)))
    run(CXX, "-std=c++20", "-fsyntax-only", f"-I{prefix}/include", source)


def test_the_program_its_completions_and_the_service_are_there(prefix):
    assert re.match(r"hapax \d+\.\d+\.\d+", run(prefix / "bin" / "hapax", "--version"))
    for completion in ("bash-completion/completions/hapax", "zsh/vendor-completions/_hapax", "fish/vendor_completions.d/hapax.fish"):
        assert "submit" in (prefix / "share" / completion).read_text()
    unit = (prefix / "lib" / "systemd" / "system" / "hapax.service").read_text()
    assert "ExecStart=/usr/bin/hapax serve --config /etc/hapax/hapax.toml" in unit
