// SPDX-License-Identifier: Apache-2.0

// The program: turns flags into the struct of a verb (commands.h) and calls the verb.

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/certify/certificate.h"
#include "fedgen/certify/ladder.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/flags-inl.h"
#include "fedgen/cli/print.h"
#include "fedgen/run/config_options.h"

namespace fedgen {
namespace {

std::string Problem(const CLI::ParseError& error) {
  std::string text = error.what();
  if (const std::size_t at = text.find(": = "); at != std::string::npos) text.erase(at, 1);
  return text;
}

// An output that could not be written is an error.
int FlushStdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Complain({ErrorCode::kIo, "stdout: cannot write"});
  }
  return 0;
}

// The complaint about a verb that does not exist, with the nearest that does; nothing if every verb
// is known.
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
      return Error{ErrorCode::kUsage,
                   fmt::format("{}: no such verb{}", word.substr(0, 60), DidYouMean(word, names))};
    }
    at = next;
  }
  return std::nullopt;
}

// ---- Verbs and their flags ----------------------------------------------------------------------

void AddEvaluate(CLI::App& app, Work& work) {
  const auto [verb, command] =
      AddVerb(app, "evaluate", "Drive a policy through many worlds; report how often it arrives",
              RunEvaluate, work);
  AddConfig(verb, *command)->required();
  AddPolicy(verb, *command);
  AddInteger(verb, "-n,--worlds", command->worlds,
             "how many worlds [10000, or all of --world-file]", 1, kMostWorlds);
  AddName(verb, "--world-file", command->world_file, "drive through these worlds; none are drawn");
  verb->add_flag("--crossable", command->crossable,
                 "where the policy fails, let a search that knows the map look for a way: how many "
                 "worlds can be crossed at least");
  AddThreads(verb, command->threads);
  AddSeed(verb, command->seed, "which worlds are drawn [1]");
  AddKernel(verb, command->kernel);
  verb->add_flag("--json", command->json, "print one JSON object");
}

void AddTrain(CLI::App& app, Work& work) {
  const auto [verb, command] =
      AddVerb(app, "train", "Train a policy with several learners; select, certify and draw it",
              RunTrain, work);
  AddConfig(verb, *command);
  AddInteger(verb, "--learners", command->learners, "how many learners [as configured]", 1, 1000);
  verb->add_option("--algorithm", command->algorithm,
                   "fedgen, local, fedavg, centralized or single [as configured]")
      ->check(CheckAlgorithm)
      ->type_name("A");
  AddName(verb, "-o,--out", command->out, "directory to create [runs/<config>-<algorithm>-seed<S>]",
          "DIR");
  AddName(verb, "--replay", command->replay,
          "run a federation of fedgen up once more, from its log (cloud/log.jsonl)");
  AddName(verb, "--resume", command->resume, "continue the run in this directory", "DIR");
  AddInteger(verb, "--rounds", command->rounds,
             "with --resume: how many rounds the run is to have in all, at least those done", 1,
             10'000'000);
  verb->add_flag("--anyway", command->anyway,
                 "begin with initial policies made for another sensor, robot or time step");
  AddSeed(verb, command->seed, "decides everything random [1]");
  AddThreads(verb, command->threads);
  AddKernel(verb, command->kernel);
  verb->add_flag("--no-figures", command->no_figures, "draw no figures at the end");
}

void AddEstimate(CLI::App& app, Work& work) {
  const auto [verb, command] = AddVerb(
      app, "estimate",
      "Measure the constants that the theorems assume: noise and smoothness of the gradient",
      RunEstimate, work);
  AddConfig(verb, *command)->required();
  AddName(verb, "-p,--policy", command->policy,
          "the policy at which to measure [the initial policy]");
  AddAnyway(verb, command->anyway);
  AddInteger(verb, "--repeats", command->repeats, "how many measurements [40]", 2, 100000, "R");
  AddSeed(verb, command->seed, "decides everything random [1]");
  AddThreads(verb, command->threads);
}

void AddPlot(CLI::App& app, Work& work) {
  const auto [verb, command] =
      AddVerb(app, "plot", "Draw the figures of a run again", RunPlot, work);
  AddName(verb, "directory", command->directory, "directory of the run", "DIR")->required();
  verb->add_option("--learner", command->learner,
                   "the learner whose bounds and trajectories are drawn [1]")
      ->type_name("I");
}

void AddReproduce(CLI::App& app, Work& work) {
  const auto [verb, command] =
      AddVerb(app, "reproduce", "Run the paper's experiments; show its numbers beside ours",
              RunReproduce, work);
  verb->add_option(
          "what", command->what,
          "table1, text, sigma, table2, figures, tradeoffs, estimators, comparison (or one "
          "part of it: comparison-tenth, comparison-rooms, comparison-full) or all")
      ->required()
      ->type_name("WHAT");
  AddConfig(verb, *command);
  AddName(verb, "-o,--out", command->out,
          "directory for results; unfinished work in it is continued [out/reproduce]", "DIR");
  AddInteger(verb, "--seeds", command->seeds,
             "how many seeds [5; 3 for tradeoffs; comparison: 10, 5, 3]", 1, 1000);
  verb->add_flag("--quick", command->quick,
                 "few rounds and worlds: shows that it works, the numbers mean nothing");
  AddSeed(verb, command->seed,
          "the first seed [1; 1001 for comparison, which nothing was tuned with]");
  AddThreads(verb, command->threads);
}

CLI::Option* AddChallenge(CLI::App* verb, std::optional<std::string>& challenge,
                          const std::string& help) {
  return verb->add_option("--challenge", challenge, help)->type_name("TEXT");
}

void AddCertify(CLI::App& app, Work& work) {
  const auto [verb, command] = AddVerb(
      app, "certify", "Drive a policy through unseen worlds; write a certificate of how safe it is",
      RunCertify, work);
  AddConfig(verb, *command)->required();
  AddPolicy(verb, *command);
  AddInteger(verb, "-n,--worlds", command->worlds,
             "how many worlds: 100, 300, 1000, ... 100000000 [100000]", 1, kMaxCertificateWorlds);
  verb->add_option("--confidence", command->confidence,
                   "adds a line at another confidence than 0.99, marked as your choice")
      ->type_name("G");
  AddChallenge(
      verb, command->challenge,
      "the verifier's word, given after they received the policy's hash; draws the worlds");
  CLI::Option* const hashes =
      verb->add_flag("--hashes", command->hashes,
                     "drive nothing: print what a verifier needs before they choose their word");
  AddName(verb, "-o,--output", command->output, "certificate to write")->excludes(hashes);
  AddForce(verb, command->force);
  AddThreads(verb, command->threads);
}

void AddVerify(CLI::App& app, Work& work) {
  const auto [verb, command] = AddVerb(
      app, "verify",
      "Recompute a certificate and refuse it if any number differs; or test it on your own worlds",
      RunVerify, work);
  AddName(verb, "file", command->certificate, "certificate")->required();
  AddConfig(verb, *command)->required();
  AddPolicy(verb, *command);
  CLI::Option* const challenge = AddChallenge(
      verb, command->challenge,
      "your own word: recomputes a certificate made for it, tests any other on worlds it draws");
  AddInteger(verb, "-n,--worlds", command->worlds,
             "how many worlds to test on [as many as the certificate, at least 10000]", 1,
             kMaxCertificateWorlds)
      ->needs(challenge);
  AddThreads(verb, command->threads);
}

void AddPlan(CLI::App& app, Work& work) {
  const auto [verb, command] =
      AddVerb(app, "plan", "Compute how many worlds it takes to certify a safe arrival rate",
              RunPlan, work);
  verb->add_option("--safe", command->safe, "safe arrival rate to certify, between 0 and 1 [0.99]")
      ->type_name("S");
  verb->add_option("--confidence", command->confidence,
                   "confidence of the certificate, between 0 and 1 [0.99]")
      ->type_name("G");
  CLI::Option* const assume =
      verb->add_option("--assume", command->assume, "true rate of the policy, above --safe")
          ->type_name("P");
  verb->add_option("--power", command->power,
                   "wanted probability that certifying succeeds, if --assume is true [0.9]")
      ->needs(assume)
      ->type_name("W");
  verb->add_flag("--json", command->json, "print one JSON object");
}

void AddWorldsGenerate(CLI::App& worlds, Work& work) {
  const auto [verb, command] = AddVerb(
      worlds, "generate", "Draw random worlds into a file (JSON Lines)", RunWorldsGenerate, work);
  AddConfig(verb, *command)->required();
  AddInteger(verb, "-n,--worlds", command->worlds, "how many worlds [10]", 1, kMostWorlds);
  AddSeed(verb, command->seed, "which worlds are drawn [1]");
  AddName(verb, "-o,--output", command->output, "file to write")->required();
  AddForce(verb, command->force);
}

void AddWorldsShow(CLI::App& worlds, Work& work) {
  const auto [verb, command] = AddVerb(
      worlds, "show", "Describe worlds of a file; make a picture of them", RunWorldsShow, work);
  AddName(verb, "file", command->world_file, "world file")->required();
  AddInteger(verb, "--first", command->first, "first world shown [0]", 0, kMostWorlds, "K");
  AddInteger(verb, "--count", command->count, "how many worlds are shown [6]", 1, 60);
  AddName(verb, "-o,--output", command->picture, "picture to write, .svg or .png");
  AddConfig(verb, *command);
  AddName(verb, "-p,--policy", command->policies,
          "also draw the trajectory of this policy; repeatable", "NAME|FILE")
      ->allow_extra_args(false);
  AddAnyway(verb, command->anyway);
  AddForce(verb, command->force);
}

void AddPolicyNew(CLI::App& policy, Work& work) {
  const auto [verb, command] =
      AddVerb(policy, "new", "Make a network with random weights", RunPolicyNew, work);
  AddConfig(verb, *command)->required();
  AddSeed(verb, command->seed, "which weights are drawn [1]");
  AddName(verb, "-o,--output", command->output, "file to write, .fgp or .json")->required();
  AddForce(verb, command->force);
}

void AddPolicyShow(CLI::App& policy, Work& work) {
  const auto [verb, command] =
      AddVerb(policy, "show", "Describe a policy file", RunPolicyShow, work);
  AddName(verb, "file", command->policy, "policy file")->required();
  verb->add_flag("--json", command->json, "print the whole policy as JSON");
}

void AddPolicyConvert(CLI::App& policy, Work& work) {
  const auto [verb, command] =
      AddVerb(policy, "convert", "Convert a policy between .fgp and .json", RunPolicyConvert, work);
  AddName(verb, "input", command->input, "policy file")->required();
  AddName(verb, "output", command->output, "file to write, .fgp or .json")->required();
  AddForce(verb, command->force);
}

void AddConfigExplain(CLI::App& config, Work& work) {
  const auto [verb, command] =
      AddVerb(config, "explain", "Explain an option, a group of options, or list all",
              RunConfigExplain, work);
  verb->add_option("key", command->key, "such as learner.sigma or world.goal [all]")
      ->check(CheckName)
      ->type_name("KEY");
  verb->add_flag("--markdown", command->markdown, "all, as the tables of docs/configuration.md");
}

void AddVerbs(CLI::App& app, Work& work) {
  AddEvaluate(app, work);
  AddTrain(app, work);
  AddEstimate(app, work);
  AddPlot(app, work);
  AddReproduce(app, work);
  AddCertify(app, work);
  AddVerify(app, work);
  AddPlan(app, work);
  CLI::App& worlds = AddGroup(app, "worlds", "Generate, describe and draw worlds");
  AddWorldsGenerate(worlds, work);
  AddWorldsShow(worlds, work);
  CLI::App& policy = AddGroup(app, "policy", "Make, describe and convert policies");
  AddPolicyNew(policy, work);
  AddPolicyShow(policy, work);
  AddPolicyConvert(policy, work);
  AddFederationVerbs(app, work);
  AddConfigExplain(AddGroup(app, "config", "Say what the options of a configuration mean"), work);
}

// ---- The program --------------------------------------------------------------------------------

// What the parser objects to, or the text that --help and --version asked for.
int Refuse(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
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
      {ErrorCode::kUsage, fmt::format("{} (see {} --help)", Problem(error), verb_path)});
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
      "Exit codes: 0 done, 2 usage, 3 configuration, 4 bad file, 5 mismatch,\n"
      "6 cannot read or write, 7 output exists, 8 missed check (docs/exit-codes.md).");
  Work work;
  AddVerbs(app, work);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Refuse(error, app, argc, argv);
  }
  if (const Result<void> done = work(); !done) return Complain(done.error());
  return FlushStdout();
}

}  // namespace
}  // namespace fedgen

namespace {

// The next file that is opened would get the number of a closed stream, and whatever is printed to
// the stream would end up in that file. So /dev/null takes the place of closed streams; stdout's is
// opened for reading only, so that the failure to write there is noticed at the end.
void HoldClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // open() takes the lowest free number, which is this one. A failure cannot be reported.
    (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  HoldClosedStreams();
  // A file that may not grow (ulimit -f) is reported as an error instead of ending the program.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return fedgen::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("fedgen: out of memory\n", stderr);
  } catch (const std::exception& error) {
    // Our own code does not throw; this is an exception of a library.
    std::fputs("fedgen: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  } catch (...) {
    std::fputs("fedgen: unknown error\n", stderr);
  }
  return static_cast<int>(fedgen::ExitCode::kUnexpected);
}
