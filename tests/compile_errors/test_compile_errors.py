"""What the compiler says of a misuse of the library: a sentence that says what to do instead.

The includes of a program that misuses nothing are precompiled once, so that each case takes a moment.
"""

import os
import pathlib
import re
import subprocess

import pytest

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
CXX = os.environ["HAPAX_CXX"]
PROGRAM = """
#include "all.h"

struct Order { int id; };
BOOST_DESCRIBE_STRUCT(Order, (), (id))
struct Undescribed { int id; };
struct Shop { std::string charge(const Order&); };
std::string charge(const Order&);
int ping();
int process(hapax::Context&, const Order&);
inline constexpr hapax::Signal<Order> packed{"packed"};
inline constexpr hapax::Update<int, int> reserve_more{"reserve_more"};

void misuse(hapax::testing::TestApp& app, hapax::Context& ctx, hapax::TaskContext& context, sqlite3* db) {
  auto task = app.task_named<Order, std::string>("charge");
  auto workflow = app.workflow_named<Order, int>("process");
  (void)task; (void)workflow; (void)ctx; (void)packed; (void)reserve_more; (void)context; (void)db;
  %s
}
"""

MISUSES = {
    "app.submit(workflow, Order{1});": "hapax: a workflow is started, not submitted: workflow.start(workflow_id, input)",
    "app.submit(process, Order{1});": "hapax: this is a workflow, because it takes a hapax::Context&: start it with "
    "app.start(function, workflow_id, input)",
    'app.start(task, std::string("id"), Order{1});': "hapax: a task is submitted, not started: task.submit(input)",
    'app.task("t", &Shop::charge);': "hapax: a member function needs its object: declare a lambda that calls it, such as",
    'app.workflow("w", &Shop::charge);': "hapax: a member function needs its object: declare a lambda that calls it, such as",
    'app.task("t", process);': "hapax: this is a workflow, because it takes a hapax::Context&: declare it with app.workflow()",
    'app.task("t", [](auto n) { return n; });': "hapax: a task must be a function, or a callable with one operator() that is "
    "not a template (no auto parameters), so that its input type is known",
    'app.task("t", [](Order& order) { return order.id; });': "hapax: a task takes nothing, its input, a hapax::TaskContext&, or a "
    "hapax::TaskContext& and then its input. The input is taken by value or by const reference",
    'app.workflow("w", charge);': "hapax: a workflow takes a hapax::Context&, and then its input if it has one. The input is taken "
    "by value or by const reference",
    'app.workflow("w", [](auto& c) { (void)c; });': "hapax: a workflow must be a function, or a callable with one operator() "
    "that is not a template (no auto parameters), so that its input type is known",
    "app.workflow(workflow, [](hapax::Context&) {});": "hapax: this function does not take the input or does not return the result of "
    "the workflow",
    "app.submit(ping, 7);": "hapax: this function takes no input; submit it by its name",
    "app.mock(task, ping);": "hapax: this mock does not take the input or does not return the result of the task",
    "app.mock(charge, ping);": "hapax: this mock does not take the input or does not return the result of the task",
    "context.once_in(db, charge, 7);": "hapax: once_in calls its function with the given arguments, after the connection if it "
    "takes one",
    "ctx.on(reserve_more, [](auto n) { return n; });": "hapax: a handler of updates is a function, or a callable with one operator()",
    "ctx.on(reserve_more, [](int a, int b) { return a + b; });": "hapax: a handler of updates takes the question, or nothing",
    "ctx.on(reserve_more, [](const Order& order) { return order.id; });": "hapax: the function does not take the question of this "
    "update",
    'ctx.on(reserve_more, [](int) { return std::string("no"); });': "hapax: the function does not return the answer of this update",
    "app.task(task, ping);": "hapax: this function does not take the input or does not return the result of the task",
    "app.submit(charge, 7);": "hapax: the input that is submitted is not what the task's function takes",
    "ctx.run(charge, 7);": "hapax: the input that is given is not what the function takes",
    "ctx.run(ping, 7);": "hapax: this function takes no input, but is given one",
    "ctx.run(workflow, Order{1});": "hapax: this is a workflow: run it as a step with ctx.run_workflow()",
    "ctx.run(process, Order{1});": "hapax: this function does not fit here: a step that takes a hapax::Context& is a workflow and "
    "goes to ctx.run_workflow(), any other is a task and goes to ctx.run()",
    'app.submit("t", Undescribed{1});': "hapax: this type has no JSON. Describe the struct with BOOST_DESCRIBE_STRUCT(Type, (), "
    "(members…)), or use a type that hapax/json.h lists",
    'app.task("t", [](const Undescribed&) {});': "hapax: this type cannot be read from JSON. Describe the struct with "
    "BOOST_DESCRIBE_STRUCT(Type, (), (members…)), or use a type that hapax/json.h lists",
    "task.submit({1}).result<int>();": "hapax: this handle knows the type of its result: write handle.result()",
    'app.on_event<int>("t").start(workflow);': "hapax: a workflow that an event starts takes a hapax::EventOf<Data>, whose member "
    "data it is",
    'ctx.side_effect("s", [] {});': "hapax: a side effect is recorded by its result; return something",
}


@pytest.fixture(scope="module")
def compile_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "all.h").write_text("#include <hapax/hapax.h>\n#include <hapax/testing.h>\n#include <boost/describe.hpp>\n")
    subprocess.run([CXX, "-std=c++20", f"-I{INCLUDE}", "-x", "c++-header", "all.h"], cwd=folder, check=True)

    def compiled(statement):
        (folder / "program.cpp").write_text(PROGRAM % statement)
        command = [CXX, "-std=c++20", "-fsyntax-only", "-fno-diagnostics-show-caret", f"-I{INCLUDE}", "program.cpp"]
        if "clang" in CXX:
            command += ["-include", "all.h"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    return compiled


def test_what_is_right_compiles(compile_program):
    done = compile_program(
        'app.task("a", charge); app.submit(task, {1}); ctx.run(task, {1}); ctx.run_workflow(workflow, {1}); ctx.wait(packed);'
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("statement", MISUSES)
def test_a_misuse_is_said_in_a_sentence(compile_program, statement):
    done = compile_program(statement)

    assert done.returncode != 0
    assert MISUSES[statement] in done.stderr, done.stderr


def test_every_sentence_of_the_headers_has_a_misuse():
    def without_breaks(text):
        return re.sub(r'"\s*\n\s*"', "", text)

    said = set()
    for header in INCLUDE.rglob("*.h"):
        said |= set(re.findall(r'"(hapax: [^"]*)"', without_breaks(header.read_text())))
    assert len(said) > 20
    assert [sentence for sentence in said if not any(sentence.startswith(each) for each in MISUSES.values())] == []


def test_the_header_alone_includes_nothing_of_boost():
    """Boost.JSON took a third of the time to compile it."""
    listed = subprocess.run(
        [CXX, "-std=c++20", f"-I{INCLUDE}", "-M", "-x", "c++", "-"],
        input="#include <hapax/hapax.h>\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "hapax/hapax.h" in listed
    assert "boost/" not in listed
