"""What a hostile command does with a network. Reads attempts from a JSON file, and prints their outcomes as JSON.

Each attempt is a list: a way, and what it needs. Bytes are text in latin-1. An outcome is a text: an error's name, a
code, or the beginning of an answer."""
import array
import ctypes
import errno
import json
import os
import select
import socket
import struct
import sys

HTTP, SOCKS, DNS = ("127.0.0.1", 808), ("127.0.0.1", 108), ("127.0.0.1", 53)
# For what must not happen, so that an attack that succeeds ends.
LATE = 20


def answer(stream):
    """All that comes until the other end closes; the beginning if it does not close."""
    got = b""
    try:
        while len(got) < 4096:
            piece = stream.recv(4096)
            if not piece:
                break
            got += piece
    except TimeoutError:
        got += b" and open"
    except (ConnectionResetError, BrokenPipeError):
        got += b"reset"
    return got.decode("latin-1") or "closed"


def connected(address, family=socket.AF_INET):
    stream = socket.socket(family, socket.SOCK_STREAM)
    stream.settimeout(LATE)
    stream.connect(tuple(address))
    return stream


def talk(address, text):
    with connected(address) as stream:
        stream.sendall(text.encode("latin-1"))
        return answer(stream)


def ended(address, text):
    """Says that nothing more comes, so that the other end closes when it has answered."""
    with connected(address) as stream:
        stream.sendall(text.encode("latin-1"))
        stream.shutdown(socket.SHUT_WR)
        return answer(stream)


def tunnel(authority):
    """Asks the proxy for a tunnel; the connection stays open only if it is given."""
    with connected(HTTP) as stream:
        stream.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"))
        head = stream.recv(4096).decode("latin-1")
        return head[:12]


def inside_tunnel(authority, text):
    with connected(HTTP) as stream:
        stream.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: x\r\n\r\n".encode("latin-1"))
        stream.recv(4096)
        stream.sendall(text.encode("latin-1"))
        return answer(stream)


def socks(name, port, command=1):
    name = name.encode("latin-1")
    with connected(SOCKS) as stream:
        stream.sendall(b"\5\1\0" + bytes([5, command, 0, 3, len(name)]) + name + struct.pack(">H", port))
        stream.recv(2)
        return str(stream.recv(10)[1])


def socks_address(packed, port):
    packed = packed.encode("latin-1")
    with connected(SOCKS) as stream:
        kind = 1 if len(packed) == 4 else 4
        stream.sendall(b"\5\1\0" + bytes([5, 1, 0, kind]) + packed + struct.pack(">H", port))
        stream.recv(2)
        return str(stream.recv(10)[1])


def socks_four(text):
    """SOCKS 4 or 4a, as it is written. 90 is granted, 91 is not."""
    with connected(SOCKS) as stream:
        stream.sendall(text.encode("latin-1"))
        stream.shutdown(socket.SHUT_WR)
        got = stream.recv(8)
        return str(got[1]) if got else "closed"


def opened(name, protocols, text):
    """TLS to a name that offers these protocols, then these bytes."""
    import ssl
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    with connected(socket.getaddrinfo(name, 443, socket.AF_INET)[0][4]) as stream:
        try:
            inside = context.wrap_socket(stream, server_hostname=name)
        except OSError as error:
            return f"no greeting: {error}"
        with inside:
            inside.sendall(text.encode("latin-1"))
            return f"{inside.selected_alpn_protocol()}: {answer(inside)}"


def named(name, port, text):
    """Looks a name up, connects, sends, reads."""
    return talk(socket.getaddrinfo(name, port, socket.AF_INET)[0][4], text)


def greet(name, port, server_name):
    """TLS to a name, with this server name or without one."""
    import ssl
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connected(socket.getaddrinfo(name, port, socket.AF_INET)[0][4]) as stream:
        context.wrap_socket(stream, server_hostname=server_name)
        return "greeted"


def question(labels, kind):
    packed = b"".join(bytes([len(label)]) + label.encode("latin-1") for label in labels)
    return b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + packed + b"\0" + struct.pack(">HH", kind, 1)


def dns(labels, kind):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(LATE)
        asking.sendto(question(labels, kind), DNS)
        reply = asking.recv(2048)
        return f"{reply[3] & 15} with {reply[7]}"


def dns_tcp(labels, kind):
    text = question(labels, kind)
    with connected(DNS) as stream:
        stream.sendall(struct.pack(">H", len(text)) + text)
        reply = stream.makefile("rb").read(2 + 8)[2:]
        return f"{reply[3] & 15} with {reply[7]}"


def udp(address, port, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as sending:
        sending.settimeout(LATE)
        sending.connect((address, port))
        sending.send(b"x")
        return "answered: " + sending.recv(64).decode("latin-1")


def tcp(address, port):
    with connected((address, port), socket.AF_INET6 if ":" in address else socket.AF_INET):
        return "connected"


def make(family, kind, protocol):
    socket.socket(family, kind, protocol).close()
    return "made"


def in_flight(authority, path):
    """The connection is in nobody's table of descriptors while the proxy looks whose it is."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stream = socket.socket()
    right = array.array("i", [stream.fileno()]).tobytes()
    stream.connect(HTTP)
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, right)])
    request = f"GET http://{authority}/{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
    # This tells that an answer has come, and is no descriptor of the connection.
    told = select.epoll()
    told.register(stream.fileno(), select.EPOLLIN)
    stream.sendall(request.encode())
    stream.close()
    told.poll(LATE)
    _, ancillary, _, _ = there.recvmsg(1, socket.CMSG_SPACE(4))
    got = socket.socket(fileno=struct.unpack("i", ancillary[0][2][:4])[0])
    got.settimeout(LATE)
    return answer(got)


def closed_at_once(authority, path):
    for _ in range(20):
        stream = socket.socket()
        stream.connect(HTTP)
        request = f"GET http://{authority}/{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
        stream.sendall(request.encode())
        stream.close()
    return "sent"


def undumpable(authority, path):
    """Nobody but root may look into the descriptors of such a process."""
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        request = f"GET http://{authority}/{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
        said = talk(HTTP, request)
        os._exit(0 if said.startswith("HTTP/1.1 403") else 1)
    return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


WAYS = {
    "proxy": lambda text: talk(HTTP, text), "tunnel": tunnel, "inside": inside_tunnel, "socks": socks,
    "ended": lambda name, port, text: ended(socket.getaddrinfo(name, port, socket.AF_INET)[0][4], text),
    "ended_proxy": lambda text: ended(HTTP, text), "socks_four": socks_four, "opened": opened, "socks_address": socks_address, "named": named, "greet": greet, "dns": dns, "dns_tcp": dns_tcp, "udp": udp,
    "tcp": tcp, "make": make, "in_flight": in_flight, "closed": closed_at_once, "undumpable": undumpable,
}


def attempt(way, *words):
    try:
        return WAYS[way](*words)[:400]
    except socket.gaierror:
        return "NXDOMAIN"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(json.dumps([attempt(*words) for words in json.load(file)]), flush=True)
