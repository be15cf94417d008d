// SPDX-License-Identifier: Apache-2.0

// The flags of the verbs that learners on different machines need.

#include "fedgen/cli/flags-inl.h"

namespace fedgen {
namespace {

// Whose certificate: --learner N, or --cloud.
CLI::Option* AddPeer(CLI::App* verb, PkiPeer& peer) {
  CLI::Option* const learner =
      AddInteger(verb, "--learner", peer.learner, "a learner, by its number", 1, kMaxLearners)
          ->check(CheckNoLeadingZero);
  return verb->add_flag("--cloud", peer.cloud, "the Cloud")->excludes(learner);
}

void AddPeerWithHosts(CLI::App* verb, PkiPeer& peer) {
  CLI::Option* const cloud = AddPeer(verb, peer);
  AddName(verb, "--host", peer.hosts,
          "DNS names and IP addresses by which learners reach the Cloud; repeatable", "H[,H...]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(cloud);
}

void AddPki(CLI::App& pki, Work& work) {
  const auto [init, made] = AddVerb(pki, "init", "Make an authority", RunPkiInit, work);
  AddName(init, "directory", made->directory, "directory to create", "DIR")->required();
  AddName(init, "--name", made->name, "name of the federation", "NAME")->required();

  const auto [request, asked] =
      AddVerb(pki, "request", "Make a private key, and a request to send to the operator",
              RunPkiRequest, work);
  AddName(request, "directory", asked->directory, "directory for node.key and node.csr", "DIR")
      ->required();
  AddPeerWithHosts(request, asked->peer);

  const auto [sign, granted] =
      AddVerb(pki, "sign", "Sign a request: its key gets the name you say", RunPkiSign, work);
  AddName(sign, "directory", granted->directory, "directory of the authority", "DIR")->required();
  AddName(sign, "request", granted->request, "request, a .csr file")->required();
  AddPeerWithHosts(sign, granted->peer);
  AddName(sign, "-o,--output", granted->output, "certificate to write")->required();
  AddInteger(sign, "--days", granted->days, "how long it is valid [365]", 1, 36500, "D");
  sign->add_flag("--again", granted->again, "renew: though there is a certificate of this name");
  AddForce(sign, granted->force);

  const auto [revoke, taken] =
      AddVerb(pki, "revoke", "Take back a certificate, or all of a learner", RunPkiRevoke, work);
  AddName(revoke, "directory", taken->directory, "directory of the authority", "DIR")->required();
  AddName(revoke, "certificate", taken->certificate, "certificate, a .pem file");
  AddPeer(revoke, taken->peer);

  const auto [show, shown] = AddVerb(
      pki, "show", "Describe a certificate, a request or a revocation list", RunPkiShow, work);
  AddName(show, "file", shown->file, "a .pem or .csr file")->required();
}

// Where learners find the Cloud, and who asks.
template <typename Command>
void AddCloudAndTls(CLI::App* verb, Command& command) {
  AddName(verb, "--cloud", command.cloud, "addresses of the Cloud, tried in turn", "H:P[,H:P]")
      ->check(Address(1))
      ->delimiter(',')
      ->required();
  AddName(verb, "--tls", command.tls, "directory with ca.pem, node.pem and node.key", "DIR")
      ->required();
}

void AddLog(CLI::App* verb, std::string& log) {
  verb->add_option("--log", log, "text or json, on stderr [text on a terminal, else json]")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("FORM");
}

// How long the Cloud waits.
template <typename Command>
void AddPace(CLI::App* verb, Command& command) {
  verb->add_option("--patience", command.patience,
                   "a learner that is silent for so long is left out of the round, and may come "
                   "back [federation.patience]")
      ->check(Seconds(0, 1e6))
      ->type_name("S");
  verb->add_flag("--async", command.async,
                 "answer every learner at once with the best policy so far");
}

void AddCloud(CLI::App& app, Work& work) {
  const auto [verb, command] =
      AddVerb(app, "cloud", "Serve runs to learners on other machines", RunCloud, work);
  CLI::App* const serve = verb;
  const auto serving = command;
  serve->callback([serve, serving, &work] {
    if (serve->get_subcommands().empty()) work = [serving] { return RunCloud(*serving); };
  });
  AddName(serve, "--listen", serving->listen, "where to listen; port 0 is any that is free", "H:P")
      ->check(Address(0));
  AddName(serve, "--tls", serving->tls,
          "directory with ca.pem, node.pem, node.key and, perhaps, crl.pem", "DIR");
  AddName(serve, "--run", serving->runs,
          "what all learners of a run share, a TOML file; repeatable")
      ->allow_extra_args(false);
  AddName(serve, "--store", serving->store, "where everything acknowledged is kept", "sqlite:PATH");
  serve->add_option("--set", serving->overrides, "overrides a key of the runs' files; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  AddPace(serve, *serving);
  AddSeed(serve, serving->seed, "of the races that end runs [drawn, and kept in the store]");
  AddName(serve, "--metrics", serving->metrics, "serve /metrics for Prometheus there", "H:P")
      ->check(Address(0));
  AddLog(serve, serving->log);

  const auto [status, asked] =
      AddVerb(*serve, "status", "Where the runs of a Cloud are, and whom it waits for",
              RunCloudStatus, work);
  AddCloudAndTls(status, *asked);
  AddName(status, "--run", asked->run, "one run [all]", "NAME");
  status->add_flag("--json", asked->json, "print one JSON object");

  const auto [backup, copied] =
      AddVerb(*serve, "backup", "Copy a store to a file, while it is in use", RunCloudBackup, work);
  AddName(backup, "--store", copied->store, "the Cloud's store", "sqlite:PATH")->required();
  AddName(backup, "-o,--output", copied->output, "file to write")->required();

  const auto [log, logged] =
      AddVerb(*serve, "log", "Write down what happened in a run, for fedgen train --replay",
              RunCloudLog, work);
  AddName(log, "--store", logged->store, "the Cloud's store", "sqlite:PATH")->required();
  AddName(log, "--run", logged->run, "which run", "NAME")->required();
  AddName(log, "-o,--output", logged->output, "file to write, .jsonl")->required();
  AddForce(log, logged->force);
}

void AddLearner(CLI::App& app, Work& work) {
  const auto [verb, command] = AddVerb(
      app, "learner", "Take part in a run of a Cloud, with worlds of your own", RunLearner, work);
  AddCloudAndTls(verb, *command);
  AddInteger(verb, "--id", command->id, "which learner this is, as its certificate says", 1,
             kMaxLearners)
      ->check(CheckNoLeadingZero)
      ->required();
  AddName(verb, "-c,--config", command->config, "what is the learner's own, a TOML file")
      ->required();
  AddName(verb, "--run", command->run, "which run, if the Cloud serves several", "NAME");
  AddName(verb, "--agreed", command->agreed,
          "take part only if the run shares what this file says; the Cloud's RUN.toml");
  AddName(verb, "-o,--out", command->out, "directory of the learner's run [runs/RUN-learnerN]",
          "DIR");
  AddName(verb, "--secret", command->secret,
          "file of the secret that its worlds follow from; made if it is not there [in --out]");
  AddThreads(verb, command->threads);
  AddKernel(verb, command->kernel);
  verb->add_option("--deadline", command->deadline, "s until a request is sent again [30]")
      ->check(Seconds(0.01, 3600))
      ->type_name("S");
  verb->add_flag("--no-certificate", command->no_certificate,
                 "do not certify the winner at the end");
  verb->add_flag("--leave", command->leave, "tell the Cloud not to wait for this learner any more");
  AddLog(verb, command->log);
}

void AddUp(CLI::App& app, Work& work) {
  const auto [verb, command] = AddVerb(
      app, "up", "Try a federation on this machine: a Cloud and learners, each its own process",
      RunUp, work);
  AddConfig(verb, *command);
  AddName(verb, "--resume", command->resume, "go on with a federation that was interrupted", "DIR");
  AddInteger(verb, "--learners", command->learners, "how many learners [as configured]", 1,
             kMaxLearners);
  verb->add_option("--algorithm", command->algorithm, "fedgen, local or fedavg [as configured]")
      ->check(CheckAlgorithm)
      ->type_name("A");
  AddSeed(verb, command->seed, "names everything that is drawn [1]");
  AddName(verb, "-o,--out", command->out, "directory to create [runs/CONFIG-up-seedS]", "DIR");
  AddThreads(verb, command->threads);
  AddPace(verb, *command);
  verb->add_flag("--prepare-only", command->prepare_only,
                 "make files and certificates, say how to start, and start nothing");
  verb->add_flag("--no-certificate", command->no_certificate,
                 "do not certify the winner at the end");
}

void AddDoctor(CLI::App& app, Work& work) {
  const auto [verb, command] = AddVerb(
      app, "doctor", "Look for what keeps a Cloud or a learner from working", RunDoctor, work);
  AddName(verb, "--tls", command->tls, "directory with ca.pem, node.pem and node.key", "DIR");
  AddInteger(verb, "--id", command->id, "the learner whose certificate it must be", 1, kMaxLearners)
      ->check(CheckNoLeadingZero);
  AddName(verb, "--cloud", command->clouds, "Clouds to reach; repeatable", "H:P[,H:P...]")
      ->check(Address(1))
      ->delimiter(',')
      ->allow_extra_args(false);
  AddName(verb, "--listen", command->listen, "where a Cloud is to listen", "H:P")
      ->check(Address(0));
  AddName(verb, "--store", command->store, "the Cloud's store", "sqlite:PATH");
  AddName(verb, "--file", command->files, "a file that must be readable; repeatable");
}

}  // namespace

void AddFederationVerbs(CLI::App& app, Work& work) {
  AddUp(app, work);
  AddCloud(app, work);
  AddLearner(app, work);
  AddPki(AddGroup(app, "pki", "Certificates: who is who in a federation"), work);
  AddDoctor(app, work);
}

}  // namespace fedgen
