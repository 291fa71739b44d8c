// command_notes.cpp -- the table of notes.
#include "launch/help/command_notes.hpp"

#include <map>

#include "launch/exit_codes.hpp"

namespace capstan::launch::help {
namespace {

const std::vector<ExitNote> kTrainExits{{0}, {1}, {2}, {3}, {4}, {5}, {85}};
const std::vector<ExitNote> kFileExits{{0}, {2}, {3}, {5}};
const std::vector<ExitNote> kJobExits{{0}, {2}, {3}, {4, "the job does not answer"}};

const std::map<std::string_view, CommandNotes>& table() {
  static const std::map<std::string_view, CommandNotes> notes{
      {"capstan",
       {.examples = {"capstan train kge", "mpirun -np 5 capstan train kge --ps 2", "capstan help train kge"},
        .exits = {{0}, {1}, {2}, {3}, {4}, {5}, {85}, {124}, {126}, {127}, {130}},
        .page = "command_line.md"}},
      {"capstan train",
       {.examples = {"capstan train kge --epochs 2",
                     "mpirun -np 5 capstan train lr --data train.svm --test test.svm --ps 2",
                     "capstan run --workers 4 -- capstan train mlp --data images --labels labels"},
        .exits = kTrainExits,
        .page = "training.md"}},
      {"capstan train kge",
       {.examples = {"capstan train kge --epochs 2",
                     "mpirun -np 5 capstan train kge --data WN18RR --model distmult --ps 2",
                     "mpirun -np 5 capstan train kge --checkpoint-dir run --resume"},
        .exits = kTrainExits,
        .page = "training.md"}},
      {"capstan train lr",
       {.examples = {"capstan train lr --data train.svm --test test.svm",
                     "capstan train lr --data day_0.gz day_1.gz --format criteo",
                     "capstan train lr --data train.csv --format csv --schema columns.toml",
                     "mpirun -np 5 capstan train lr --data train.svm --mode synchronous --ps 2"},
        .exits = kTrainExits,
        .page = "training.md"}},
      {"capstan train fm",
       {.examples = {"capstan train fm --data train.svm --test test.svm --factors 8",
                     "capstan train fm --data day_0.gz --format criteo --hash-bits 20",
                     "mpirun -np 5 capstan train fm --data train.svm --ps 2"},
        .exits = kTrainExits,
        .page = "training.md"}},
      {"capstan train mf",
       {.examples = {"capstan train mf --data ratings.dat",
                     "capstan train mf --data u1.base --test u1.test --factors 32",
                     "mpirun -np 5 capstan train mf --data u1.base --test u1.test --implicit --ps 2"},
        .exits = kTrainExits,
        .page = "training.md"}},
      {"capstan train mlp",
       {.examples = {"capstan train mlp --data train-images.gz --labels train-labels.gz",
                     "capstan train mlp --data images --labels labels --hidden 256,128",
                     "mpirun -np 5 capstan train mlp --data images --labels labels --ps 1"},
        .exits = kTrainExits,
        .page = "training.md"}},
      {"capstan settings",
       {.examples = {"capstan settings", "CAPSTAN_PS=4 capstan settings --config job.toml",
                     "mpirun -np 4 capstan settings --transports"},
        .exits = {{0}, {2}, {3}},
        .page = "settings.md"}},
      {"capstan status",
       {.examples = {"capstan status run", "watch -n 10 capstan status run", "ssh node1 capstan status run"},
        .exits = kJobExits,
        .page = "howto/monitor.md"}},
      {"capstan top",
       {.examples = {"capstan top run", "capstan top run --once", "ssh -t node1 capstan top run"},
        .exits = kJobExits,
        .page = "howto/monitor.md"}},
      {"capstan trace",
       {.examples = {"mpirun -np 5 capstan train kge --run-dir run --trace", "capstan trace run"},
        .exits = {{0}, {2}, {3}},
        .page = "metrics.md"}},
      {"capstan join",
       {.examples = {"capstan join run", "ssh node7 capstan join /shared/run", "srun -N 1 capstan join run"},
        .exits = kTrainExits,
        .page = "failures.md"}},
      {"capstan run",
       {.usage = " -- PROGRAM [ARGUMENTS]",
        .examples = {"capstan run -- capstan train kge",
                     "capstan run --ps 2 --workers 4 --hosts hosts -- ./program",
                     "capstan run --dry-run -- ./program --checkpoint-dir run"},
        .exits = {{0}, {2}, {3}, {4}, {85}, {124}, {126}, {127}, {130}},
        .page = "running.md"}},
      {"capstan checkpoint",
       {.examples = {"capstan checkpoint list run/checkpoints", "capstan checkpoint show run/checkpoints",
                     "capstan checkpoint export run/checkpoints model.h5"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint list",
       {.examples = {"capstan checkpoint list run/checkpoints",
                     "capstan checkpoint list run/checkpoints --verify",
                     "capstan checkpoint list run/checkpoints --json"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint show",
       {.examples = {"capstan checkpoint show run/checkpoints",
                     "capstan checkpoint show run/checkpoints/checkpoint-00000012 --no-norms",
                     "capstan checkpoint show run/checkpoints --json"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint verify",
       {.examples = {"capstan checkpoint verify run/checkpoints/checkpoint-00000012",
                     "capstan checkpoint verify run/checkpoints", "capstan checkpoint verify model.h5"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint diff",
       {.examples = {"capstan checkpoint diff before/checkpoint-00000012 after/checkpoint-00000012",
                     "capstan checkpoint diff before after --no-slots",
                     "capstan checkpoint diff before after --json"},
        .exits = {{0, "equal"}, {1, "different"}, {2, "a checkpoint cannot be read, or invalid usage"}},
        .page = "checkpoints.md"}},
      {"capstan checkpoint export",
       {.examples = {"capstan checkpoint export run/checkpoints model.h5",
                     "capstan checkpoint export run/checkpoints rows.npy --variable entities",
                     "capstan checkpoint export run/checkpoints all.npz --slots"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint import",
       {.examples = {"capstan checkpoint import glove.npy pretrained --variable entities",
                     "capstan checkpoint import old.h5 pretrained --variable w --dataset layer/w",
                     "capstan checkpoint import rows.npy pretrained --variable w --optimizer adam"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint reshard",
       {.examples = {"capstan checkpoint reshard run/checkpoints resharded --parts 8",
                     "capstan checkpoint reshard run/checkpoints one --parts 1 --force",
                     "capstan checkpoint reshard run/checkpoints resharded --parts 8 --json"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan checkpoint compact",
       {.examples = {"capstan checkpoint compact run/checkpoints",
                     "capstan checkpoint compact run/checkpoints/checkpoint-00000012",
                     "capstan checkpoint compact run/checkpoints --json"},
        .exits = kFileExits,
        .page = "checkpoints.md"}},
      {"capstan doctor",
       {.examples = {"capstan doctor",
                     "mpirun -np 8 --hostfile hosts capstan doctor --checkpoint-dir run/checkpoints",
                     "capstan doctor --only ucx,limits --json"},
        .exits = {{0, "no check failed"}, {2}, {3, "a check failed"}},
        .page = "doctor.md"}},
      {"capstan help",
       {.examples = {"capstan help train kge", "capstan help run --all", "capstan help --completions bash"},
        .exits = {{0}, {2}, {3}},
        .page = "command_line.md"}},
  };
  return notes;
}

}  // namespace

const CommandNotes& notes_of(std::string_view path) {
  static const CommandNotes none;
  const auto found = table().find(path);
  return found == table().end() ? none : found->second;
}

std::string meaning_of(const ExitNote& note) {
  return std::string(note.meaning.empty() ? describe_exit_code(note.code) : note.meaning);
}

}  // namespace capstan::launch::help
