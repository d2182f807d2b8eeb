//! REST 2.x over an array in memory.
