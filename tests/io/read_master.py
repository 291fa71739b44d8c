# read_master.py -- prints the content of a master file as h5py reads it, without any knowledge of Capstan.
import sys

try:
    import h5py
except ImportError:
    sys.exit(77)

with h5py.File(sys.argv[1], "r") as master:
    print("format", master.attrs["format"], master.attrs["version"], master.attrs["step"])

    def show(name, item):
        if isinstance(item, h5py.Dataset):
            values = item[...].ravel().tolist()
            print(name, item.dtype, list(item.shape), *(f"{v:g}" if item.dtype.kind == "f" else v for v in values))
        elif "optimizer" in item.attrs:
            print(name, item.attrs["dtype"], item.attrs["optimizer"], item.attrs["steps"])

    master.visititems(show)
