"""trained_programs.py -- small trainings by the programs of `capstan train` on generated data, for tests with faults.

kge is not among them: tests use small_graph.py.
"""
import json

from small_models import write_criteo, write_libsvm, write_pictures, write_ratings, write_words_on_a_circle

PROGRAMS = ("lr", "fm", "mf", "mlp", "deepfm", "dlrm", "dcn", "word2vec")

# (part, metric, largest difference from an undisturbed run). Asynchronous runs differ by less.
QUALITY = {"lr": ("train", "objective", 0.005), "fm": ("test", "auc", 0.02), "mf": ("test", "rmse", 0.03), "mlp": ("test", "accuracy", 0.03),
           "deepfm": ("test", "auc", 0.02), "dlrm": ("test", "auc", 0.02), "dcn": ("test", "auc", 0.02),
           "word2vec": ("similarity", "spearman", 0.03)}
# After this many epochs, the quality has converged.
EPOCHS = {"lr": 60, "fm": 60, "mf": 100, "mlp": 40, "deepfm": 40, "dlrm": 40, "dcn": 40, "word2vec": 60}


def options(program, directory):
    """Writes data into `directory`; returns the program's options for it, all but the number of epochs."""
    train, test = directory / "train", directory / "test"
    if program == "mlp":
        names = ("data", "labels", "test", "test-labels")
        files = [word for name, file in zip(names, write_pictures(directory)) for word in ("--" + name, file)]
        return [*files, "--hidden", 16, "--batch", 10]
    files = ["--data", train, "--test", test]
    if program == "lr":
        write_libsvm(train, 1000)
        write_libsvm(test, 300, seed=2)
        return [*files, "--batch", 20, "--l2", 1e-3, "--learning-rate", 0.2]
    if program == "mf":
        write_ratings(train, test)
        return [*files, "--factors", 4, "--l2", 0.002, "--batch", 32]
    if program == "word2vec":
        write_words_on_a_circle(train, directory / "pairs")
        return ["--data", train, "--similarity", directory / "pairs", "--dim", 16, "--subsample", 0, "--learning-rate", 0.01, "--batch", 1000]
    write_criteo(train, 2000, 1, "categories")
    write_criteo(test, 1000, 2, "categories")
    deep = [] if program == "fm" else ["--hidden", ""]
    return [*files, "--format", "criteo", "--hash-bits", 14, "--factors", 4, "--l2", 1e-5, "--batch", 20, "--learning-rate", 0.05, *deep]


def saving(directory, program, every):
    """Returns the options that save a checkpoint and evaluate after every `every` epochs. word2vec evaluates only at the end."""
    evaluating = [] if program == "word2vec" else ["--eval-every", every]
    return ["--checkpoint-dir", directory, "--checkpoint-every", every, *evaluating]


def quality(program, summary):
    """Returns the metric of QUALITY in a summary file."""
    part, metric, _ = QUALITY[program]
    return json.loads(summary.read_text())[part][metric]
