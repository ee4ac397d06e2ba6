"""Software devices for experiments, small: as a node's configuration names them."""

from node import Node

# Memory is a 128th of a card's, speed a 6,000th, so that two cores of a host keep up with both (demo/heddle.toml).
DEVICES = """[[device]]
preset = "{preset}"
count = {count}
memory = "{memory}"
slowdown = {slowdown}
copy_slowdown = 20
"""


def devices(preset, count, slowdown=6000, memory="128M"):
    return DEVICES.format(preset=preset, count=count, slowdown=slowdown, memory=memory)


def node_of(heddle, preset, count, slowdown=6000, memory="128M", **keys):
    return Node(heddle, devices(preset, count, slowdown, memory), **keys)
