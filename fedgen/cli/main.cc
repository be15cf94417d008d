// SPDX-License-Identifier: Apache-2.0

// The program: flags in, a verb's struct out. No work is done here.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <functional>
#include <iostream>
#include <limits>

#include "fedgen/base/parallel.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/certify/certificate.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/exit_code.h"

namespace fedgen {
namespace {

// Checks of what a flag was given: what is wrong as "= value: rule", nothing if all is well. CLI11
// puts the flag and a colon before it; Problem() takes that colon away.

template <typename Int>
bool IsInteger(const std::string& text, Int low, Int high) {
  Int value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && parsed_to == end && value >= low && value <= high;
}

std::string Refusal(const std::string& text, const std::string& rule) {
  return fmt::format("= {}: must be {}", text.substr(0, 60), rule);
}

// CLI11 would read -1 and anything too large as 2^64 - 1.
std::string CheckSeed(const std::string& text) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  if (IsInteger<std::uint64_t>(text, 0, kLargest)) return "";
  return Refusal(text, "an integer in 0..2^64 - 1");
}

std::function<std::string(const std::string&)> InRange(std::int64_t low, std::int64_t high) {
  return [=](const std::string& text) {
    if (IsInteger(text, low, high)) return std::string();
    return Refusal(text, fmt::format("an integer in {}..{}", low, high));
  };
}

std::string CheckAlgorithm(const std::string& text) {
  const std::vector<std::string> names = {"fedgen", "local", "fedavg", "centralized"};
  if (std::find(names.begin(), names.end(), text) != names.end()) return "";
  return Refusal(text, "fedgen, local, fedavg or centralized");
}

// An empty name is a slip, such as a variable of the shell that was never set.
std::string CheckName(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

std::string Problem(const CLI::ParseError& error) {
  std::string text = error.what();
  if (const std::size_t at = text.find(": = "); at != std::string::npos) text.erase(at, 1);
  return text;
}

// Nothing that was printed may be lost unnoticed.
int FlushStdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Complain({ErrorCode::kIo, "stdout: cannot write"});
  }
  return 0;
}

// What was meant by a verb that does not exist, as a complaint; nothing if every verb is known.
std::optional<Error> FindUnknownVerb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int index = 1; index < argc; ++index) {
    const std::string word = argv[index];
    const std::vector<const CLI::App*> verbs =
        at->get_subcommands([](const CLI::App*) { return true; });
    if (verbs.empty() || word.starts_with('-')) return std::nullopt;
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* verb : verbs) {
      names.push_back(verb->get_name());
      if (verb->get_name() == word) next = verb;
    }
    if (next == nullptr) {
      return Error{ErrorCode::kUsage, fmt::format("{}: no such verb, did you mean {}?",
                                                  word.substr(0, 60), NearestName(word, names))};
    }
    at = next;
  }
  return std::nullopt;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "FedGen: one robot policy, learned by many owners of private worlds, with a proof of how "
      "often\n"
      "it arrives safely in worlds nobody trained on.");
  app.name("fedgen");
  app.require_subcommand(1);
  app.set_version_flag("--version", kVersion);
  app.footer(
      "Exit codes: 0 done, 2 usage, 3 configuration, 4 bad file, 5 things do not fit together,\n"
      "6 cannot read or write, 7 output exists (docs/exit-codes.md).");
  std::function<Result<void>()> run;

  const auto add_config = [](CLI::App* verb, std::string& config,
                             std::vector<std::string>& overrides, bool required) {
    verb->add_option("-c,--config", config, "experiment, a TOML file (see configs/)")
        ->required(required)
        ->check(CheckName)
        ->type_name("FILE");
    verb->add_option("--set", overrides, "key=value over the configuration, may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
  };
  const auto add_seed = [](CLI::App* verb, std::uint64_t& seed, const char* what) {
    verb->add_option("-s,--seed", seed, what)->check(CheckSeed)->type_name("S");
  };
  const auto add_policy = [](CLI::App* verb, std::string& policy) {
    verb->add_option("-p,--policy", policy, "straight, gap-follower, or a policy file")
        ->required()
        ->check(CheckName)
        ->type_name("NAME|FILE");
  };
  const auto add_threads = [](CLI::App* verb, int& threads) {
    verb->add_option(
            "-t,--threads", threads,
            "threads [FEDGEN_NUM_THREADS, or the cores there are]; changes no bit of the result")
        ->check(InRange(1, kMaxThreads))
        ->type_name("T");
  };
  const auto count = InRange(1, 1'000'000'000'000);

  EvaluateCommand evaluate;
  CLI::App* verb =
      app.add_subcommand("evaluate", "Drive a policy through many worlds; report how safe it is");
  add_config(verb, evaluate.config, evaluate.overrides, true);
  add_policy(verb, evaluate.policy);
  verb->add_option("-n,--worlds", evaluate.worlds,
                   "how many worlds [10000, or all of --world-file]")
      ->check(count)
      ->type_name("N");
  verb->add_option("--world-file", evaluate.world_file, "drive through these instead of drawn ones")
      ->check(CheckName)
      ->type_name("FILE");
  add_threads(verb, evaluate.threads);
  add_seed(verb, evaluate.seed, "which worlds are drawn [1]");
  verb->add_option("--kernel", evaluate.kernel,
                   "auto, simd or scalar; changes no bit of the result")
      ->type_name("K");
  verb->add_flag("--json", evaluate.json, "one JSON object on stdout");
  verb->callback([&] { run = [&] { return RunEvaluate(evaluate); }; });

  TrainCommand train;
  verb = app.add_subcommand("train", "Learn a policy together; race, certify and draw the result");
  add_config(verb, train.config, train.overrides, false);
  verb->add_option("--learners", train.learners, "how many learners [as configured]")
      ->check(InRange(1, 1000))
      ->type_name("N");
  verb->add_option("--algorithm", train.algorithm,
                   "fedgen, local, fedavg or centralized [as configured]")
      ->check(CheckAlgorithm)
      ->type_name("A");
  verb->add_option("-o,--out", train.out, "directory to make [runs/<config>-<algorithm>-seed<S>]")
      ->check(CheckName)
      ->type_name("DIR");
  verb->add_option("--resume", train.resume, "go on with this run, as it was started")
      ->check(CheckName)
      ->type_name("DIR");
  verb->add_option("-s,--seed", train.seed, "names everything that is drawn [1]")
      ->check(CheckSeed)
      ->type_name("S");
  add_threads(verb, train.threads);
  verb->add_flag("--no-figures", train.no_figures, "draw nothing at the end");
  verb->callback([&] { run = [&] { return RunTrain(train); }; });

  EstimateCommand estimate;
  verb = app.add_subcommand("estimate", "Measure what the theorems ask for: noise, smoothness");
  add_config(verb, estimate.config, estimate.overrides, true);
  verb->add_option("-p,--policy", estimate.policy, "where to measure [the initial policy]")
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_option("--repeats", estimate.repeats, "measurements [40]")
      ->check(InRange(2, 100000))
      ->type_name("R");
  add_seed(verb, estimate.seed, "names everything that is drawn [1]");
  add_threads(verb, estimate.threads);
  verb->callback([&] { run = [&] { return RunEstimate(estimate); }; });

  PlotCommand plot;
  verb = app.add_subcommand("plot", "Draw the figures of a run again");
  verb->add_option("directory", plot.directory, "a run's directory")
      ->required()
      ->check(CheckName)
      ->type_name("DIR");
  verb->add_option("--learner", plot.learner, "whose bounds and ways are drawn [1]")
      ->type_name("I");
  verb->callback([&] { run = [&] { return RunPlot(plot); }; });

  ReproduceCommand reproduce;
  verb = app.add_subcommand("reproduce", "Run the paper's experiments; its numbers and ours");
  verb->add_option("what", reproduce.what, "table1, table2, figures, tradeoffs, comparison or all")
      ->required()
      ->type_name("WHAT");
  add_config(verb, reproduce.config, reproduce.overrides, false);
  verb->add_option("-o,--out", reproduce.out,
                   "directory for results; going on where it was if there are some "
                   "[out/reproduce]")
      ->check(CheckName)
      ->type_name("DIR");
  verb->add_option("--seeds", reproduce.seeds, "how many seeds [5; 3 for tradeoffs]")
      ->check(InRange(1, 1000))
      ->type_name("N");
  verb->add_flag("--quick", reproduce.quick, "few rounds and worlds: only whether it works");
  add_seed(verb, reproduce.seed, "the first seed [1]");
  add_threads(verb, reproduce.threads);
  verb->callback([&] { run = [&] { return RunReproduce(reproduce); }; });

  CertifyCommand certify;
  verb = app.add_subcommand("certify",
                            "Drive a policy through unseen worlds; write down what that promises");
  add_config(verb, certify.config, certify.overrides, true);
  add_policy(verb, certify.policy);
  verb->add_option("-n,--worlds", certify.worlds, "how many worlds [100000]")
      ->check(InRange(1, kMaxCertificateWorlds))
      ->type_name("N");
  verb->add_option("--confidence", certify.confidence,
                   "that both statements hold, between 0 and 1 [0.99]")
      ->type_name("G");
  verb->add_option("-o,--output", certify.output, "certificate to write")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_flag("--force", certify.force, "replace an existing file");
  add_threads(verb, certify.threads);
  verb->callback([&] { run = [&] { return RunCertify(certify); }; });

  VerifyCommand verify;
  verb = app.add_subcommand("verify", "Recompute a certificate; refuse it if a number differs");
  verb->add_option("file", verify.certificate, "certificate")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  add_config(verb, verify.config, verify.overrides, true);
  add_policy(verb, verify.policy);
  add_threads(verb, verify.threads);
  verb->callback([&] { run = [&] { return RunVerify(verify); }; });

  PlanCommand plan;
  verb = app.add_subcommand("plan", "Say how many worlds it takes to certify a rate");
  verb->add_option("--safe", plan.safe, "rate of safe arrival to certify, between 0 and 1 [0.99]")
      ->type_name("S");
  verb->add_option("--confidence", plan.confidence, "between 0 and 1 [0.99]")->type_name("G");
  CLI::Option* assume =
      verb->add_option("--assume", plan.assume, "the true rate, above --safe")->type_name("P");
  verb->add_option("--power", plan.power, "wanted probability of success [0.9]")
      ->needs(assume)
      ->type_name("W");
  verb->add_flag("--json", plan.json, "one JSON object on stdout");
  verb->callback([&] { run = [&] { return RunPlan(plan); }; });

  CLI::App* worlds = app.add_subcommand("worlds", "Draw, describe and picture worlds");
  worlds->require_subcommand(1);
  WorldsGenerateCommand generate;
  verb = worlds->add_subcommand("generate", "Draw worlds into a file (JSON Lines)");
  add_config(verb, generate.config, generate.overrides, true);
  verb->add_option("-n,--worlds", generate.worlds, "how many [10]")->check(count)->type_name("N");
  add_seed(verb, generate.seed, "which worlds are drawn [1]");
  verb->add_option("-o,--output", generate.output, "file to write")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_flag("--force", generate.force, "replace an existing file");
  verb->callback([&] { run = [&] { return RunWorldsGenerate(generate); }; });

  WorldsShowCommand show;
  verb = worlds->add_subcommand("show", "Describe worlds of a file, and draw them");
  verb->add_option("file", show.world_file, "world file")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_option("--first", show.first, "first world shown [0]")
      ->check(InRange(0, 1'000'000'000'000))
      ->type_name("K");
  verb->add_option("--count", show.count, "how many are shown [6]")
      ->check(InRange(1, 60))
      ->type_name("N");
  verb->add_option("-o,--output", show.picture, "picture to write, .svg or .png")
      ->check(CheckName)
      ->type_name("FILE");
  add_config(verb, show.config, show.overrides, false);
  verb->add_option("-p,--policy", show.policies,
                   "also draw the way of this policy, may be repeated")
      ->check(CheckName)
      ->type_name("NAME|FILE")
      ->allow_extra_args(false);
  verb->add_flag("--force", show.force, "replace an existing file");
  verb->callback([&] { run = [&] { return RunWorldsShow(show); }; });

  CLI::App* policy = app.add_subcommand("policy", "Make, describe and convert policies");
  policy->require_subcommand(1);
  PolicyNewCommand fresh;
  verb = policy->add_subcommand("new", "Make a network with random weights");
  add_config(verb, fresh.config, fresh.overrides, true);
  add_seed(verb, fresh.seed, "which weights are drawn [1]");
  verb->add_option("-o,--output", fresh.output, "file to write, .fgp or .json")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_flag("--force", fresh.force, "replace an existing file");
  verb->callback([&] { run = [&] { return RunPolicyNew(fresh); }; });

  PolicyShowCommand describe;
  verb = policy->add_subcommand("show", "Describe a policy file");
  verb->add_option("file", describe.policy, "policy file")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_flag("--json", describe.json, "the whole policy in its JSON form");
  verb->callback([&] { run = [&] { return RunPolicyShow(describe); }; });

  PolicyConvertCommand convert;
  verb = policy->add_subcommand("convert", "Convert a policy between .fgp and .json");
  verb->add_option("input", convert.input, "policy file")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_option("output", convert.output, "file to write, .fgp or .json")
      ->required()
      ->check(CheckName)
      ->type_name("FILE");
  verb->add_flag("--force", convert.force, "replace an existing file");
  verb->callback([&] { run = [&] { return RunPolicyConvert(convert); }; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      app.exit(error);
      std::cout.flush();
      return std::cout ? FlushStdout() : Complain({ErrorCode::kIo, "stdout: cannot write"});
    }
    if (const auto unknown = FindUnknownVerb(app, argc, argv)) return Complain(*unknown);
    std::string verb_path = "fedgen";
    const CLI::App* used = &app;
    while (!used->get_subcommands().empty()) {
      used = used->get_subcommands().front();
      verb_path += " " + used->get_name();
    }
    return Complain(
        {ErrorCode::kUsage, fmt::format("{} ({} --help says more)", Problem(error), verb_path)});
  }
  if (const Result<void> done = run(); !done) return Complain(done.error());
  return FlushStdout();
}

}  // namespace
}  // namespace fedgen

namespace {

// The number of a closed stream would go to the next file that is opened, and what is said into the
// stream would end in that file. So closed streams are held by /dev/null, stdout for reading only:
// what cannot be written there is noticed at the end.
void HoldClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number, which is this one. There is nobody to tell if it fails.
    (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  HoldClosedStreams();
  // A file that may not grow is an error to be told, not a signal to die of.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return fedgen::Main(argc, argv);
  } catch (const std::exception& error) {
    // Nothing of ours throws; this is memory that ran out, or a library's surprise.
    std::fputs("fedgen: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  } catch (...) {
    std::fputs("fedgen: unknown error\n", stderr);
  }
  return static_cast<int>(fedgen::ExitCode::kUnexpected);
}
