"""The .deb in a fresh root: its declared dependencies are enough to install it, serve, and build a program against it.

Needs root, debootstrap and the Debian mirror of this system.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
APT = ["apt-get", "-q", "-y", "--no-install-recommends", "-o", "APT::Sandbox::User=root"]


# The program in the root gets none of the tests' own settings.
INSIDE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}


def run(*command, environment=None):
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def debian_mirror():
    """The mirror that this system's apt fetches Debian from."""
    for line in run("apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN) $(LABEL)").splitlines():
        site, _, rest = line.partition(" ")
        if rest == "Debian Debian":
            return site
    pytest.fail("apt knows no Debian mirror: add one to its sources, then run `apt-get update`")


@pytest.fixture(scope="module")
def package():
    printed = run(ROOT / "dev", "package")
    return ROOT / printed.splitlines()[-1]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A separate minimal Debian 12. Services cannot run in it, so none is started."""
    root = tmp_path_factory.mktemp("debian")
    run("debootstrap", "--variant=minbase", "bookworm", root, debian_mirror())
    (root / "usr" / "sbin" / "policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (root / "usr" / "sbin" / "policy-rc.d").chmod(0o755)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    for settings in pathlib.Path("/etc/apt/apt.conf.d").glob("*proxy*"):
        shutil.copy(settings, root / "etc" / "apt" / "apt.conf.d" / settings.name)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def inside(root, package):
    """Runs a command in the root, in which the package is installed."""
    shutil.copy(package, root / "hapax.deb")

    def run_inside(*command):
        return run("chroot", root, *command, environment=INSIDE)

    run_inside(*APT, "update")
    run_inside(*APT, "install", "/hapax.deb")
    return run_inside


def test_the_package_is_called_as_debian_calls_packages(package):
    assert re.fullmatch(r"hapax_\d+\.\d+\.\d+_amd64\.deb", package.name)
    fields = run("dpkg-deb", "--field", package)
    for needed in ("libsqlite3-0", "libcurl4", "libboost-json1.81.0", "libssl3"):
        assert needed in fields, fields


def test_the_symbols_are_a_package_of_their_own(package):
    (symbols,) = package.parent.glob("hapax-dbgsym_*.deb")
    listed = run("dpkg-deb", "-c", symbols)
    assert "./usr/lib/debug/usr/bin/hapax.debug" in listed
    assert re.search(r"\./usr/lib/debug/usr/lib/[^/]+/libhapax\.so\.\d+\.\d+\.\d+\.debug", listed), listed
    assert ".debug" not in run("dpkg-deb", "-c", package)


def test_the_program_runs_with_what_the_package_depends_on(inside):
    assert re.match(r"hapax \d+\.\d+\.\d+", inside("hapax", "--version"))
    assert inside("dpkg-query", "-W", "-f", "${Conffiles}", "hapax").split()[0] == "/etc/hapax/hapax.toml"


def test_only_the_service_can_read_the_configuration(inside, root):
    assert inside("stat", "-c", "%a %U:%G", "/etc/hapax/hapax.toml").split() == ["640", "root:hapax"]
    unit = (root / "lib" / "systemd" / "system" / "hapax.service").read_text()
    assert "User=hapax\n" in unit and "UMask=0077\n" in unit and "ExecReload=" in unit
    assert inside("runuser", "-u", "hapax", "--", "cat", "/etc/hapax/hapax.toml").startswith("#")
    denied = subprocess.run(
        ["chroot", root, "runuser", "-u", "nobody", "--", "cat", "/etc/hapax/hapax.toml"],
        env=INSIDE, capture_output=True, text=True, check=False,
    )
    assert denied.returncode != 0 and "Permission denied" in denied.stderr


def test_a_task_is_submitted_to_the_server_of_the_package(inside, root):
    inside(*APT, "install", "curl")
    inside("mkdir", "-p", "/var/lib/hapax")
    server = subprocess.Popen(
        ["chroot", root, "hapax", "serve", "--config", "/etc/hapax/hapax.toml", "--listen", "127.0.0.1:0"],
        env=INSIDE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = re.search(r"http://\S+", server.stdout.readline()).group()
        task = '{"type":"greet","idempotency_key":"k"}'
        statuses = [
            inside("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--json", task, f"{address}/v1/tasks")
            for _ in range(2)
        ]
        assert statuses == ["201", "200"]
    finally:
        server.terminate()
        assert server.wait(20) == 0
        server.stdout.close()
    assert (root / "var" / "lib" / "hapax" / "hapax.db").exists()


def test_a_program_is_built_against_the_package(inside, root):
    inside(*APT, "install", "g++", "pkg-config", "libboost1.81-dev", "libboost-json1.81-dev")
    shutil.copy(HERE / "outside" / "main.cpp", root / "outside.cpp")
    flags = inside("pkg-config", "--cflags", "--libs", "hapax").split()
    inside("g++", "-std=c++20", "/outside.cpp", "-o", "/outside", *flags)
    assert inside("/outside") == "Hello, stranger\nFinalError: no\n"


def test_removing_the_package_keeps_its_data(inside, root):
    inside(*APT, "purge", "hapax")
    assert not (root / "usr" / "bin" / "hapax").exists()
    assert not (root / "etc" / "hapax" / "hapax.toml").exists()
    assert (root / "var" / "lib" / "hapax" / "hapax.db").exists()
