// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/base/kernel.h"
#include "fedgen/base/random.h"
#include "fedgen/learn/experience.h"
#include "fedgen/policy/policy.h"
#include "fedgen/rollout/task.h"

namespace fedgen {

// A network that learns by watching: it is fitted to what a teacher, any policy, does with what the
// network sees (Eq. 52).
//
//   Mlp student = ...;  DrawParameters(...);       // its weights so far are where the fit begins
//   Imitate(GapFollower{}, task, {}, key, kernel, num_threads, student);
//
// There are three lessons. In the first the teacher drives. In the others the student drives and
// the teacher says what it would have done: a student errs, and so meets states that its teacher
// never sees (DAgger: Ross, Gordon and Bagnell, 2011). After each lesson the student learns from
// all that was seen so far. A teacher that sees more than its student, as the gap follower sees the
// goal, can be imitated only as far as the student can tell what it will do.

struct ImitationOptions {
  int episodes = 2000;  // driven, in the three lessons together
  int epochs = 20;      // passes over what was seen, after each lesson
};

/// A lesson: somebody drives, and the teacher says what it would do.
struct Lesson {
  const Task* task = nullptr;
  const Policy* teacher = nullptr;
  const Mlp* student = nullptr;
  bool teacher_drives = true;  // or the student
  std::int64_t begin = 0;      // episodes [begin, end), of the worlds and in the experience
  std::int64_t end = 0;
};

/// Drives the lesson's episodes; writes down how they ended and, for each step, what the student
/// saw (`rows`) and what the teacher would do (`targets`).
void Attend(const Lesson& lesson, const WorldSource& worlds, Kernel kernel, int num_threads,
            Experience& experience);

/// Fits the student's parameters; its normalisation stays. The key names the worlds and the order
/// of samples. Threads and kernel change no bit.
void Imitate(const Policy& teacher, const Task& task, const ImitationOptions& options, Key key,
             Kernel kernel, int num_threads, Mlp& student);

}  // namespace fedgen
