"""addresses.py -- ports and addresses of this host that no program uses."""
import pathlib
import random
import socket


def free_ports(count):
    """Different ports outside of the range from which the kernel assigns ephemeral ones, so that no connection of another
    program occupies one before the caller's program listens."""
    first_ephemeral = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = []
    while len(ports) < count:
        port = random.randrange(max(1024, first_ephemeral // 2), first_ephemeral)
        try:
            socket.create_server(("", port)).close()
        except OSError:
            continue
        if port not in ports:
            ports.append(port)
    return ports


def free_addresses(count):
    return [f"127.0.0.1:{port}" for port in free_ports(count)]
