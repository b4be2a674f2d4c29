"""Generates clients from openapi.json with six generators; each submits, claims and finishes a task on a real server.

Run by `./dev openapi-clients [NAME…]`. Tools, generated code and programs go to build/openapi-clients and nowhere else.
Needs Python 3.9 with venv, Node.js 18, Java 11 and Go, and the network for missing tools."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DOCUMENT = ROOT / "src" / "http" / "openapi.json"
SCRATCH = ROOT / "build" / "openapi-clients"
TOOLS = SCRATCH / "tools"

MAVEN = "https://repo1.maven.org/maven2"
GENERATOR = "org/openapitools/openapi-generator-cli/7.25.0/openapi-generator-cli-7.25.0.jar"
JARS = [
    "com/fasterxml/jackson/core/jackson-annotations/2.17.2/jackson-annotations-2.17.2.jar",
    "com/fasterxml/jackson/core/jackson-core/2.17.2/jackson-core-2.17.2.jar",
    "com/fasterxml/jackson/core/jackson-databind/2.17.2/jackson-databind-2.17.2.jar",
    "com/fasterxml/jackson/datatype/jackson-datatype-jsr310/2.17.2/jackson-datatype-jsr310-2.17.2.jar",
    "com/google/code/findbugs/jsr305/3.0.2/jsr305-3.0.2.jar",
    "jakarta/annotation/jakarta.annotation-api/1.3.5/jakarta.annotation-api-1.3.5.jar",
    "org/openapitools/jackson-databind-nullable/0.2.6/jackson-databind-nullable-0.2.6.jar",
]
PYTHON_PACKAGES = [
    "openapi-python-client==0.29.1",
    "pydantic==2.14.3",
    "python-dateutil==2.9.0.post0",
    "ruff==0.17.5",
    "urllib3==2.8.0",
]
NODE_PACKAGES = [
    "@types/node@20.19.0",
    "openapi-fetch@0.17.0",
    "openapi-typescript@7.13.0",
    "typescript@5.9.3",
]
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"


class Failed(Exception):
    """A command that failed, with its output."""


def run(*command, cwd=SCRATCH, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))[:400]}\n{done.stdout[-4000:]}")


def jar(path):
    """A file of Maven Central, downloaded once."""
    target = TOOLS / pathlib.PurePosixPath(path).name
    if not target.exists():
        partial = target.with_suffix(".partial")
        urllib.request.urlretrieve(f"{MAVEN}/{path}", partial)
        partial.rename(target)
    return target


def once(name, versions, install):
    """Installs unless these versions are installed."""
    stamp, wanted = TOOLS / f".{name}", "\n".join(versions)
    if not stamp.exists() or stamp.read_text() != wanted:
        install()
        stamp.write_text(wanted)


def python():
    environment = TOOLS / "python"

    def install():
        run("/usr/bin/python3", "-m", "venv", "--clear", environment)
        run(environment / "bin" / "pip", "install", "--quiet", *PYTHON_PACKAGES)

    once("python", PYTHON_PACKAGES, install)
    return environment / "bin"


def node():
    folder = TOOLS / "node"

    def install():
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *NODE_PACKAGES, cwd=folder)

    once("node", NODE_PACKAGES, install)
    return folder / "node_modules"


def generate(language, target, *options):
    """OpenAPI Generator."""
    shutil.rmtree(target, ignore_errors=True)
    run("java", "-jar", jar(GENERATOR), "generate", "-i", DOCUMENT, "-g", language, "-o", target, *options)


def compile_typescript(folder, program):
    """Type-checks everything that was generated and the program, strictly, and writes JavaScript beside them."""
    modules = folder / "node_modules"
    if not modules.is_symlink():
        modules.symlink_to(node())
    shutil.copy(HERE / "clients" / program, folder / program)
    strict = ["--strict", "--target", "es2022", "--module", "commonjs", "--moduleResolution", "node", "--esModuleInterop"]
    run(modules / ".bin" / "tsc", *strict, "--lib", "es2022,dom,dom.iterable", program, cwd=folder)
    return folder / pathlib.Path(program).with_suffix(".js")


def generator_python(folder, url):
    bin_folder = python()
    generate("python", folder / "client")
    run(bin_folder / "python", "-m", "compileall", "-q", folder / "client" / "openapi_client")
    run(bin_folder / "python", HERE / "clients" / "generator_python.py", url, PYTHONPATH=folder / "client")


def generator_java(folder, url):
    jars = [jar(path) for path in JARS]
    generate("java", folder / "client", "--library", "native")
    sources = sorted((folder / "client" / "src" / "main" / "java").rglob("*.java"))
    program = HERE / "clients" / "GeneratorJava.java"
    class_path = os.pathsep.join(map(str, jars))
    run("javac", "-nowarn", "-d", folder / "classes", "-cp", class_path, *sources, program)
    run("java", "-cp", f"{folder / 'classes'}{os.pathsep}{class_path}", "GeneratorJava", url)


def generator_typescript_fetch(folder, url):
    generate("typescript-fetch", folder / "client")
    run("node", compile_typescript(folder, "generator_typescript_fetch.ts"), url)


def openapi_python_client(folder, url):
    bin_folder = python()
    search_path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"  # it formats by ruff
    generator = bin_folder / "openapi-python-client"
    options = ["--path", DOCUMENT, "--output-path", folder / "client", "--overwrite", "--fail-on-warning"]
    run(generator, "generate", *options, PATH=search_path)
    run(bin_folder / "python", "-m", "compileall", "-q", folder / "client" / "hapax_client")
    run(bin_folder / "python", HERE / "clients" / "openapi_python_client.py", url, PYTHONPATH=folder / "client")


def openapi_typescript(folder, url):
    run(node() / ".bin" / "openapi-typescript", DOCUMENT, "-o", folder / "hapax.d.ts")
    run("node", compile_typescript(folder, "openapi_typescript.ts"), url)


def oapi_codegen(folder, url):
    bin_folder = TOOLS / "go"
    once("go", [OAPI_CODEGEN], lambda: run("go", "install", OAPI_CODEGEN, GOBIN=bin_folder))
    (folder / "hapax").mkdir(exist_ok=True)
    options = ["-package", "hapax", "-generate", "types,client", "-o", folder / "hapax" / "hapax.go"]
    run(bin_folder / "oapi-codegen", *options, DOCUMENT)
    shutil.copy(HERE / "clients" / "oapi_codegen.go", folder / "main.go")
    if not (folder / "go.mod").exists():
        run("go", "mod", "init", "example.org/hapax-client", cwd=folder)
    run("go", "mod", "tidy", cwd=folder)
    run("go", "vet", "./...", cwd=folder)
    run("go", "run", ".", url, cwd=folder)


CLIENTS = [
    generator_python,
    generator_java,
    generator_typescript_fetch,
    openapi_python_client,
    openapi_typescript,
    oapi_codegen,
]


def start_server(directory):
    os.environ.setdefault("HAPAX_BINARY", str(ROOT / "build" / "release" / "hapax"))
    sys.path.insert(0, str(ROOT / "tests" / "e2e"))
    from server import Server  # reads HAPAX_BINARY

    return Server(directory).start()


def main():
    names = {client.__name__.replace("_", "-"): client for client in CLIENTS}
    parser = argparse.ArgumentParser(prog="./dev openapi-clients", description=__doc__.splitlines()[0])
    parser.add_argument("client", nargs="*", help=f"of {', '.join(names)}; all of them unless named")
    wanted = parser.parse_args().client or list(names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"there is no client {unknown[0]}; it is one of {', '.join(names)}")

    TOOLS.mkdir(parents=True, exist_ok=True)
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        server = start_server(directory)
        try:
            for name in wanted:
                folder = SCRATCH / name
                folder.mkdir(exist_ok=True)
                try:
                    names[name](folder, f"http://127.0.0.1:{server.port}")
                    print(f"{name}: submitted, claimed and finished a task", flush=True)
                except (Failed, OSError) as error:
                    failed.append(name)
                    print(f"{name}: FAILED\n{error}", flush=True)
                except Exception:
                    failed.append(name)
                    traceback.print_exc()
        finally:
            server.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
