// capstan.hpp -- all of the public API, but for mpi.hpp, which a program includes by choice.
#pragma once

#include "capstan/array.hpp"
#include "capstan/checkpoint.hpp"
#include "capstan/cluster.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/dataset.hpp"
#include "capstan/error.hpp"
#include "capstan/half.hpp"
#include "capstan/initializers.hpp"
#include "capstan/input.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/partitioners.hpp"
#include "capstan/readers.hpp"
#include "capstan/server.hpp"
#include "capstan/strategy.hpp"
#include "capstan/variable.hpp"
