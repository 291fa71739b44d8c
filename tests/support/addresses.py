"""addresses.py -- addresses of this host on which no program listens."""
import pathlib
import random
import socket


def free_addresses(count):
    """Unused addresses outside of the range from which the kernel assigns ephemeral ports."""
    first_given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    addresses = []
    while len(addresses) < count:
        address = f"127.0.0.1:{random.randrange(max(1024, first_given // 2), first_given)}"
        try:
            socket.create_server(("127.0.0.1", int(address.partition(":")[2]))).close()
        except OSError:
            continue
        if address not in addresses:
            addresses.append(address)
    return addresses
