// exit_codes.cpp -- maps the Code of an Error to an exit code and a line of advice.
#include "launch/exit_codes.hpp"

namespace capstan::launch {

Exit exit_code(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return Exit::ok;
    case Code::invalid_argument:
    case Code::not_found:
    case Code::already_exists:
    case Code::failed_precondition:
    case Code::out_of_range:
    case Code::unimplemented:
      return Exit::usage;
    case Code::permission_denied:
    case Code::resource_exhausted:
    case Code::internal:
      return Exit::environment;
    case Code::deadline_exceeded:
    case Code::unavailable:
      return Exit::rank_unavailable;
    case Code::data_loss:
      return Exit::damaged_checkpoint;
    case Code::cancelled:
    case Code::unknown:
    case Code::aborted:
      break;
  }
  return Exit::failed;
}

std::string_view hint(Code code) noexcept {
  switch (exit_code(code)) {
    case Exit::usage:
      return "`capstan --help` lists the commands, `capstan settings` every setting";
    case Exit::environment:
      return "the cause is outside Capstan: MPI, UCX, the file system or the machine; see docs/errors.md";
    case Exit::rank_unavailable:
      return "run the same command with --resume to continue from the newest checkpoint";
    case Exit::damaged_checkpoint:
      return "move the named checkpoint away; the previous one is used then";
    case Exit::ok:
    case Exit::failed:
    case Exit::requeue:
    case Exit::timed_out:
    case Exit::not_executable:
    case Exit::no_program:
    case Exit::interrupted:
      break;
  }
  return "";
}

std::string_view describe_exit_code(int exit_code) noexcept {
  switch (static_cast<Exit>(exit_code)) {
    case Exit::ok:
      return "success";
    case Exit::failed:
      return "failure";
    case Exit::usage:
      return "invalid option, setting or input";
    case Exit::environment:
      return "MPI, UCX, the file system or the machine failed";
    case Exit::rank_unavailable:
      return "a ps or the coordinator is dead or unreachable";
    case Exit::damaged_checkpoint:
      return "damaged checkpoint";
    case Exit::requeue:
      return "stopped early with a checkpoint; --resume continues from it";
    case Exit::timed_out:
      return "--timeout of capstan run expired";
    case Exit::not_executable:
      return "the program of capstan run is not executable";
    case Exit::no_program:
      return "the program of capstan run does not exist";
    case Exit::interrupted:
      return "Ctrl-C";
  }
  return "";
}

bool is_rank_local(Code code) noexcept {
  return code == Code::internal || code == Code::resource_exhausted || code == Code::data_loss ||
         code == Code::unknown;
}

}  // namespace capstan::launch
