// own_gpu.cpp -- see own_gpu.hpp.
#include "train/own_gpu.hpp"

#include <string>

#include "capstan/error.hpp"
#include "cluster/roles/gpu_assignment.hpp"
#include "strategy/context.hpp"

namespace capstan::train {

int own_gpu() {
  try {
    return cluster::own_gpus(strategy::Context::current().runtime(), 1).front();
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string(error.what()) +
                    "; --device cpu trains without one, and --gpu-stand-ins 1 tries this program");
  }
}

}  // namespace capstan::train
