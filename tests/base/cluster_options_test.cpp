// cluster_options_test.cpp -- a field for each setting of a job, and the precedence of other sources.
#include "base/cluster_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/error.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

void expect_same(const Settings& settings, const ClusterOptions& options) {
  EXPECT_EQ(settings.integer("ps"), options.ps);
  EXPECT_EQ(settings.integer("workers"), options.workers);
  EXPECT_EQ(settings.text("roles"), options.roles);
  EXPECT_EQ(settings.text("role-map"), options.role_map);
  EXPECT_EQ(settings.text("role-file"), options.role_file);
  EXPECT_EQ(settings.text("role"), options.role);
  EXPECT_EQ(settings.flag("evaluator"), options.evaluator);
  EXPECT_EQ(settings.integer("replicas-of-ps"), options.replicas_of_ps);
  EXPECT_EQ(settings.integer("spares"), options.spares);
  EXPECT_EQ(settings.text("bind"), options.bind);
  EXPECT_EQ(settings.text("supervise"), options.supervise);
  EXPECT_EQ(settings.integer("max-restarts"), options.max_restarts);
  EXPECT_EQ(settings.text("ps-restart"), options.ps_restart);
  EXPECT_EQ(settings.integer("ps-threads"), options.ps_threads);
  EXPECT_EQ(settings.duration("ps-wait"), options.ps_wait);
  EXPECT_EQ(settings.duration("worker-wait"), options.worker_wait);
  EXPECT_EQ(settings.duration("coordinator-wait"), options.coordinator_wait);
  EXPECT_EQ(settings.duration("heartbeat-timeout"), options.heartbeat_timeout);
  EXPECT_EQ(settings.duration("deadline-grace"), options.deadline_grace);
  EXPECT_EQ(settings.text("run-dir"), options.run_dir);
  EXPECT_EQ(settings.duration("metrics-every"), options.metrics_every);
  EXPECT_EQ(settings.flag("trace"), options.trace);
  EXPECT_EQ(settings.text("prometheus-file"), options.prometheus_file);
  EXPECT_EQ(settings.integer("late-workers"), options.late_workers);
  EXPECT_EQ(settings.text("join-address"), options.join_address);
  EXPECT_EQ(settings.text("join"), options.join);
  EXPECT_EQ(settings.text("log-level"), options.log_level);
  EXPECT_EQ(settings.text("bootstrap"), options.bootstrap);
  EXPECT_EQ(settings.duration("start-timeout"), options.start_timeout);
  EXPECT_EQ(settings.duration("wait-timeout"), options.wait_timeout);
  EXPECT_EQ(settings.bytes("push-ring-bytes"), options.push_ring_bytes);
  EXPECT_EQ(settings.bytes("checkpoint-bandwidth"), options.checkpoint_bandwidth);
  EXPECT_EQ(settings.text("checkpoint-fast-dir"), options.checkpoint_fast_dir);
  EXPECT_EQ(settings.bytes("heap-slab-bytes"), options.heap_slab_bytes);
  EXPECT_EQ(settings.text("window"), options.window);
  EXPECT_EQ(settings.text("require-transport"), options.require_transport);
  EXPECT_EQ(settings.integer("max-inflight-per-worker"), options.max_inflight_per_worker);
  EXPECT_EQ(settings.integer("queue-limit"), options.queue_limit);
  EXPECT_EQ(settings.duration("watchdog-timeout"), options.watchdog_timeout);
  EXPECT_EQ(settings.duration("schedule-start-delay"), options.schedule_start_delay);
  EXPECT_EQ(settings.duration("schedule-start-delay-max"), options.schedule_start_delay_max);
  EXPECT_EQ(settings.text("nan-gradients"), options.nan_gradients);
  EXPECT_EQ(settings.integer("replicas"), options.replicas);
  EXPECT_EQ(settings.text("replica-device"), options.replica_device);
  EXPECT_EQ(settings.text("gpu-transfer"), options.gpu_transfer);
  EXPECT_EQ(settings.integer("gpu-stand-ins"), options.gpu_stand_ins);
  EXPECT_EQ(settings.flag("gpu-deterministic"), options.gpu_deterministic);
}

TEST(ClusterOptions, DefaultsEqualThoseOfTheSettings) { expect_same(Settings(), ClusterOptions{}); }

TEST(ClusterOptions, CoverEverySettingOfAJob) {
  ClusterOptions options;
  options.ps = 7;
  options.workers = 7;
  options.roles = "some";
  options.role_map = "pack";
  options.role_file = "some";
  options.role = "ps";
  options.evaluator = true;
  options.replicas_of_ps = 2;
  options.spares = 7;
  options.bind = "off";
  options.supervise = "off";
  options.max_restarts = 7;
  options.ps_restart = "off";
  options.ps_threads = 2;
  options.ps_wait = std::chrono::milliseconds(1500);
  options.worker_wait = std::chrono::milliseconds(1500);
  options.coordinator_wait = std::chrono::milliseconds(1500);
  options.heartbeat_timeout = std::chrono::milliseconds(1500);
  options.deadline_grace = std::chrono::milliseconds(1500);
  options.run_dir = "some";
  options.metrics_every = std::chrono::milliseconds(1500);
  options.trace = true;
  options.prometheus_file = "some";
  options.late_workers = 7;
  options.join_address = "some";
  options.join = "some";
  options.log_level = "debug";
  options.bootstrap = "mpi";
  options.start_timeout = std::chrono::milliseconds(1500);
  options.wait_timeout = std::chrono::milliseconds(1500);
  options.push_ring_bytes = std::uint64_t{2} << 20;
  options.checkpoint_bandwidth = std::uint64_t{1} << 20;
  options.checkpoint_fast_dir = "some";
  options.heap_slab_bytes = std::uint64_t{1} << 20;
  options.window = "rma";
  options.require_transport = "rdma";
  options.max_inflight_per_worker = 7;
  options.queue_limit = 7;
  options.watchdog_timeout = std::chrono::milliseconds(1500);
  options.schedule_start_delay = std::chrono::milliseconds(1500);
  options.schedule_start_delay_max = std::chrono::milliseconds(1500);
  options.nan_gradients = "skip";
  options.replicas = 7;
  options.replica_device = "gpu";
  options.gpu_transfer = "staged";
  options.gpu_stand_ins = 7;
  options.gpu_deterministic = true;
  const Settings settings = settings_of(options);
  expect_same(settings, options);
  for (const Setting& setting : Settings::table()) {
    const Origin::Kind kind = setting.group == "runtime" ? Origin::Kind::program : Origin::Kind::initial;
    EXPECT_EQ(settings.origin(setting.name).kind, kind) << setting.name;
  }
}

TEST(ClusterOptions, AreOverriddenByTheEnvironmentAndByFlags) {
  Settings settings = settings_of({.ps = 3, .workers = 4, .spares = 5});
  const char* const environment[] = {"CAPSTAN_WORKERS=6", nullptr};
  settings.load_environment(environment);
  settings.set_from_flag("spares", "7");
  EXPECT_EQ(settings.integer("ps"), 3);
  EXPECT_EQ(settings.integer("workers"), 6);
  EXPECT_EQ(settings.integer("spares"), 7);
  EXPECT_EQ(settings.origin("ps").brief(), "program");
}

TEST(ClusterOptions, AreOverriddenByTheEnvironmentOfTheProcess) {
  ASSERT_EQ(setenv("CAPSTAN_WORKERS", "6", 1), 0);
  const Settings settings = collected_settings({.ps = 3, .workers = 4});
  unsetenv("CAPSTAN_WORKERS");
  EXPECT_EQ(settings.integer("ps"), 3);
  EXPECT_EQ(settings.integer("workers"), 6);
}

TEST(ClusterOptions, AreOverriddenByArguments) {
  Settings settings = settings_of({.ps = 3, .trace = false});
  EXPECT_TRUE(set_from_argument(settings, "--capstan-ps=5"));
  EXPECT_TRUE(set_from_argument(settings, "--capstan-trace"));
  EXPECT_FALSE(set_from_argument(settings, "--ps=6"));
  EXPECT_FALSE(set_from_argument(settings, "train.py"));
  EXPECT_EQ(settings.integer("ps"), 5);
  EXPECT_TRUE(settings.flag("trace"));
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { set_from_argument(settings, "--capstan-pss=1"); }),
              HasSubstr("pss"));
}

TEST(ClusterOptions, BecomeFlagsUnlessOverridden) {
  const ClusterOptions options{
      .ps = 3, .workers = 4, .trace = true, .start_timeout = std::chrono::seconds(90)};
  Settings settings = settings_of(options);
  settings.set_from_flag("workers", "6");
  const std::vector<std::string> flags = flags_of(options, settings);
  EXPECT_THAT(flags, testing::ElementsAre("--ps=3", "--trace=true", "--start-timeout=90000ms"));
  // Another process that parses them has the same settings.
  Settings parsed;
  for (const std::string& flag : flags) EXPECT_TRUE(set_from_argument(parsed, "--capstan-" + flag.substr(2)));
  EXPECT_EQ(parsed.integer("ps"), 3);
  EXPECT_TRUE(parsed.flag("trace"));
  EXPECT_EQ(parsed.duration("start-timeout"), std::chrono::seconds(90));
}

TEST(ClusterOptions, AreDroppedUnlessAnotherSourceOverridesThem) {
  Settings settings = settings_of({.replicas_of_ps = 2, .spares = 5});
  settings.set_from_flag("spares", "1");
  settings.drop_from_program("spares");
  settings.drop_from_program("replicas-of-ps");
  EXPECT_EQ(settings.integer("spares"), 1);
  EXPECT_EQ(settings.integer("replicas-of-ps"), 1);
  EXPECT_FALSE(settings.given("replicas-of-ps"));
}

TEST(ClusterOptions, RejectsInvalidValuesByName) {
  EXPECT_THAT(error_of(Code::invalid_argument, [] { (void)settings_of({.ps = -1}); }),
              NamesAll({"ClusterOptions", "ps", "0", "\"-1\""}));
  EXPECT_THAT(error_of(Code::invalid_argument, [] { (void)settings_of({.role_map = "scatter"}); }),
              NamesAll({"ClusterOptions", "role-map", "\"scatter\""}));
}

}  // namespace
}  // namespace capstan
