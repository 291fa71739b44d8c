#!/usr/bin/env python3
"""tests/install/check_exports.py finds the namespace that declares a symbol."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "install"))
import check_exports


class CheckExports(unittest.TestCase):
    def test_accepts_public_names(self):
        for symbol in (
            "capstan::version()",
            "capstan::to_string[abi:cxx11](capstan::Version const&)",
            "capstan::Cluster::join(capstan::Settings const&)",
            "capstan::detail::run_collective(capstan::strategy::ReplicaGroup&, int, capstan::detail::Collective const&)",
            "capstan::Dataset<capstan::Array<float> > capstan::idx<float>(std::vector<int, std::allocator<int> >)",
            "capstan::MinSizePartitioner::operator()(std::span<long const, 18446744073709551615ul>, capstan::DType) const",
            "capstan::BatchOf<capstan::SparseBatch>::append(capstan::SparseBatch&, capstan::SparseBatch)",
            "capstan::mpi::share(ompi_communicator_t*)",
            "vtable for capstan::data::Operator",
            "typeinfo name for capstan::Error",
        ):
            self.assertIsNone(check_exports.complaint(symbol), symbol)

    def test_rejects_internal_names(self):
        for symbol, namespace in {
            "capstan::ps::Store::apply(std::span<long const, 18446744073709551615ul>)": "ps",
            "typeinfo for capstan::transport::Fabric": "transport",
            "std::vector<int, std::allocator<int> > capstan::client::rows<int>(int)": "client",
            "capstan::mpi::Communicator::rank() const": "mpi",
        }.items():
            self.assertIn(f"capstan::{namespace}", check_exports.complaint(symbol))

    def test_rejects_names_of_other_libraries(self):
        for symbol in ("cudaMalloc", "vtable for spdlog::sinks::sink", "typeinfo for int (*)()", "std::vector<capstan::Split>::~vector()"):
            self.assertEqual(check_exports.complaint(symbol), "is not a name of Capstan", symbol)


if __name__ == "__main__":
    unittest.main(verbosity=2)
