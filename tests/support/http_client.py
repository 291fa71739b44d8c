"""http_client.py -- HTTP requests to `capstan serve`, on a port of 127.0.0.1 or on a Unix socket."""
import array
import http.client
import json
import socket

SECONDS = 60


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """One connection, which is opened again if the server closes it. `address`: a port, or the path of a socket."""

    def __init__(self, address):
        self.address = address
        self.connection = self.connect()

    def connect(self):
        if isinstance(self.address, int):
            return http.client.HTTPConnection("127.0.0.1", self.address, timeout=SECONDS)
        return UnixConnection(self.address)

    def close(self):
        self.connection.close()

    def send(self, method, path, body=None, headers=None):
        """Returns (status, headers, body)."""
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def get(self, path):
        status, _, body = self.send("GET", path)
        return status, json.loads(body)

    def post(self, path, request):
        """`request`: a value for JSON, or the text of a body. Returns (status, value)."""
        body = request if isinstance(request, (str, bytes)) else json.dumps(request)
        status, _, answer = self.send("POST", path, body, {"Content-Type": "application/json"})
        return status, json.loads(answer)

    def binary_rows(self, variable, ids, binary_request=True):
        """Returns (shape, floats) of a lookup."""
        headers = {"Accept": "application/octet-stream"}
        if binary_request:
            headers["Content-Type"] = "application/octet-stream"
            body = array.array("q", ids).tobytes()
        else:
            headers["Content-Type"] = "application/json"
            body = json.dumps({"variable": variable, "ids": ids})
        status, found, answer = self.send("POST", f"/v1/lookup?variable={variable}", body, headers)
        if status != 200:
            raise ValueError(answer)
        if found["X-Capstan-Dtype"] != "float32":
            raise ValueError(found["X-Capstan-Dtype"])
        return [int(n) for n in found["X-Capstan-Shape"].split(",")], array.array("f", answer).tolist()
