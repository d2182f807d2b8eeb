"""A slow cable: two TAP devices that are connected with a delay.

Arguments: the names of both devices, the delay of a frame in milliseconds, the jitter, and the
percentage of lost frames. Prints "ready" when both devices exist, and exits when its input ends.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
FRAME_BYTES_MAX = 65536
# The maximum number of frames in transit, like the queue of a router.
ON_THEIR_WAY_MAX = 10000


def tap(name):
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


def main():
    ends = [tap(name) for name in sys.argv[1:3]]
    delay_ms, varies_ms, lost_percent = map(float, sys.argv[3:6])
    print("ready", flush=True)
    drawn = random.Random(1)
    on_their_way, last, count = [], [0.0, 0.0], 0
    while True:
        wait = on_their_way[0][0] - time.monotonic() if on_their_way else None
        waits = ends + [sys.stdin]
        readable, _, _ = select.select(waits, [], [], max(wait, 0) if wait is not None else None)
        if sys.stdin in readable:
            return
        now = time.monotonic()
        for at in (at for at, end in enumerate(ends) if end in readable):
            try:
                frame = os.read(ends[at], FRAME_BYTES_MAX)
            except BlockingIOError:
                continue
            if drawn.uniform(0, 100) < lost_percent or len(on_their_way) >= ON_THEIR_WAY_MAX:
                continue
            # Frames are delivered in the order of sending.
            last[at] = max(last[at], now + (delay_ms + drawn.uniform(0, varies_ms)) / 1000)
            count += 1
            heapq.heappush(on_their_way, (last[at], count, 1 - at, frame))
        while on_their_way and on_their_way[0][0] <= now:
            _, _, to, frame = heapq.heappop(on_their_way)
            try:
                os.write(ends[to], frame)
            except OSError:
                # The other end is not up yet, or is full: the frame is lost.
                pass


main()
