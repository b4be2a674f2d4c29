#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iterator>
#include <ostream>

#include "cli/command.h"
#include "cli/health_check.h"
#include "cli/metrics_page.h"
#include "cli/paint.h"
#include "cli/target.h"
#include "cli/unclaimed_report.h"
#include "core/json_writer.h"
#include "core/secret.h"
#include "open/engine_options.h"
#include "open/examine_store.h"

namespace hapax {

namespace {

using Verdict = Finding::Verdict;

struct DoctorFlags {
  TargetFlags target;
  bool deep = false;
};

Colour colour_of(Verdict verdict) {
  return verdict == Verdict::ok ? Colour::green : verdict == Verdict::warn ? Colour::yellow : Colour::red;
}

class Findings {
 public:
  Findings(const Program& program, bool json) : program_(program), json_(json), paint_(Paint::of(program)) {}

  void add(const Finding& finding) {
    findings_.push_back(finding);
    if (json_) return;
    const std::string_view verdict = to_string(finding.verdict);
    program_.out << fmt::format("{}{}  {:<13}  {}", paint_(colour_of(finding.verdict), verdict),
                                std::string(4 - verdict.size(), ' '), finding.about, printable(finding.says))
                 << std::endl;
  }

  int finish() const {
    bool failed = false;
    for (const Finding& finding : findings_) failed = failed || finding.verdict == Verdict::fail;
    if (json_) {
      JsonWriter out;
      out.begin_object().key("ok").boolean(!failed).key("checks").begin_array();
      for (const Finding& finding : findings_) {
        out.begin_object().key("verdict").string(to_string(finding.verdict)).key("about").string(finding.about);
        out.key("message").string(finding.says).end_object();
      }
      program_.out << out.end_array().end_object().text() << std::endl;
    }
    return failed ? kFailed : kOk;
  }

 private:
  const Program& program_;
  const bool json_;
  const Paint paint_;
  std::vector<Finding> findings_;
};

std::optional<Config> check_config(const Program& program, const DoctorFlags& flags, const Target& target,
                                   Findings& report) {
  try {
    Config config = flags.target.config(program.environment);
    if (flags.target.names_store()) config.store = target.url;
    report.add({Verdict::ok, "configuration",
                fmt::format("store {}, listens on {}:{}, {} queues, {} types", without_secrets(config.store),
                            config.listen.host, config.listen.port, config.queues.size(), config.types.size())});
    return config;
  } catch (const ConfigError& error) {
    report.add({Verdict::fail, "configuration", error.what()});
    return {};
  }
}

// The file of a sqlite: URL, absent for other stores.
std::optional<std::filesystem::path> file_of(const std::string& url) {
  constexpr std::string_view kScheme = "sqlite:";
  if (!url.starts_with(kScheme) || url.size() == kScheme.size()) return {};
  return std::filesystem::path(url.substr(kScheme.size()));
}

Finding check_schedules(Engine& engine, const std::string& name_space) {
  constexpr std::int32_t kPage = 500;
  std::vector<ActivityView> all;
  for (std::optional<std::string> cursor = ""; cursor;) {
    ActivitiesPage page = engine.activities().list(name_space, *cursor, kPage);
    std::move(page.activities.begin(), page.activities.end(), std::back_inserter(all));
    cursor = std::move(page.next_cursor);
  }
  return judge_schedules(name_space, all);
}

Finding check_unclaimed(Engine& engine, const std::string& name_space) {
  const Time now = SystemClock().now();
  return judge_unclaimed(name_space, find_unclaimed(engine, name_space, engine.queues(name_space), now), now);
}

void check_store(const Program& program, const std::string& url, const std::string& name_space, const Config& config,
                 Findings& report) {
  const auto file = file_of(url);
  std::error_code ignored;
  if (file) {
    const auto folder = file->has_parent_path() ? file->parent_path() : std::filesystem::path(".");
    report.add(check_disk_space(folder.string()));
    report.add(check_sync_rate(folder.string()));
    if (!std::filesystem::exists(*file, ignored)) {
      report.add({Verdict::warn, "store",
                  fmt::format("{} does not exist yet; hapax serve or hapax migrate creates it", without_secrets(url))});
      return;
    }
    if (const auto finding = check_privacy(file->string())) report.add(*finding);
  }
  try {
    bool opens = true;
    for (const Finding& finding : examine_store(url)) {
      report.add(finding);
      opens = opens && finding.verdict != Verdict::fail && finding.about != "store";
    }
    if (!opens) return;
    OpenEngineOptions options;
    options.engine = engine_options(config);
    const auto engine = program.open_engine(url, std::move(options));
    engine->check_ready();
    report.add({Verdict::ok, "store",
                fmt::format("{} opens, its schema is known, and it takes writes", without_secrets(url))});
    report.add(check_schedules(*engine, name_space));
    report.add(check_unclaimed(*engine, name_space));
  } catch (const BadUrl& error) {
    report.add({Verdict::fail, "store", error.what()});
  } catch (const Failure& failure) {
    report.add({Verdict::fail, "store", fmt::format("{}: {}", without_secrets(url), failure.what())});
  }
}

void check_server(const Program& program, const DoctorFlags& flags, Findings& report) {
  Target target = flags.target.locate(program.environment);
  const bool named = flags.target.names_url() || program.environment.contains("HAPAX_URL");
  try {
    const std::string version = fetch_version(target);
    const bool same = version == program.version;
    report.add({same ? Verdict::ok : Verdict::warn, "server",
                same ? fmt::format("{} answers, version {}", target.shown, version)
                     : fmt::format("{} is version {}, this program is {}; use the same for both", target.shown, version,
                                   program.version)});
  } catch (const Failure& failure) {
    report.add(
        {named ? Verdict::fail : Verdict::warn, "server",
         named ? std::string(failure.what()) : fmt::format("none at {}; start one with hapax serve", target.shown)});
    return;
  }
  OpenEngineOptions options{target.token, target.name_space, {}};
  try {
    const auto engine = program.open_engine(target.url, std::move(options));
    engine->check_ready();
    engine->queues(target.name_space);
    report.add({Verdict::ok, "server",
                fmt::format("its store takes writes, and namespace {} is open to us", target.name_space)});
    report.add(check_schedules(*engine, target.name_space));
    report.add(check_unclaimed(*engine, target.name_space));
  } catch (const std::exception& error) {
    report.add({Verdict::fail, "server", error.what()});
  }
}

// Prints its progress now and then: a large store takes minutes.
void check_data(const Program& program, const std::string& url, bool json, Findings& report) {
  constexpr std::int64_t kEvery = 100'000;
  std::int64_t told = 0;
  try {
    const auto findings = inspect_store(url, [&](std::int64_t checked) {
      if (json || checked - told < kEvery) return;
      told = checked;
      program.err << fmt::format("{} items read\n", checked) << std::flush;
    });
    for (const Finding& finding : findings) report.add(finding);
  } catch (const BadUrl& error) {
    report.add({Verdict::fail, "data", error.what()});
  } catch (const Failure& failure) {
    report.add({Verdict::fail, "data", failure.what()});
  }
}

int doctor(const Program& program, const DoctorFlags& flags) {
  const Target target = flags.target.locate(program.environment);
  Findings report(program, flags.target.json());
  const auto config = check_config(program, flags, target, report);
  report.add(check_clock(SystemClock().now()));
  report.add(check_open_files());
  if (flags.target.names_store()) {
    check_store(program, target.url, target.name_space, config.value_or(Config{}), report);
    if (flags.deep) check_data(program, target.url, flags.target.json(), report);
  } else {
    if (config && !flags.target.names_url()) {
      check_store(program, config->store, target.name_space, *config, report);
      if (flags.deep) check_data(program, config->store, flags.target.json(), report);
    } else if (flags.deep) {
      throw CommandError(kUsage, "--deep reads a store itself: name it with --store, or with --config");
    }
    check_server(program, flags, report);
  }
  return report.finish();
}

}  // namespace

void add_doctor(CLI::App& app, const Program& program, Action& action) {
  auto* command =
      app.add_subcommand("doctor", "Check configuration, store, disk, clock and server, and say what to do");
  auto flags = std::make_shared<DoctorFlags>();
  command->add_flag("--deep", flags->deep, "Read everything that is stored, and say what is damaged");
  flags->target.add(*command);
  command->callback([&program, &action, flags] { action = [&program, flags] { return doctor(program, *flags); }; });
}

}  // namespace hapax
