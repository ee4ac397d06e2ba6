"""What programs should have answered, computed from the inputs that `inputs.py` made; where their suite's own version
for the CPU does not tell. Each function reads the directory of a run and returns text with numbers."""

import math
import os


def nearest_hurricanes(directory):
    """The five records nearest to 30 degrees of latitude and 90 of longitude, nearest first."""
    distances = []
    for number in range(2):
        for record in open(os.path.join(directory, f"cane{number}.db")):
            if len(record) > 38:
                distances.append(math.hypot(float(record[28:33]) - 30, float(record[33:38]) - 90))
    return "\n".join(f"Distance={distance:.6f}" for distance in sorted(distances)[:5])
