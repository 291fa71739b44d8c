// assigned_gpu.cpp -- see assigned_gpu.hpp.
#include "train/assigned_gpu.hpp"

#include <string>

#include "capstan/error.hpp"
#include "cluster/roles/gpu_assignment.hpp"
#include "strategy/context.hpp"

namespace capstan::train {

int assigned_gpu() {
  try {
    return cluster::assigned_gpus(strategy::Context::current().runtime(), 1).front();
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string(error.what()) +
                    "; use --device cpu to train without a GPU, or --gpu-stand-ins 1 to test this program");
  }
}

}  // namespace capstan::train
