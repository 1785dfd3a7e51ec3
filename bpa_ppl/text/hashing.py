"""A hash table in compiled code: it maps 64-bit keys to their numbers.

The keys are an array, and the table has the places of keys in it, or −1. Collisions go to the next
place (open addressing).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bpa_ppl._runtime.arrays import Int32, Int64
from bpa_ppl._runtime.cache import compiled

#: The number in a free place.
FREE = -1
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio (Knuth)


@njit
def find_slot(slots: Int32, keys: Int64, key: int) -> int:
    """Return the place of a key in a hash table, or the free place for it."""
    last = len(slots) - 1
    mixed = np.uint64(key ^ (key >> 32)) * _MIX
    slot = int(mixed >> np.uint64(32)) & last
    while slots[slot] != FREE and keys[slots[slot]] != key:
        slot = (slot + 1) & last
    return slot


@compiled
def build_hash_table(keys: Int64, size: int) -> Int32:
    """Return a hash table of keys; its size is a power of two, above the number of keys.

    Repeated keys map to the first one.

    >>> table = build_hash_table(np.array([7, 9, 7]), 8)
    >>> sorted(table.tolist())
    [-1, -1, -1, -1, -1, -1, 0, 1]
    """
    slots = np.full(size, FREE, dtype=np.int32)
    for number in range(len(keys)):
        slot = find_slot(slots, keys, int(keys[number]))
        if slots[slot] == FREE:
            slots[slot] = number
    return slots


@compiled
def find_numbers(keys: Int64, slots: Int32, queries: Int64) -> Int64:
    """Return the numbers of some keys; −1 for a missing one.

    >>> keys = np.array([7, 9])
    >>> find_numbers(keys, build_hash_table(keys, 4), np.array([9, 8])).tolist()
    [1, -1]
    """
    numbers = np.empty(len(queries), dtype=np.int64)
    for i in range(len(queries)):
        numbers[i] = slots[find_slot(slots, keys, int(queries[i]))]
    return numbers


def choose_table_size(keys: int) -> int:
    """Return the size of a hash table for a number of keys.

    >>> choose_table_size(0), choose_table_size(8), choose_table_size(9)
    (2, 16, 32)
    """
    return 2 << max(0, (keys - 1).bit_length() if keys else 0)
