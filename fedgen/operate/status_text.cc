// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/status_text.h"

#include <fmt/format.h>

#include "fedgen/base/json-inl.h"
#include "fedgen/base/text.h"
#include "fedgen/identity/pki.h"

namespace fedgen {
namespace {

constexpr std::size_t kLongest = 200;

// A step of a run in words (fuse/cloud.h).
std::string StepText(const RunStatus& run, int step) {
  if (step < 0) return "not yet";
  if (step == 0) return "join";
  const int after = step - 2 * run.progress.round;
  if (!run.ending.empty() && after > 0) return after == 1 ? "final" : "race";
  return fmt::format("{} {}", step % 2 == 1 ? "round" : "close", (step + 1) / 2);
}

std::string RunText(const RunStatus& run) {
  const RunProgress& p = run.progress;
  std::string text = fmt::format("\nrun {}: {} after round {}", Printable(p.run, kLongest),
                                 Printable(p.phase), p.round);
  if (!run.ending.empty()) text += fmt::format(", ended by {}", Printable(run.ending));
  if (p.awaited > 0) {
    text += fmt::format(", waits for {} of {}", Grouped(p.awaited), Counted(p.learners, "learner"));
  }
  text += "\n";
  if (run.incumbent) {
    const Submission& best = *run.incumbent;
    text += fmt::format("  incumbent  learner {}, round {}, y = {:.4f}, b = {:.4f}, {}\n",
                        best.learner.name(), best.round, best.y, best.b, Printable(best.hash, 16));
  }
  text += fmt::format("  {:<14} {:<12} {:<11} {}\n", "learner", "last heard", "silent for", "is");
  for (const MemberStatus& member : run.members) {
    text += fmt::format("  {:<14} {:<12} {:<11} {}\n", CommonNameOf(member.learner),
                        StepText(run, member.step),
                        member.silence ? fmt::format("{:.0f} s", *member.silence) : "?",
                        !member.presence.empty() ? Printable(member.presence, 16)
                        : member.awaited         ? "awaited"
                        : p.phase == "over"      ? "done"
                        : member.settled         ? "settled"
                                                 : "here");
  }
  const auto shown = static_cast<std::int64_t>(run.members.size());
  if (shown < p.learners) text += fmt::format("  and {} more\n", Grouped(p.learners - shown));
  return text;
}

Json RunJson(const RunStatus& run) {
  Json json{{"run", run.progress.run},         {"round", run.progress.round},
            {"phase", run.progress.phase},     {"learners", run.progress.learners},
            {"awaited", run.progress.awaited}, {"ending", run.ending}};
  json["incumbent"] = nullptr;
  if (run.incumbent) {
    json["incumbent"] = {{"learner", CommonNameOf(run.incumbent->learner)},
                         {"round", run.incumbent->round},
                         {"y", run.incumbent->y},
                         {"b", run.incumbent->b},
                         {"hash", run.incumbent->hash}};
  }
  json["members"] = Json::array();
  for (const MemberStatus& member : run.members) {
    Json one{{"learner", CommonNameOf(member.learner)},
             {"step", member.step},
             {"settled", member.settled},
             {"awaited", member.awaited},
             {"presence", member.presence.empty() ? "here" : member.presence}};
    one["silence"] = member.silence ? Json(*member.silence) : Json(nullptr);
    json["members"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string StatusText(const CloudStatus& status) {
  std::string text =
      fmt::format("{}, {}; you are {}\n", Printable(status.version),
                  TimeText(static_cast<std::int64_t>(status.now)), Printable(status.peer));
  for (const RunStatus& run : status.runs) text += RunText(run);
  return text;
}

std::string StatusJson(const CloudStatus& status) {
  Json json{{"version", status.version}, {"now", status.now}, {"peer", status.peer}};
  json["runs"] = Json::array();
  for (const RunStatus& run : status.runs) json["runs"].push_back(RunJson(run));
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace fedgen
