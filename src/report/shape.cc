// SPDX-FileCopyrightText: The Sealane authors
// SPDX-License-Identifier: Apache-2.0

#include "report/shape.h"

#include <nlohmann/json.hpp>

#include <initializer_list>

#include "base/text.h"

namespace sealane::report {
namespace {

using nlohmann::json;

enum class Want { text, number, positive, flag, object, list };

struct Field {
  const char* name;
  Want want;
  bool needed = true;  // else it may be missing or null
};

constexpr bool kOptional = false;

const char* name_of(Want want) {
  constexpr const char* kNames[] = {"text",          "a number",  "a number above 0",
                                    "true or false", "an object", "a list"};
  return kNames[static_cast<size_t>(want)];
}

bool is(const json& value, Want want) {
  switch (want) {
    case Want::text:
      return value.is_string();
    case Want::number:
      return value.is_number();
    case Want::positive:
      return value.is_number() && value.get<double>() > 0;
    case Want::flag:
      return value.is_boolean();
    case Want::object:
      return value.is_object();
    case Want::list:
      return value.is_array();
  }
  return false;
}

std::string problem_in(const json& object, std::initializer_list<Field> fields) {
  if (!object.is_object()) return "must be an object";
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    const bool missing = found == object.end() || found->is_null();
    if (missing && !field.needed) continue;
    if (missing) return concat(field.name, " is missing");
    if (!is(*found, field.want)) return concat(field.name, " must be ", name_of(field.want));
  }
  return "";
}

bool has_some(const json& run, const char* key) {
  const auto found = run.find(key);
  return found != run.end() && found->is_structured() && !found->empty();
}

template <typename Check>
std::string problem_in_list(const json& run, const char* name, Check check) {
  const auto found = run.find(name);
  if (found == run.end() || found->is_null()) return "";
  if (!found->is_array()) return concat(name, " must be a list");
  for (size_t i = 0; i < found->size(); ++i) {
    const std::string problem = check((*found)[i]);
    if (!problem.empty()) return concat(name, "[", i, "]: ", problem);
  }
  return "";
}

// ---- One function for every kind of file ----

std::string study_problem(const json& run) {
  std::string problem = problem_in(run, {{"machine", Want::object, kOptional},
                                         {"differs", Want::text, kOptional},
                                         {"rows", Want::list}});
  if (!problem.empty()) return problem;
  problem = problem_in_list(run, "rows", [](const json& row) {
    return problem_in(row, {{"model", Want::text},
                            {"backend", Want::text},
                            {"mode", Want::text},
                            {"ranks", Want::positive},
                            {"bucket_mb", Want::positive},
                            {"iteration_ms", Want::positive},
                            {"compute_ms", Want::number},
                            {"comm_ms", Want::number},
                            {"exposed_ms", Want::number, kOptional},
                            {"overlap", Want::number, kOptional},
                            {"sealed_messages", Want::number},
                            {"sealed_bytes", Want::number},
                            {"rounds", Want::number, kOptional},
                            {"others_cores", Want::number, kOptional},
                            {"slowdown_vs_plain", Want::positive},
                            {"slowdown_vs_plain_q1", Want::positive, kOptional},
                            {"slowdown_vs_plain_q3", Want::positive, kOptional},
                            {"slowdown_vs_gloo", Want::positive},
                            {"slowdown_vs_gloo_q1", Want::positive, kOptional},
                            {"slowdown_vs_gloo_q3", Want::positive, kOptional}});
  });
  if (!problem.empty()) return problem;
  return problem_in_list(run, "published", [](const json& point) {
    return problem_in(point, {{"model", Want::text},
                              {"ranks", Want::positive},
                              {"buckets", Want::text, kOptional},
                              {"slowdown", Want::positive},
                              {"source", Want::text, kOptional}});
  });
}

std::string policy_problem(const json& policy, bool training) {
  const std::string problem = problem_in(policy, {{"unit", Want::text, kOptional},
                                                  {"timeline", Want::list, kOptional},
                                                  {"throughput", Want::number, kOptional},
                                                  {"time_s", Want::number, kOptional},
                                                  {"hit_rate", Want::number, kOptional},
                                                  {"sealed_bytes", Want::number, kOptional},
                                                  {"worker_cores", Want::number, kOptional},
                                                  {"latency_p50_ms", Want::number, kOptional},
                                                  {"latency_p99_ms", Want::number, kOptional}});
  if (!problem.empty()) return problem;
  if (training) {
    return problem_in(
        policy,
        {{"slowdown", Want::number}, {"time_s", Want::number}, {"sealed_bytes", Want::number}});
  }
  return problem_in_list(policy, "timeline", [](const json& bar) -> std::string {
    const bool good = bar.is_array() && bar.size() == 4 && bar[0].is_string() &&
                      bar[1].is_string() && bar[2].is_number() && bar[3].is_number();
    return good ? "" : "must be track, what, from, until";
  });
}

std::string estimate_problem(const json& run) {
  std::string problem = problem_in(run, {{"workload", Want::text},
                                         {"model", Want::text, kOptional},
                                         {"platform", Want::text},
                                         {"options", Want::object, kOptional},
                                         {"fleet", Want::object, kOptional},
                                         {"prices", Want::object, kOptional},
                                         {"policies", Want::object}});
  if (!problem.empty()) return problem;
  const json& policies = run["policies"];
  const bool training = run["workload"] == "ddp";
  for (const auto& [name, policy] : policies.items()) {
    problem = policy_problem(policy, training);
    if (problem.empty() && !training) problem = problem_in(policy, {{"loss_pct", Want::number}});
    if (!problem.empty()) return concat("policies: ", name, ": ", problem);
  }
  problem = problem_in_list(run, "policy_order", [&](const json& name) -> std::string {
    const bool known = name.is_string() && policies.contains(name.get<std::string>());
    return known ? "" : "must be one of the policies";
  });
  if (!problem.empty()) return problem;
  if (run.contains("fleet")) {
    problem = problem_in_list(run["fleet"], "points", [](const json& point) {
      return problem_in(point, {{"cores_per_gpu", Want::positive}, {"loss_pct", Want::object}});
    });
    if (!problem.empty()) return concat("fleet: ", problem);
  }
  for (const char* list : {"scaling", "parameters"}) {
    problem = problem_in_list(run, list, [](const json& each) { return problem_in(each, {}); });
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string validation_problem(const json& run) {
  const std::string problem = problem_in_list(run, "notes", [](const json& note) -> std::string {
    return note.is_string() ? "" : "must be text";
  });
  if (!problem.empty()) return problem;
  return problem_in_list(run, "checks", [](const json& check) -> std::string {
    std::string wrong = problem_in(check, {{"group", Want::text},
                                           {"what", Want::text},
                                           {"unit", Want::text},
                                           {"note", Want::text, kOptional},
                                           {"published", Want::list},
                                           {"predicted", Want::number},
                                           {"error", Want::number, kOptional},
                                           {"calibrated", Want::flag, kOptional}});
    if (!wrong.empty()) return wrong;
    const json& range = check["published"];
    const bool two = range.size() == 2 && range[0].is_number() && range[1].is_number();
    return two ? "" : "published must be two numbers";
  });
}

std::string rows_problem(const json& run) {
  const char* name = has_some(run, "rows") ? "rows" : "results";
  return problem_in_list(run, name, [](const json& row) { return problem_in(row, {}); });
}

}  // namespace

RunKind kind_of(const json& run) {
  if (!run.is_object()) return RunKind::unknown;
  if (has_some(run, "policies")) return RunKind::estimate;
  if (has_some(run, "checks")) return RunKind::validation;
  if (has_some(run, "rows")) return run.contains("study") ? RunKind::study : RunKind::rows;
  return has_some(run, "results") ? RunKind::rows : RunKind::unknown;
}

const char* to_string(RunKind kind) {
  constexpr const char* kNames[] = {"unknown", "estimate", "validation", "study", "rows"};
  return kNames[static_cast<size_t>(kind)];
}

const json& rows_of(const json& run) { return run.at(has_some(run, "rows") ? "rows" : "results"); }

std::string problem_of(const json& run) {
  switch (kind_of(run)) {
    case RunKind::estimate:
      return estimate_problem(run);
    case RunKind::validation:
      return validation_problem(run);
    case RunKind::study:
      return study_problem(run);
    case RunKind::rows:
      return rows_problem(run);
    case RunKind::unknown:
      break;
  }
  return "nothing to draw in it: give files that --json wrote";
}

}  // namespace sealane::report
