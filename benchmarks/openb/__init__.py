"""The published placement experiment on the openb traces (FGD, USENIX ATC 2023), and Pilotlight's policy in it."""
