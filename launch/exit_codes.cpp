// exit_codes.cpp -- from the code of an Error to an exit code and a line of advice.
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
      return Exit::lost_rank;
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
      return "`capstan --help` shows the commands, `capstan settings` every setting";
    case Exit::environment:
      return "this is the machine's answer, not the training's; docs/errors.md says what to look at";
    case Exit::lost_rank:
      return "start the same command with --resume to go on from the newest checkpoint";
    case Exit::damaged_checkpoint:
      return "move the file that is named out of the way; the checkpoint before it is then used";
    case Exit::ok:
    case Exit::failed:
    case Exit::requeue:
    case Exit::timed_out:
      break;
  }
  return "";
}

std::string_view meaning(int exit_code) noexcept {
  switch (static_cast<Exit>(exit_code)) {
    case Exit::ok:
      return "done";
    case Exit::failed:
      return "it failed";
    case Exit::usage:
      return "an option, a setting or the input is wrong";
    case Exit::environment:
      return "the machine said no";
    case Exit::lost_rank:
      return "a ps or the coordinator is gone, or a rank no longer answers";
    case Exit::damaged_checkpoint:
      return "a checkpoint is damaged";
    case Exit::requeue:
      return "not done; a checkpoint is saved, --resume goes on from it";
    case Exit::timed_out:
      return "the --timeout was over";
  }
  return "";
}

bool own_failure(Code code) noexcept {
  return code == Code::internal || code == Code::resource_exhausted || code == Code::data_loss ||
         code == Code::unknown;
}

}  // namespace capstan::launch
