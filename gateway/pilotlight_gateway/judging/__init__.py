"""The judge of rollouts: what it has seen of both sides, and what follows from it. Pure; time is an argument.

E-processes (Ville's inequality; Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting";
Turner, Ly and Grünwald on two streams) multiply, for each call, a factor whose expectation is at most 1 if the new
version is no worse. So one may look after each call: the chance that E ever reaches 100 is at most 1 %, whatever the
traffic does. The duty of rollouts enters, and `benchmarks.rollouts`.
"""
