// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"
#include "fedgen/policy/policy.h"
#include "fedgen/report/run_pictures.h"
#include "fedgen/run/config.h"

namespace fedgen {

// The verbs of the program, one file each. main.cc turns flags into these structs; a verb does its
// work, prints its result on stdout, and returns what went wrong, if anything.

/// fedgen evaluate: how a policy does on many worlds.
struct EvaluateCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::string policy;
  bool anyway = false;                 // it may drive a body that it was not made for
  std::optional<std::int64_t> worlds;  // 10000, or all of world_file
  std::string world_file;
  bool crossable = false;  // search a way where the policy fails
  int threads = 0;         // 0: as many as there are cores
  std::uint64_t seed = 1;
  std::string kernel = "auto";
  bool json = false;
};
Result<void> RunEvaluate(const EvaluateCommand& command);

/// fedgen certify: what can be promised about a policy, as a file that anybody can check.
struct CertifyCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::string policy;
  bool anyway = false;  // it may drive a body that it was not made for
  std::int64_t worlds = 100'000;
  double confidence = 0.99;
  std::optional<std::string> challenge;
  bool hashes = false;  // only name policy and task
  std::string output;
  bool force = false;
  int threads = 0;  // 0: as many as there are cores
};
Result<void> RunCertify(const CertifyCommand& command);

/// fedgen verify: recomputes a certificate and refuses it if one number differs; or tests what it
/// promises on worlds of the verifier's own.
struct VerifyCommand {
  std::string certificate;
  std::string config;
  std::vector<std::string> overrides;
  std::string policy;
  bool anyway = false;  // it may drive a body that it was not made for
  std::optional<std::string> challenge;
  std::optional<std::int64_t> worlds;  // of the challenge
  int threads = 0;                     // 0: as many as there are cores
};
Result<void> RunVerify(const VerifyCommand& command);

/// fedgen plan: how many worlds a certificate takes.
struct PlanCommand {
  double safe = 0.99;
  double confidence = 0.99;
  std::optional<double> assume;  // a guess of the true rate
  double power = 0.9;            // with assume: the wanted probability of success
  bool json = false;
};
Result<void> RunPlan(const PlanCommand& command);

/// fedgen worlds generate: draws worlds into a file.
struct WorldsGenerateCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::int64_t worlds = 10;
  std::uint64_t seed = 1;
  std::string output;
  bool force = false;
};
Result<void> RunWorldsGenerate(const WorldsGenerateCommand& command);

/// fedgen worlds show: describes worlds of a file and draws them, with the trajectories of the
/// policies that are named.
struct WorldsShowCommand {
  std::string world_file;
  std::int64_t first = 0;
  std::int64_t count = 6;
  std::string picture;  // .svg or .png; nothing is drawn if empty
  std::string config;   // says which robot and lidar drive; needed with policies
  std::vector<std::string> overrides;
  std::vector<std::string> policies;
  bool anyway = false;  // they may drive a body that they were not made for
  bool force = false;
};
Result<void> RunWorldsShow(const WorldsShowCommand& command);

/// fedgen config explain: what the options of a configuration mean.
struct ConfigExplainCommand {
  std::string key;        // an option or a group of them; empty: all
  bool markdown = false;  // tables for docs/configuration.md
};
Result<void> RunConfigExplain(const ConfigExplainCommand& command);

/// fedgen policy new: a network with random weights, as a configuration asks for.
struct PolicyNewCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::uint64_t seed = 1;
  std::string output;
  bool force = false;
};
Result<void> RunPolicyNew(const PolicyNewCommand& command);

/// fedgen policy show: describes a policy file.
struct PolicyShowCommand {
  std::string policy;
  bool json = false;
};
Result<void> RunPolicyShow(const PolicyShowCommand& command);

/// fedgen policy convert: between .fgp and .json.
struct PolicyConvertCommand {
  std::string input, output;
  bool force = false;
};
Result<void> RunPolicyConvert(const PolicyConvertCommand& command);

/// fedgen train: a federation from start to certificate, in a directory of its own.
struct TrainCommand {
  std::string config;
  std::vector<std::string> overrides;
  int learners = 0;       // 0: as the configuration says
  std::string algorithm;  // empty: as the configuration says
  std::string out;        // empty: runs/<config>-<algorithm>-seed<seed>
  std::string resume;     // a run's directory; only rounds, threads, no_figures may go with it
  std::string replay;     // the log of a federation, to be run once more
  int rounds = 0;         // with resume: how many the run is to have in all; 0: as it has
  std::optional<std::uint64_t> seed;  // 1
  int threads = 0;                    // 0: as many as there are cores
  std::string kernel = "auto";
  bool anyway = false;  // initial policies may have been made for another body
  bool no_figures = false;
};
Result<void> RunTrain(const TrainCommand& command);

/// fedgen estimate: what the theorems ask for, measured.
struct EstimateCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::string policy;  // where to measure; empty: the first learner's initial policy
  bool anyway = false;
  int repeats = 40;  // measurements, >= 2
  std::uint64_t seed = 1;
  int threads = 0;
};
Result<void> RunEstimate(const EstimateCommand& command);

/// fedgen plot: the figures of a run.
struct PlotCommand {
  std::string directory;
  int learner = 1;  // the one whose bounds and trajectories are drawn
};
Result<void> RunPlot(const PlotCommand& command);

/// fedgen reproduce: the paper's experiments, and what it leaves open.
struct ReproduceCommand {
  std::string what;    // the name of an experiment, or all
  std::string config;  // empty: the experiment's own
  std::vector<std::string> overrides;
  std::string out = "out/reproduce";
  int seeds = 0;                      // 0: as many as the experiment wants
  std::optional<std::uint64_t> seed;  // the first; none: the experiment's own
  int threads = 0;                    // 0: as many as there are cores
  bool quick = false;
};
Result<void> RunReproduce(const ReproduceCommand& command);

/// Whose certificate it is, in the verbs of fedgen pki: one of the two.
struct PkiPeer {
  std::uint32_t learner = 0;  // from 1; 0: not given
  bool cloud = false;
  std::vector<std::string> hosts{};  // of the Cloud: DNS names and IP addresses
};

/// fedgen pki init: a new authority.
struct PkiInitCommand {
  std::string directory;
  std::string name;
};
Result<void> RunPkiInit(const PkiInitCommand& command);

/// fedgen pki request: a private key, and a request for its certificate.
struct PkiRequestCommand {
  std::string directory;
  PkiPeer peer;
};
Result<void> RunPkiRequest(const PkiRequestCommand& command);

/// fedgen pki sign: makes a certificate of a request.
struct PkiSignCommand {
  std::string directory;  // of the authority
  std::string request;
  PkiPeer peer;
  std::string output;
  int days = 365;
  bool again = false;  // though the peer has one
  bool force = false;
};
Result<void> RunPkiSign(const PkiSignCommand& command);

/// fedgen pki revoke: takes certificates back.
struct PkiRevokeCommand {
  std::string directory;    // of the authority
  std::string certificate;  // this one; or all of a peer
  PkiPeer peer;
};
Result<void> RunPkiRevoke(const PkiRevokeCommand& command);

/// fedgen pki show: describes a certificate, a request or a revocation list.
struct PkiShowCommand {
  std::string file;
};
Result<void> RunPkiShow(const PkiShowCommand& command);

/// fedgen cloud: serves runs to learners on other machines, until it is told to end.
struct CloudCommand {
  std::string listen, tls, store;
  std::vector<std::string> runs;  // files of what all share
  std::vector<std::string> overrides;
  std::optional<double> patience;  // s; none: as the files say
  bool async = false;              // though the files do not say so
  std::optional<std::uint64_t> seed;
  std::string metrics;  // host:port; empty: none
  std::string log;      // text, json; empty: as stderr is
};
Result<void> RunCloud(const CloudCommand& command);

/// fedgen cloud status: where the runs of a Cloud are.
struct CloudStatusCommand {
  std::vector<std::string> cloud;  // addresses
  std::string tls;
  std::string run;  // empty: all
  bool json = false;
};
Result<void> RunCloudStatus(const CloudStatusCommand& command);

/// fedgen cloud backup: a copy of a store, while it is in use.
struct CloudBackupCommand {
  std::string store, output;
};
Result<void> RunCloudBackup(const CloudBackupCommand& command);

/// fedgen cloud log: what happened in a run.
struct CloudLogCommand {
  std::string store, run, output;
  bool force = false;
};
Result<void> RunCloudLog(const CloudLogCommand& command);

/// fedgen learner: one learner, with worlds of its own.
struct LearnerCommand {
  std::vector<std::string> cloud;  // addresses
  std::string tls;
  int id = 0;  // from 1
  std::string config, run, agreed, out, secret;
  int threads = 0;
  std::string kernel = "auto";
  double deadline = 30;  // s
  bool no_certificate = false;
  bool leave = false;
  std::string log;
};
Result<void> RunLearner(const LearnerCommand& command);

/// fedgen up: a federation on this machine.
struct UpCommand {
  std::string config;
  std::string resume;  // a federation's directory; only threads and no_certificate go with it
  std::vector<std::string> overrides;
  int learners = 0;
  std::string algorithm;
  std::string out;
  std::optional<std::uint64_t> seed;  // 1
  int threads = 0;
  std::optional<double> patience;  // s
  bool async = false;
  bool prepare_only = false;
  bool no_certificate = false;
};
Result<void> RunUp(const UpCommand& command);

/// fedgen doctor: looks at what a Cloud or a learner needs, and says how to mend it.
struct DoctorCommand {
  std::string tls;
  std::optional<std::uint32_t> id;  // of a learner, from 1
  std::vector<std::string> clouds;  // host:port
  std::string listen;               // host:port
  std::string store;
  std::vector<std::string> files;
};
Result<void> RunDoctor(const DoctorCommand& command);

/// The keys that --patience and --async stand for.
void AddPaceTo(std::vector<std::string>& overrides, std::optional<double> patience, bool async);

/// How a process logs: as --log says (text, json), or as stderr is: text on a terminal.
enum class LogForm;
LogForm LogFormOf(const std::string& log);

/// What happens to an existing file: --force replaces it.
inline IfExists WhatIfExists(bool force) { return force ? IfExists::kReplace : IfExists::kRefuse; }

/// The threads to use: those of --threads, or DefaultNumThreads() if it was not given (0).
Result<int> NumThreads(int threads);

/// A built-in policy by its name, or one from a file; checked against the body that it will drive.
/// `anyway` lets it drive one that it was not made for, with a warning.
Result<Policy> FindPolicy(const std::string& name_or_path, const Body& body, bool anyway);

/// The warning of a policy that --anyway lets drive, if anything differs.
void WarnOfBody(const std::string& path, const std::optional<std::string>& differs);

/// Whether worlds come from the configuration's distribution or from a file.
enum class WorldsAre { kDrawn, kGiven };

/// What it takes to drive: a configuration with overrides, a policy that fits it, and threads.
/// Warns of drawn worlds without an obstacle.
struct Driving {
  Config config;
  Policy policy;
  int num_threads = 1;
};
Result<Driving> PrepareDriving(const std::string& config, const std::vector<std::string>& overrides,
                               const std::string& policy, bool anyway, int threads,
                               WorldsAre worlds = WorldsAre::kDrawn);

}  // namespace fedgen
