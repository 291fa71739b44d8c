// agent_link.hpp -- connects a rank's program to its agent: exchange at the start, and persistent memory.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/file_descriptor.hpp"
#include "capstan/error.hpp"
#include "cluster/membership/member.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::cluster {

/// Result of the exchange at the start, which the agent forwards to its child.
struct StartAnswer {
  Code code = Code::ok;
  std::string message = {};  // of the error
  Table table = {};
  bool hello_read = false;     // the child has sent its hello, so it will read this answer
  bool program_ended = false;  // the child has ended without a hello
};

/// A child's connection to its agent: two pipes for the exchange at the start of the job, or the table if the
/// child replaces one that died; and memory that outlives the child.
///
/// A child that was forked holds the object that split_into_agent_and_child returned. A child that executes a
/// program passes the object on: pass_to_program() before exec, adopt() in the program.
class AgentLink {
 public:
  using Memory = std::shared_ptr<transport::PersistentMemory>;

  /// Environment variable that names the inherited file descriptors.
  static constexpr const char* kVariable = "CAPSTAN_AGENT_LINK";

  AgentLink(FileDescriptor from_agent, FileDescriptor to_agent, Memory memory)
      : from_agent_(std::move(from_agent)), to_agent_(std::move(to_agent)), memory_(std::move(memory)) {}
  /// For the child of restart `restart_number`, from 1.
  AgentLink(Table table, Memory memory, int restart_number)
      : table_(std::move(table)), memory_(std::move(memory)), restart_number_(restart_number) {}

  /// Sets the variable, and lets the program that this process executes next inherit the file descriptors of
  /// the link and of the heartbeat. Throws Error(internal). REQUIRES: this process is a child of the agent
  /// and has one thread.
  void pass_to_program();

  /// Returns true if the environment has the variable.
  static bool is_passed() noexcept;
  /// Takes the link from the environment, and joins the agent's heartbeat. Removes the variable, so child
  /// processes do not find it. Returns nothing if the environment has none. Throws Error(failed_precondition)
  /// if the value is malformed, or if another process than this one's parent has set it; the variable and all
  /// descriptors then stay as they are. REQUIRES: no other thread reads or changes the environment.
  static std::optional<AgentLink> adopt();

  /// Sends this rank's hello and waits for the table. Throws Error: deadline_exceeded, or the error of the
  /// exchange.
  Table exchange(const Hello& hello, std::chrono::milliseconds timeout);
  /// Memory that outlives the child; null if the system refused it.
  const Memory& persistent_memory() const noexcept { return memory_; }
  /// Number of restarts so far: 0 in the first child.
  int restart_number() const noexcept { return restart_number_; }

 private:
  FileDescriptor from_agent_;
  FileDescriptor to_agent_;
  FileDescriptor table_file_;  // created by pass_to_program()
  std::optional<Table> table_;
  Memory memory_;
  int restart_number_ = 0;
};

}  // namespace capstan::cluster
